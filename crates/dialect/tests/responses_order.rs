//! The order of a Responses stream: what it refuses. Each case breaks a lawful stream in one place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]

use bytes::Bytes;
use turnkeep_base::{ClientError, Dialect, Usage};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_dialect::reply::ReplyOptions;
use turnkeep_dialect::responses::error;
use turnkeep_dialect::responses::order::Order;
use turnkeep_dialect::responses::reply_encode::StreamEncoder;
use turnkeep_wire::sse;

fn lawful() -> String {
    let options = ReplyOptions {
        client: Dialect::Responses,
        upstream: Dialect::Chat,
        model: "m".into(),
        usage_wanted: false,
        choices: 1,
        id: "1".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    };
    let mut encoder = StreamEncoder::new(&options);
    let mut out = Vec::new();
    let delta = |block, delta| Event::Delta { block, delta };
    for event in [
        Event::Start { id: None, model: None, usage: None },
        Event::BlockStart { block: 0, kind: Block::Thinking },
        delta(0, Delta::Thinking("hm".into())),
        Event::BlockStop { block: 0 },
        Event::BlockStart { block: 1, kind: Block::Text },
        delta(1, Delta::Text("a".into())),
        Event::BlockStop { block: 1 },
        Event::BlockStart { block: 2, kind: Block::ToolCall { id: "c".into(), name: "f".into() } },
        delta(2, Delta::Arguments("{}".into())),
        Event::BlockStop { block: 2 },
        Event::Usage(Usage { input: 1, output: 2, ..Usage::default() }),
        Event::Finish { reason: Finish::Stop, stop_sequence: None },
        Event::End,
    ] {
        encoder.event(&event, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn judge(stream: &str) -> Result<(), String> {
    let (mut reader, mut order) = (sse::Reader::new(1 << 20), Order::default());
    reader.push(Bytes::copy_from_slice(stream.as_bytes()));
    while let Some(frame) = reader.next_frame().unwrap() {
        order.frame(&frame)?;
    }
    order.finish()
}

/// The stream without the events of a type, the others numbered anew.
fn without(kind: &str) -> String {
    let frames = lawful();
    let kept = frames.split_inclusive("\n\n").filter(|frame| !frame.starts_with(&format!("event: {kind}\n")));
    renumbered(kept)
}

fn renumbered<'a>(frames: impl Iterator<Item = &'a str>) -> String {
    let number = |(number, frame): (usize, &str)| {
        let (before, rest) = frame.split_once("\"sequence_number\":").unwrap();
        let rest = rest.trim_start_matches(|byte: char| byte.is_ascii_digit());
        format!("{before}\"sequence_number\":{number}{rest}")
    };
    frames.enumerate().map(number).collect()
}

#[test]
fn a_lawful_stream_is_lawful_also_with_comments_and_signs_of_life() {
    let stream = lawful();
    judge(&stream).unwrap();
    let (first, rest) = stream.split_once("\n\n").unwrap();
    judge(&format!(": c\n\n{first}\n\nevent: keepalive\ndata: {{\"type\":\"keepalive\"}}\n\n{rest}")).unwrap();
    assert!(judge(&format!("event: keepalive\ndata: {{\"type\":\"keepalive\"}}\n\n{stream}")).is_err());
}

#[test]
fn every_event_is_needed() {
    let stream = lawful();
    let mut kinds: Vec<&str> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 15);
    for kind in kinds {
        assert!(judge(&without(kind)).is_err(), "without {kind}");
    }
}

#[test]
fn no_event_may_come_twice() {
    let stream = lawful();
    let frames: Vec<&str> = stream.split_inclusive("\n\n").collect();
    for at in 0..frames.len() {
        // A piece twice is another text than the one that is done.
        let twice = renumbered(frames[..=at].iter().chain(&frames[at..]).copied());
        assert!(judge(&twice).is_err(), "{}", frames[at]);
    }
}

#[test]
fn what_is_wrong_in_one_place_is_seen() {
    let stream = lawful();
    for (from, to) in [
        ("\"sequence_number\":4", "\"sequence_number\":5"),
        ("\"sequence_number\":4,", ""),
        ("event: response.output_text.delta\n", ""),
        ("event: response.output_text.delta\n", "event: response.output_text.done\n"),
        ("\"logprobs\":[]", "\"logprobs\":null"),
        ("\"delta\":\"a\"", "\"delta\":\"b\""),
        ("\"output_index\":1", "\"output_index\":3"),
        ("\"output_index\":1", "\"output_index\":0"),
        ("\"item_id\":\"msg_1_1\"", "\"item_id\":\"msg_1_2\""),
        ("\"content_index\":0", "\"content_index\":1"),
        ("\"id\":\"msg_1_1\"", "\"id\":\"rs_1_0\""),
        ("\"id\":\"fc_1_2\"", "\"id\":\"call_1\""),
        ("\"call_id\":\"c\"", "\"call_id\":\"\""),
        ("\"status\":\"in_progress\",\"arguments\"", "\"status\":\"done\",\"arguments\""),
        ("\"id\":\"resp_1\"", "\"id\":\"resp_2\""),
        ("\"model\":\"m\"", "\"model\":\"n\""),
        ("\"tools\":[]", "\"tools\":null"),
        ("\"text\":{\"format\":{\"type\":\"text\"}}", "\"text\":{}"),
        ("\"parallel_tool_calls\":true,", ""),
        ("\"instructions\":null,", ""),
        ("\"total_tokens\":3", "\"total_tokens\":4"),
        ("\"input_tokens_details\":{\"cached_tokens\":0,\"cache_write_tokens\":0},", ""),
        ("\"output_tokens_details\":{\"reasoning_tokens\":0},", ""),
        ("\"status\":\"completed\",\"completed_at\":7", "\"status\":\"completed\",\"completed_at\":null"),
        ("\"status\":\"completed\",\"completed_at\"", "\"status\":\"incomplete\",\"completed_at\""),
        ("\"summary_index\":0", "\"summary_index\":1"),
    ] {
        assert!(stream.contains(from), "{from}");
        let broken = stream.replacen(from, to, 1);
        assert!(judge(&broken).is_err(), "{from} as {to}");
    }
    // The output of the end is what was done.
    let (before, end) = stream.rsplit_once("event: ").unwrap();
    for (from, to) in [("\"arguments\":\"{}\"", "\"arguments\":\"{ }\""), ("\"output\":[{", "\"output\":[{},{")] {
        assert!(end.contains(from));
        assert!(judge(&format!("{before}event: {}", end.replacen(from, to, 1))).is_err(), "{from}");
    }
}

#[test]
fn an_error_ends_a_stream_anywhere_and_nothing_follows() {
    let failed = error::event(&ClientError::new(503, "upstream_unavailable", "gone"), "turn_1");
    let failed = std::str::from_utf8(&failed).unwrap();
    let stream = lawful();
    let frames: Vec<&str> = stream.split_inclusive("\n\n").collect();
    for at in 0..frames.len() {
        judge(&(frames[..at].concat() + failed)).unwrap();
    }
    assert!(judge(&(stream.clone() + failed)).is_err());
    assert!(judge(&(failed.to_owned() + &stream)).is_err());
    assert!(judge(&failed.replace("\"param\":null,", "")).is_err());
}

#[test]
fn a_stream_that_stops_is_not_at_its_end() {
    let stream = lawful();
    let frames: Vec<&str> = stream.split_inclusive("\n\n").collect();
    for at in 0..frames.len() {
        assert!(judge(&frames[..at].concat()).is_err(), "{at}");
    }
}

#[test]
fn a_usage_of_absurd_counts_adds_up_or_not_and_never_overflows() {
    let lawful = lawful();
    for (input, total) in [(u64::MAX, u64::MAX), (u64::MAX, 1)] {
        let absurd = lawful
            .replace("\"input_tokens\":1,", &format!("\"input_tokens\":{input},"))
            .replace("\"total_tokens\":3", &format!("\"total_tokens\":{total}"));
        assert_ne!(absurd, lawful);
        let mut reader = sse::Reader::new(1 << 20);
        reader.push(Bytes::from(absurd));
        let mut order = Order::default();
        let mut said = Ok(());
        while let Some(frame) = reader.next_frame().unwrap() {
            said = said.and_then(|()| order.frame(&frame));
        }
        assert_eq!(said.is_ok(), total == u64::MAX, "{said:?}");
    }
}
