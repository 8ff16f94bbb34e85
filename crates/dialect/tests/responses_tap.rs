//! A Responses answer on its way to a Responses client.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Class, Finish};
use turnkeep_dialect::reply::{self, Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};
use turnkeep_dialect::responses::tap::{self, Tap};
use turnkeep_wire::sse;

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Responses,
        upstream: Dialect::Responses,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

const WHOLE: &str = r#""id":"resp_1","object":"response","created_at":5,"model":"up","output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[]"#;

fn event(name: &str, fields: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":0,{fields}}}\n\n")
}

fn created() -> String {
    event("response.created", &format!("\"response\":{{{WHOLE},\"status\":\"in_progress\",\"usage\":null}}"))
}

fn frame(bytes: &str) -> sse::Frame {
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(Bytes::copy_from_slice(bytes.as_bytes()));
    reader.next_frame().unwrap().unwrap()
}

fn feed(stream: &str, chunk: usize) -> (Vec<Piece>, Result<Facts, ReplyFault>) {
    let mut codec = StreamCodec::new(&options());
    let mut pieces = Vec::new();
    let read = (|| {
        for part in stream.as_bytes().chunks(chunk) {
            codec.feed(Bytes::copy_from_slice(part), &mut pieces)?;
        }
        codec.finish(&mut pieces)?;
        assert_eq!(codec.progress(), Progress::Done);
        Ok(codec.facts().clone())
    })();
    (pieces, read)
}

fn full() -> String {
    [
        created(),
        event("response.output_item.added", r#""output_index":0,"item":{"id":"ws","type":"web_search_call","status":"in_progress"}"#),
        event("response.web_search_call.searching", r#""output_index":0,"item_id":"ws""#),
        event("response.output_item.done", r#""output_index":0,"item":{"id":"ws","type":"web_search_call","status":"completed"}"#),
        ": a comment\n\n".into(),
        event("response.output_item.added", r#""output_index":1,"item":{"id":"m","type":"message","content":[]}"#),
        event("response.output_text.delta", r#""output_index":1,"item_id":"m","content_index":0,"delta":"four","logprobs":[]"#),
        event("response.later_invention", r#""x":1"#),
        event("keepalive", r#""x":1"#),
        event(
            "response.completed",
            &format!(
                r#""response":{{{WHOLE},"status":"completed","usage":{{"input_tokens":10,"input_tokens_details":{{"cached_tokens":4,"cache_write_tokens":1}},"output_tokens":3,"output_tokens_details":{{"reasoning_tokens":2}},"total_tokens":13}}}}"#
            ),
        ),
    ]
    .concat()
}

#[test]
fn every_byte_stays_and_the_facts_are_read_in_passing() {
    let stream = full();
    for chunk in [1, 3, 64, stream.len()] {
        let (pieces, facts) = feed(&stream, chunk);
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        assert_eq!(String::from_utf8(joined).unwrap(), stream, "{chunk}");
        let usage = Usage { input: 5, cache_read: 4, cache_write: 1, output: 3, reasoning: 2 };
        let expected = Facts {
            usage: Some(usage),
            finish: Some(Finish::Stop),
            model: Some("up".into()),
            id: Some("resp_1".into()),
            content_bytes: 4,
            ..Facts::default()
        };
        assert_eq!(facts.unwrap(), expected, "{chunk}");
        let classes: Vec<Class> = pieces.iter().map(|piece| piece.class).collect();
        use Class::{Answer as A, Preamble as P, Terminal as T};
        assert_eq!(classes, [P, P, A, A, P, P, A, A, P, T], "{chunk}");
    }
}

#[test]
fn what_follows_the_end_is_not_passed_on() {
    let (pieces, facts) = feed(&(full() + "data: [DONE]\n\n"), 40);
    assert!(facts.is_ok());
    assert!(!pieces.iter().any(|piece| piece.bytes.ends_with(b"[DONE]\n\n")));
}

#[test]
fn the_end_says_why() {
    for (name, fields, finish) in [
        (
            "response.completed",
            r#""status":"completed","output":[{"type":"function_call","name":"f"}]"#,
            Finish::ToolCalls,
        ),
        (
            "response.completed",
            r#""status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]"#,
            Finish::Refusal,
        ),
        (
            "response.incomplete",
            r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#,
            Finish::Length,
        ),
        (
            "response.incomplete",
            r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#,
            Finish::Refusal,
        ),
    ] {
        let stream = created() + &event(name, &format!("\"response\":{{{fields}}}"));
        assert_eq!(feed(&stream, 1000).1.unwrap().finish, Some(finish), "{fields}");
    }
    // A call that stops in the middle of its arguments is none to be made, whatever the end says.
    let call = |arguments: &str| format!(r#"{{"type":"function_call","name":"f","arguments":"{arguments}"}}"#);
    let completed = |output: &str| {
        event("response.completed", &format!(r#""response":{{"status":"completed","output":[{output}]}}"#))
    };
    for (arguments, finish) in
        [("{\\\"a\\\":1}", Finish::ToolCalls), ("{\\\"a\\\":", Finish::Length), ("", Finish::ToolCalls)]
    {
        let stream = created() + &completed(&call(arguments));
        assert_eq!(feed(&stream, 1000).1.unwrap().finish, Some(finish), "{arguments}");
        let done = event("response.output_item.done", &format!(r#""item":{}"#, call(arguments)));
        let stream = created() + &done + &completed("");
        assert_eq!(feed(&stream, 1000).1.unwrap().finish, Some(finish), "{arguments}");
    }
    let called = event("response.output_item.added", r#""item":{"type":"custom_tool_call","name":"f"}"#);
    let end = event("response.completed", r#""response":{"status":"completed","output":[]}"#);
    assert_eq!(feed(&(created() + &called + &end), 1000).1.unwrap().finish, Some(Finish::ToolCalls));
}

#[test]
fn an_answer_that_failed_or_broke_off_is_a_fault() {
    for (rest, kind) in [
        (event("error", r#""code":"rate_limit_exceeded","message":"m","param":null"#), FaultKind::RateLimited),
        (
            event("response.failed", r#""response":{"status":"failed","error":{"code":"server_error","message":"m"}}"#),
            FaultKind::UpstreamInternal,
        ),
        ("data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}\n\n".into(), FaultKind::RateLimited),
        ("data: {\n\n".into(), FaultKind::MalformedResponse),
        (String::new(), FaultKind::StreamTruncated),
        ("data: [DONE]\n\n".into(), FaultKind::StreamTruncated),
    ] {
        let (pieces, read) = feed(&(created() + &rest), 1000);
        assert_eq!(read.unwrap_err().kind, kind, "{rest}");
        // Nothing of the failure has been passed on.
        assert_eq!(pieces.len(), 1, "{rest}");
    }
}

#[test]
fn the_first_event_decides_whether_the_answer_is_passed_on() {
    let tap = Tap::new(&options());
    assert!(!tap.is_off_spec(&frame(&created())));
    assert!(tap.is_off_spec(&frame(&created().replace("\"sequence_number\":0,", ""))));
    for field in [
        "\"output\":[],",
        "\"parallel_tool_calls\":true,",
        "\"tool_choice\":\"auto\",",
        "\"created_at\":5,",
        ",\"tools\":[]",
        "\"model\":\"up\",",
        "\"id\":\"resp_1\",",
    ] {
        assert!(tap.is_off_spec(&frame(&created().replace(field, ""))), "{field}");
    }
    // Not the event that has to be first.
    assert!(tap.is_off_spec(&frame(&event("response.output_text.delta", "\"delta\":\"a\""))));
    // Nothing of the answer.
    for other in [
        ": comment\n\n".to_owned(),
        event("keepalive", "\"x\":1"),
        event("error", "\"code\":\"c\""),
        "data: {\n\n".into(),
    ] {
        assert!(!tap.is_off_spec(&frame(&other)), "{other}");
    }
}

#[test]
fn once_an_event_has_passed_no_other_is_judged() {
    let mut tap = Tap::new(&options());
    let mut facts = Facts::default();
    let bare = event("response.output_text.delta", "\"delta\":\"a\"").replace("\"sequence_number\":0,", "");
    tap.frame(&frame(": comment\n\n"), &mut facts).unwrap();
    assert!(tap.is_off_spec(&frame(&bare)));
    tap.frame(&frame(&created()), &mut facts).unwrap();
    assert!(!tap.is_off_spec(&frame(&bare)));
}

#[test]
fn a_whole_answer_passes_as_it_is_or_is_written_anew() {
    let body = |fields: &str| {
        format!(
            r#"{{{},"status":"completed",{fields}}}"#,
            WHOLE.replace(
                "\"output\":[]",
                r#""output":[{"id":"m","type":"message","content":[{"type":"output_text","text":"hi"}]}]"#
            )
        )
    };
    let usage = r#""usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}"#;
    let good = body(usage);
    assert!(!tap::is_off_spec(good.as_bytes()));
    let (out, facts) = reply::plain(&options(), Bytes::from(good.clone())).unwrap();
    assert_eq!(&out[..], good.as_bytes());
    assert_eq!(
        (facts.finish, facts.usage.unwrap().cache_read, facts.id.as_deref()),
        (Some(Finish::Stop), 1, Some("resp_1"))
    );
    for bad in [
        body(r#""usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}"#),
        good.replace("\"parallel_tool_calls\":true,", ""),
        good.replace(",\"tools\":[]", ""),
    ] {
        assert!(tap::is_off_spec(bad.as_bytes()), "{bad}");
        let (out, facts) = reply::plain(&options(), Bytes::from(bad)).unwrap();
        let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            out["usage"]["input_tokens_details"]["cached_tokens"].as_u64(),
            facts.usage.map(|usage| usage.cache_read)
        );
        assert_eq!((&out["output"][0]["content"][0]["text"], out["tools"].is_array()), (&"hi".into(), true));
    }
}

#[test]
fn a_whole_answer_that_failed_or_is_not_at_its_end_is_a_fault() {
    for (status, kind, word) in [
        (
            r#""status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}"#,
            FaultKind::RateLimited,
            "slow",
        ),
        (r#""status":"cancelled","error":null"#, FaultKind::UpstreamInternal, "cancelled"),
        (r#""status":"queued","error":null"#, FaultKind::MalformedResponse, "`queued`"),
        (r#""status":"in_progress","error":null"#, FaultKind::MalformedResponse, "`in_progress`"),
    ] {
        let fault = tap::plain(format!("{{{WHOLE},{status}}}").as_bytes(), &mut Facts::default()).unwrap_err();
        assert_eq!(fault.kind, kind, "{status}");
        assert!(fault.evidence.detail.contains(word), "{fault:?}");
    }
    let error = br#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
    assert!(!tap::is_off_spec(error) && !tap::is_off_spec(b"{") && !tap::is_off_spec(b""));
    assert_eq!(tap::plain(error, &mut Facts::default()).unwrap_err().kind, FaultKind::RateLimited);
    let mut facts = Facts::default();
    let cut = format!(r#"{{{WHOLE},"status":"incomplete","incomplete_details":{{"reason":"max_output_tokens"}}}}"#);
    tap::plain(cut.as_bytes(), &mut facts).unwrap();
    assert_eq!(facts.finish, Some(Finish::Length));
}
