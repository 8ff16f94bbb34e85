//! `turnkeep validate`: a recorded answer against its dialect's rules, stricter than what the gateway takes from an
//! upstream: what it would itself write.

mod order;

use super::Failure;
use crate::cli::ValidateArgs;
use bytes::Bytes;
use order::Order;
use std::io::{Read, Write};
use std::path::Path;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::{Invalid, Reader};
use turnkeep_dialect::reply::{self, Asked, ReplyOptions};
use turnkeep_wire::sse;

/// The most bytes that are read.
const MOST: u64 = 256 << 20;

/// Checks the file, and says in a line what it is.
///
/// # Errors
/// Usage: the file cannot be read, or is over 256 MiB. Operation: it breaks a rule; the message tells the event and its
/// line.
pub fn run(args: &ValidateArgs, input: &mut impl Read, out: &mut impl Write) -> Result<(), Failure> {
    let bytes = read(&args.file, input)?;
    let said = check(args.dialect, &bytes).map_err(Failure::Operation)?;
    writeln!(out, "{said}")?;
    Ok(())
}

fn read(file: &Path, input: &mut impl Read) -> Result<Bytes, Failure> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        input.take(MOST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(MOST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::Usage(format!("cannot read {}: {error}", file.display())))?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::Usage(format!("{} is over {} MiB", file.display(), MOST >> 20)));
    }
    Ok(bytes.into())
}

/// What the bytes are, if they keep to the rules, or what breaks them.
fn check(dialect: Dialect, bytes: &Bytes) -> Result<String, String> {
    match (bytes.trim_ascii_start().first(), dialect) {
        (None, _) => Err("nothing is in it".into()),
        (Some(b'['), Dialect::Gemini) => array(dialect, bytes),
        (Some(b'{' | b'['), _) => body(dialect, bytes),
        (Some(_), _) => stream(dialect, bytes),
    }
}

/// A plain answer, or an error.
fn body(dialect: Dialect, bytes: &Bytes) -> Result<String, String> {
    if reply::is_error_body(dialect, bytes) {
        return Ok(format!("{dialect}: an error body"));
    }
    let options = ReplyOptions {
        client: dialect,
        upstream: dialect,
        model: String::new(),
        usage_wanted: true,
        choices: 1,
        id: String::new(),
        created: 0,
        max_event: bytes.len().saturating_add(1),
        asked: Asked::default(),
    };
    match reply::plain(&options, bytes.clone()) {
        Ok(_) => Ok(format!("{dialect}: a whole answer")),
        Err(fault) => Err(format!("{dialect}: {}", fault.evidence.detail)),
    }
}

/// A stream of events.
fn stream(dialect: Dialect, bytes: &Bytes) -> Result<String, String> {
    let mut order = Order::new(dialect);
    let mut reader = sse::Reader::new(bytes.len().saturating_add(1));
    reader.push(bytes.clone());
    let (mut line, mut event) = (1, 0);
    loop {
        let next = reader.next_frame().and_then(|frame| match frame {
            Some(frame) => Ok(Some(frame)),
            None => reader.finish(),
        });
        let Some(frame) = next.map_err(|long| format!("{dialect}: line {line}: {long}"))? else { break };
        if frame.data.is_some() {
            event += 1;
        }
        order.frame(&frame).map_err(|what| format!("{dialect}: event {event}, line {line}: {what}"))?;
        line += frame.raw.iter().filter(|byte| **byte == b'\n').count();
    }
    order.finish().map_err(|what| format!("{dialect}: after event {event}: {what}"))?;
    Ok(format!("{dialect}: a stream of {event} events, whole"))
}

/// A stream as one JSON array (Gemini's): its elements are the events.
fn array(dialect: Dialect, bytes: &Bytes) -> Result<String, String> {
    let mut order = Order::new(dialect);
    let (mut event, mut wrong) = (0, None);
    let mut each = |r: &mut Reader<'_>, _: usize| -> Result<(), Invalid> {
        let raw = r.raw()?;
        event += 1;
        if wrong.is_none() {
            let frame =
                sse::Frame { event: None, data: Some(Bytes::copy_from_slice(raw.as_bytes())), raw: Bytes::new() };
            wrong = order.frame(&frame).err().map(|what| (event, what));
        }
        Ok(())
    };
    let read = Reader::new(bytes).and_then(|mut r| r.array(&mut each).and_then(|()| r.end()));
    if let Some((event, what)) = wrong {
        return Err(format!("{dialect}: element {event}: {what}"));
    }
    read.map_err(|invalid| format!("{dialect}: after element {event}: {invalid}"))?;
    order.finish().map_err(|what| format!("{dialect}: after element {event}: {what}"))?;
    Ok(format!("{dialect}: an array of {event} elements, whole"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}"#;
    const LAST: &str = r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

    fn of(dialect: Dialect, text: &str) -> Result<String, String> {
        check(dialect, &Bytes::copy_from_slice(text.as_bytes()))
    }

    fn events(datas: &[&str]) -> String {
        datas.iter().map(|data| format!("data: {data}\n\n")).collect()
    }

    #[test]
    fn a_stream_in_order_is_counted() {
        let stream = format!(": hello\n\n{}", events(&[FIRST, LAST, "[DONE]"]));
        assert_eq!(of(Dialect::Chat, &stream).unwrap(), "chat: a stream of 3 events, whole");
        assert_eq!(of(Dialect::Chat, stream.trim_end()).unwrap(), "chat: a stream of 3 events, whole");
    }

    #[test]
    fn what_breaks_the_order_is_told_with_its_event_and_line() {
        let said = of(Dialect::Chat, &events(&[FIRST, FIRST, "[DONE]"])).unwrap_err();
        assert!(said.starts_with("chat: event 2, line 3: choice 0: the role"), "{said}");
        let said = of(Dialect::Chat, &events(&[FIRST, LAST])).unwrap_err();
        assert_eq!(said, "chat: after event 2: the stream ended without [DONE] and without an error");
        let said = of(Dialect::Messages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n").unwrap_err();
        assert!(said.starts_with("messages: event 1, line 1: "), "{said}");
    }

    #[test]
    fn a_body_is_a_whole_answer_an_error_or_neither() {
        let whole =
            r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#;
        assert_eq!(of(Dialect::Chat, whole).unwrap(), "chat: a whole answer");
        let error = r#"{"error":{"message":"no","type":"server_error","param":null,"code":null}}"#;
        assert_eq!(of(Dialect::Chat, error).unwrap(), "chat: an error body");
        for wrong in ["", " ", "{}", "[]", r#"{"choices":[]}"#, &whole[..40]] {
            assert!(of(Dialect::Chat, wrong).is_err(), "{wrong}");
        }
        assert!(of(Dialect::Messages, whole).is_err());
    }

    #[test]
    fn a_file_and_standard_input_are_read_and_a_missing_file_is_a_wrong_use() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stream");
        std::fs::write(&file, events(&[FIRST, LAST, "[DONE]"])).unwrap();
        let mut out = Vec::new();
        let run = |file: &Path, input: &str, out: &mut Vec<u8>| {
            let args = ValidateArgs { dialect: Dialect::Chat, file: file.to_owned() };
            run(&args, &mut input.as_bytes(), out).map_err(|failure| failure.status())
        };
        assert_eq!(run(&file, "", &mut out), Ok(()));
        assert_eq!(run(Path::new("-"), &events(&[FIRST]), &mut out), Err(1));
        assert_eq!(run(&folder.path().join("none"), "", &mut out), Err(2));
        assert_eq!(String::from_utf8(out).unwrap(), "chat: a stream of 3 events, whole\n");
    }
}
