//! A Chat answer on its way to a Chat client: the bytes stay, the facts are read, and an answer is complete only when its
//! own words say so.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Class, Finish};
use turnkeep_dialect::reply::{Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec, plain};

fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
        upstream: Dialect::Chat,
        model: "m".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

fn run(options: &ReplyOptions, chunks: &[&[u8]]) -> (Vec<Piece>, Result<(), ReplyFault>, Facts) {
    let mut codec = StreamCodec::new(options);
    let mut out = Vec::new();
    let fed = chunks.iter().try_for_each(|chunk| codec.feed(Bytes::copy_from_slice(chunk), &mut out));
    let ended = fed.and_then(|()| codec.finish(&mut out));
    (out, ended, codec.facts().clone())
}

fn bytes(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| std::str::from_utf8(&piece.bytes).unwrap()).collect()
}

fn classes(pieces: &[Piece]) -> Vec<Class> {
    pieces.iter().map(|piece| piece.class).collect()
}

const ROLE: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n";
const HELLO: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}llo\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n";
const STOP: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n";
const USAGE: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":14,\"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const COMMENT: &str = ": keepalive\n\n";

#[test]
fn at_every_split_the_bytes_and_the_facts_are_the_same() {
    let stream = [COMMENT, ROLE, HELLO, STOP, USAGE, DONE].concat();
    let (whole, ended, facts) = run(&options(), &[stream.as_bytes()]);
    assert_eq!(ended, Ok(()));
    assert_eq!(bytes(&whole), stream);
    use Class::{Answer, Preamble, Terminal};
    assert_eq!(classes(&whole), [Preamble, Preamble, Answer, Terminal, Terminal, Terminal]);
    assert_eq!(facts.usage, Some(Usage::from_inclusive(10, 3, 0, 4, 1)));
    assert_eq!((facts.finish, facts.content_bytes), (Some(Finish::Stop), 6));
    assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("c1"), Some("up")));
    for at in 0..stream.len() {
        let (first, second) = stream.as_bytes().split_at(at);
        let (pieces, ended, split) = run(&options(), &[first, second]);
        assert_eq!((ended, &split), (Ok(()), &facts), "split at {at}");
        assert_eq!(pieces, whole, "split at {at}");
    }
}

#[test]
fn the_usage_chunk_is_held_back_from_a_client_that_did_not_ask_for_it() {
    let (pieces, ended, facts) = run(
        &ReplyOptions { usage_wanted: false, ..options() },
        &[[ROLE, HELLO, STOP, USAGE, DONE].concat().as_bytes()],
    );
    assert_eq!(ended, Ok(()));
    assert_eq!(bytes(&pieces), [ROLE, HELLO, STOP, DONE].concat());
    assert!(facts.usage.is_some());
}

#[test]
fn whatever_the_model_made_commits_the_answer_and_nothing_else_does() {
    for (delta, class) in [
        (r#"{"role":"assistant","content":null}"#, Class::Preamble),
        (r#"{"content":"","refusal":null,"tool_calls":[],"reasoning_content":null}"#, Class::Preamble),
        (r#"{"content":"x"}"#, Class::Answer),
        (r#"{"reasoning_content":"x"}"#, Class::Answer),
        (r#"{"reasoning":"x"}"#, Class::Answer),
        (r#"{"refusal":"x"}"#, Class::Answer),
        (
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
            Class::Preamble,
        ),
        (r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#, Class::Answer),
        (r#"{"function_call":{"arguments":"{"}}"#, Class::Answer),
        (r#"{"audio":{"data":"AA"}}"#, Class::Answer),
    ] {
        let frame = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        let (pieces, ..) = run(&options(), &[frame.as_bytes()]);
        assert_eq!(classes(&pieces), [class], "{delta}");
    }
}

#[test]
fn an_answer_is_complete_by_its_finish_reason_and_not_by_its_end() {
    for (stream, complete) in [
        ([ROLE, HELLO, STOP, DONE].concat(), true),
        ([ROLE, HELLO, STOP].concat(), true),
        ([ROLE, STOP, DONE].concat(), true),
        ([ROLE, HELLO, DONE].concat(), false),
        ([ROLE, HELLO].concat(), false),
        (ROLE.to_owned(), false),
        (DONE.to_owned(), false),
        (String::new(), false),
        ([ROLE, HELLO, &STOP[..40]].concat(), false),
    ] {
        let (_, ended, _) = run(&options(), &[stream.as_bytes()]);
        let kind = ended.map_err(|fault| fault.kind);
        assert_eq!(kind, if complete { Ok(()) } else { Err(FaultKind::StreamTruncated) }, "{stream}");
    }
}

#[test]
fn every_choice_must_finish() {
    let chunk = |index: u8, rest: &str| format!("data: {{\"choices\":[{{\"index\":{index},{rest}}}]}}\n\n");
    let (said, done) = (r#""delta":{"content":"x"}"#, r#""delta":{},"finish_reason":"length""#);
    let two = ReplyOptions { choices: 2, ..options() };
    let both = [chunk(0, said), chunk(0, done), chunk(1, said), chunk(1, done), DONE.into()].concat();
    let (pieces, ended, facts) = run(&two, &[both.as_bytes()]);
    assert_eq!((ended, facts.finish), (Ok(()), Some(Finish::Length)));
    use Class::{Answer, Terminal};
    assert_eq!(classes(&pieces), [Answer, Answer, Answer, Terminal, Terminal]);
    let one = [chunk(0, said), chunk(1, said), chunk(0, done), DONE.into()].concat();
    assert_eq!(run(&two, &[one.as_bytes()]).1.unwrap_err().kind, FaultKind::StreamTruncated);
    let fewer = [chunk(0, said), chunk(0, done), DONE.into()].concat();
    assert_eq!(run(&two, &[fewer.as_bytes()]).1, Ok(()), "a server that knows no `n`");
}

#[test]
fn nothing_after_done_is_passed_on() {
    let stream = [ROLE, STOP, DONE, HELLO].concat();
    let (pieces, ended, _) = run(&options(), &[stream.as_bytes()]);
    assert_eq!((ended, bytes(&pieces)), (Ok(()), [ROLE, STOP, DONE].concat()));
}

#[test]
fn errors_in_the_stream_are_faults_of_their_own_kind() {
    for (frame, kind) in [
        (
            r#"data: {"error":{"message":"The server is overloaded","type":"server_error","code":null}}"#,
            FaultKind::ModelOverloaded,
        ),
        (r#"data: {"error":{"message":"Provider failed","code":502}}"#, FaultKind::UpstreamUnavailable),
        (r#"data: {"error":{"message":"x","code":"rate_limit_exceeded"}}"#, FaultKind::RateLimited),
        (r#"data: {"error":"something"}"#, FaultKind::Unclassified),
        (
            r#"data: {"object":"error","message":"internal error","type":"InternalServerError","code":500}"#,
            FaultKind::UpstreamInternal,
        ),
        (
            r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":429,"message":"slow"}}]}"#,
            FaultKind::RateLimited,
        ),
        (r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#, FaultKind::UpstreamInternal),
        ("data: <html>", FaultKind::MalformedResponse),
        ("data: {\"choices\":[", FaultKind::MalformedResponse),
        ("data: 5", FaultKind::MalformedResponse),
    ] {
        let stream = format!("{ROLE}{HELLO}{frame}\n\n{DONE}");
        let (pieces, ended, _) = run(&options(), &[stream.as_bytes()]);
        assert_eq!(ended.unwrap_err().kind, kind, "{frame}");
        assert_eq!(bytes(&pieces), [ROLE, HELLO].concat());
    }
}

#[test]
fn shapes_that_nobody_knows_are_passed_on() {
    let strange = "data: {\"choices\":null,\"x_info\":{\"deep\":[1,2]}}\n\ndata: {\"choices\":[],\"prompt_filter_results\":[{}]}\n\ndata:\n\n";
    let stream = [ROLE, strange, HELLO, STOP, DONE].concat();
    let (pieces, ended, _) = run(&options(), &[stream.as_bytes()]);
    assert_eq!((ended, bytes(&pieces)), (Ok(()), stream));
}

#[test]
fn content_and_finish_in_one_chunk_wait_for_the_end() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\n\n";
    let mut codec = StreamCodec::new(&options());
    let mut out = Vec::new();
    codec.feed(Bytes::from_static(stream.as_bytes()), &mut out).unwrap();
    assert_eq!((classes(&out), codec.progress()), (vec![Class::Terminal], Progress::Finishing));
    assert_eq!(codec.settle(&mut out), Ok(()));
}

#[test]
fn a_plain_answer_is_checked_and_kept() {
    let good = br#"{ "id":"c","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let (bytes, facts) = plain(&options(), Bytes::from_static(good)).unwrap();
    assert_eq!(&bytes[..], good);
    assert_eq!((facts.finish, facts.content_bytes), (Some(Finish::ToolCalls), 2));
    assert_eq!(facts.usage, Some(Usage::from_inclusive(1, 0, 0, 2, 0)));
    for (body, kind) in [
        ("", FaultKind::MalformedResponse),
        ("<html></html>", FaultKind::MalformedResponse),
        ("[]", FaultKind::MalformedResponse),
        ("{}", FaultKind::MalformedResponse),
        (r#"{"choices":[]}"#, FaultKind::MalformedResponse),
        (r#"{"choices":[{"message":{"content":"x"}}]}"#, FaultKind::StreamTruncated),
        (r#"{"choices":[{"message":{"content":"x"},"finish_reason":null}]}"#, FaultKind::StreamTruncated),
        (r#"{"error":{"code":429,"message":"slow"}}"#, FaultKind::RateLimited),
        (r#"{"error":{"code":"insufficient_quota"}}"#, FaultKind::QuotaExhausted),
    ] {
        let fault = plain(&options(), Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
        assert_eq!(fault.kind, kind, "{body}");
    }
}

proptest! {
    #[test]
    fn no_stream_makes_it_panic_and_what_goes_out_came_in(pieces in prop::collection::vec(prop::sample::select(vec![
        ROLE, HELLO, STOP, USAGE, DONE, COMMENT, "data: {}\n\n", "data: {\"choices\":[{}]}\n\n", "event: x\n", "data: [", "\n", "\r", "data", ":", "\u{feff}",
    ]), 0..12), cut in any::<prop::sample::Index>()) {
        let stream = pieces.concat();
        let at = cut.index(stream.len() + 1);
        let (first, second) = stream.as_bytes().split_at(at);
        let (pieces, ..) = run(&options(), &[first, second]);
        let out: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        prop_assert!(stream.as_bytes().starts_with(&out));
    }
}
