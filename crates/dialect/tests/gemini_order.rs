//! What may stand where in a Gemini answer.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod gemini_said;

use gemini_said::{answer, frames, last, parts, stream};
use turnkeep_dialect::gemini::order::{Order, array, body};

/// What breaks the order of a stream, if anything does.
fn judge(stream: &str) -> Result<(), String> {
    let mut order = Order::default();
    frames(&[stream.as_bytes()]).iter().try_for_each(|frame| order.frame(frame))?;
    order.finish()
}

const ERROR: &str = r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#;

#[test]
fn what_google_writes_is_lawful() {
    let text = parts(r#"{"text":"a"},{"text":"","thought":true,"thoughtSignature":"c2ln"}"#);
    let call = parts(r#"{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"name":"f"}}"#);
    let end = last(r#"{"text":""}"#, "STOP");
    let usage =
        r#"data: {"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},"modelVersion":"up","responseId":"r1"}"#;
    let whole = stream(&[&text, &call, &end]);
    for stream in [
        whole.clone(),
        format!("\n\n{whole}\n{usage}\n\n"),
        stream(&[&call, r#""finishReason":"SAFETY""#]),
        format!("{}data: {ERROR}\n\n", stream(&[&text])),
        format!("data: {ERROR}\n\n"),
    ] {
        assert_eq!(judge(&stream), Ok(()), "{stream}");
        let elements: Vec<&str> = stream.split("data: ").skip(1).map(str::trim).collect();
        assert_eq!(array(format!("\n[{}]\n", elements.join(",\r\n")).as_bytes()), Ok(()), "{stream}");
    }
    assert_eq!(body(answer(&last(r#"{"text":"a"}"#, "STOP")).as_bytes()), Ok(()));
}

#[test]
fn what_may_not_stand_there_is_named() {
    let text = parts(r#"{"text":"a"}"#);
    let end = last(r#"{"text":""}"#, "STOP");
    let part = |part: &str| stream(&[&last(part, "STOP")]);
    let head = |head: &str| format!("data: {{\"candidates\":[{{{end}}}]{head}}}\n\n");
    for (stream, what) in [
        (String::new(), "ended without a finishReason"),
        (stream(&[&text]), "ended without a finishReason"),
        (stream(&[&end, &text]), "a chunk after its finishReason"),
        (format!("{}data: {ERROR}\n\n", stream(&[&end])), "an error after the finishReason"),
        (format!("data: {ERROR}\n\n{}", stream(&[&end])), "a chunk after an error"),
        ("data: {\"error\":{\"message\":\"m\"}}\n\n".into(), "without code, message or status"),
        (stream(&[&parts("")]), "candidate 0 without parts"),
        (stream(&[r#""index":0"#]), "candidate 0 without parts"),
        (stream(&[r#""content":{"parts":[{"text":"a"}]}"#]), "the role is None"),
        (stream(&[&last(r#"{"text":"a"}"#, "FUNCTION_CALL")]), "the finishReason is FUNCTION_CALL"),
        (part("{}"), "a part with 0 data fields"),
        (part(r#"{"text":"a","functionCall":{"name":"f"}}"#), "a part with 2 data fields"),
        (part(r#"{"text":7}"#), "expected a string"),
        (part(r#"{"text":"a","thoughtSignature":"~"}"#), "no base 64"),
        (part(r#"{"text":"a","thoughtSignature":""}"#), "no base 64"),
        (part(r#"{"functionCall":{"args":{}}}"#), "without a name"),
        (part(r#"{"functionCall":{"name":"f","args":"{}"}}"#), "args that are no object"),
        (part(r#"{"functionCall":{"name":"f","willContinue":true}}"#), "a function call with `willContinue`"),
        (
            part(r#"{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"a","name":"f"}}"#),
            "an id of a call that is not its own",
        ),
        (head(""), "without modelVersion or responseId"),
        (head(r#","modelVersion":"up""#), "without modelVersion or responseId"),
        (
            format!("{}{}", stream(&[&text]), head(r#","modelVersion":"other","responseId":"r1""#)),
            "modelVersion or responseId changed",
        ),
        (
            head(r#","modelVersion":"m","responseId":"r","usageMetadata":{"promptTokenCount":1,"totalTokenCount":2}"#),
            "totalTokenCount is Some(2) and its parts make 1",
        ),
        ("data: [DONE]\n\n".into(), "expected an object, found an array"),
        ("data: 7\n\n".into(), "expected an object"),
        (": keepalive\n\n".into(), "a line without data"),
        (format!("event: x\n{}", stream(&[&end])), "a named event"),
        ("data: {\ndata: }\n\n".into(), "data of several lines"),
    ] {
        let found = judge(&stream).unwrap_err();
        assert!(found.contains(what), "{found}: {stream}");
    }
    assert!(array(b"[]").unwrap_err().contains("without a finishReason"));
    assert!(array(format!("[{}", answer(&end)).as_bytes()).is_err());
    assert!(body(answer(&text).as_bytes()).unwrap_err().contains("without a finishReason"));
}
