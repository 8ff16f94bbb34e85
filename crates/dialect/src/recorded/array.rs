//! A Gemini stream that was recorded as one JSON array, as the events that it would have been.

use super::Recorded;
use crate::json::{Invalid, Reader};
use crate::reply::ReplyFault;
use bytes::Bytes;
use turnkeep_base::Dialect;

/// The bytes of a record as a stream of events: as they are, but for an array, whose elements become one event each. An
/// array that is cut is no answer.
pub(super) fn events(recorded: &Recorded) -> Result<Bytes, ReplyFault> {
    let array = match recorded.dialect {
        Dialect::Gemini => recorded.stream && recorded.bytes.trim_ascii_start().first() == Some(&b'['),
        Dialect::Chat | Dialect::Responses | Dialect::Messages => false,
    };
    if !array {
        return Ok(recorded.bytes.clone());
    }
    let mut out = Vec::with_capacity(recorded.bytes.len() + 1024);
    split(&recorded.bytes, &mut out).map_err(|invalid| ReplyFault::malformed(invalid.to_string()))?;
    Ok(out.into())
}

fn split(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
    let mut r = Reader::new(bytes)?;
    r.array::<Invalid>(|r, _| {
        // JSON may stand on several lines, and each line of an event has its own name.
        for line in r.raw()?.lines() {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
        Ok(())
    })?;
    r.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Facts;

    fn of(dialect: Dialect, bytes: &'static str) -> Result<String, ReplyFault> {
        let record =
            Recorded { dialect, stream: true, bytes: Bytes::from_static(bytes.as_bytes()), facts: Facts::default() };
        events(&record).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn each_element_becomes_an_event_and_what_is_one_already_stays() {
        let array = "[{\"a\":1}\r\n,\r\n{\n \"b\": \"x\\ny\"\n}]\n";
        assert_eq!(
            of(Dialect::Gemini, array).unwrap(),
            "data: {\"a\":1}\n\ndata: {\ndata:  \"b\": \"x\\ny\"\ndata: }\n\n"
        );
        assert_eq!(of(Dialect::Gemini, "data: [1]\n\n").unwrap(), "data: [1]\n\n");
        assert_eq!(of(Dialect::Chat, "[1]").unwrap(), "[1]");
        for cut in ["[{\"a\":1}", "[{\"a\":1},", "[{\"a\":"] {
            assert!(of(Dialect::Gemini, cut).is_err(), "{cut}");
        }
    }
}
