//! A stream in the form of an array, which is the same stream in another framing.

use crate::json::{Invalid, Reader};
use bytes::Bytes;

/// The stream as events; as it is where it is no array. An array that was cut is read as far as it goes, so that its
/// answer is known to be truncated.
pub(crate) fn as_events(bytes: &Bytes) -> Bytes {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return bytes.clone();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let read = Reader::new(bytes).and_then(|mut r| {
        r.array(|r, _| {
            let element = r.raw()?;
            out.extend_from_slice(b"data: ");
            // Outside of strings a line break is white space, and inside of them JSON has none.
            out.extend(element.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
            out.extend_from_slice(b"\n\n");
            Ok::<(), Invalid>(())
        })
    });
    // What follows the cut, or is no JSON, has no event; without its last one the answer has no end.
    drop(read);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_becomes_an_event_and_what_is_no_array_stays() {
        for (bytes, events) in [
            ("data: {}\n\n", "data: {}\n\n"),
            ("\n[{\"a\":\n\"\\n\"}\r\n,\r\n{}]\n", "data: {\"a\": \"\\n\"}\n\ndata: {}\n\n"),
            ("[{},{", "data: {}\n\n"),
            ("[]", ""),
            ("", ""),
        ] {
            assert_eq!(as_events(&Bytes::from_static(bytes.as_bytes())), events, "{bytes}");
        }
    }
}
