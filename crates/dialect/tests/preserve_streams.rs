//! A streamed answer reaches a client of the same dialect byte for byte: comments, pings, unknown events and foreign
//! line endings too. Only the usage chunk that a Chat client did not ask for is withheld, and nothing follows the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Finish};
use turnkeep_dialect::reply::{Piece, Progress, ReplyOptions, StreamCodec};
use turnkeep_dialect::{chat, messages};

fn options(dialect: Dialect, usage_wanted: bool) -> ReplyOptions {
    ReplyOptions {
        client: dialect,
        upstream: dialect,
        model: "asked".into(),
        usage_wanted,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

/// A block and the pieces it comes in.
fn block() -> impl Strategy<Value = (Block, Vec<Delta>)> {
    let texts = || prop::collection::vec("[a-z é😀\"\\\\\n{}:/]{1,8}", 0..4);
    let call = ("[a-z:._0-9]{1,12}", "[a-zA-Z_-]{1,10}", texts()).prop_map(|(id, name, texts)| {
        (Block::ToolCall { id, name }, texts.into_iter().map(Delta::Arguments).collect())
    });
    let thinking = (texts(), prop::option::of("[a-zA-Z0-9+/]{1,20}")).prop_map(|(texts, signature)| {
        let signature = signature.map(Delta::Signature);
        (Block::Thinking, texts.into_iter().map(Delta::Thinking).chain(signature).collect())
    });
    prop_oneof![
        texts().prop_map(|texts| (Block::Text, texts.into_iter().map(Delta::Text).collect())),
        texts().prop_map(|texts| (Block::Refusal, texts.into_iter().map(Delta::Text).collect())),
        "[a-z]{1,9}".prop_map(|data| (Block::RedactedThinking(data), vec![])),
        thinking,
        call,
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (0u64..9999, 0u64..99, 0u64..99, 0u64..9999, 0u64..99).prop_map(
        |(input, cache_read, cache_write, output, reasoning)| Usage {
            input,
            cache_read,
            cache_write,
            output: output + reasoning,
            reasoning,
        },
    )
}

/// A lawful answer. `together` opens all blocks at once and lets them grow in turns.
fn answer() -> impl Strategy<Value = Vec<Event>> {
    let reasons = prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::Refusal]);
    (prop::collection::vec(block(), 0..5), any::<bool>(), reasons, prop::option::of(usage())).prop_map(
        |(blocks, together, reason, usage)| {
            let start = |at: usize, kind: &Block| Event::BlockStart { block: at as u32, kind: kind.clone() };
            let delta = |at: usize, delta: &Delta| Event::Delta { block: at as u32, delta: delta.clone() };
            let mut events =
                vec![Event::Start { id: Some("chatcmpl-1".into()), model: Some("up".into()), usage: None }];
            if together {
                events.extend(blocks.iter().enumerate().map(|(at, (kind, _))| start(at, kind)));
                for round in 0..4 {
                    let grows = |(at, (_, deltas)): (usize, &(Block, Vec<Delta>))| Some(delta(at, deltas.get(round)?));
                    events.extend(blocks.iter().enumerate().filter_map(grows));
                }
                events.extend((0..blocks.len()).map(|at| Event::BlockStop { block: at as u32 }));
            } else {
                for (at, (kind, deltas)) in blocks.iter().enumerate() {
                    events.push(start(at, kind));
                    events.extend(deltas.iter().map(|each| delta(at, each)));
                    events.push(Event::BlockStop { block: at as u32 });
                }
            }
            let calls = blocks.iter().any(|(kind, _)| matches!(kind, Block::ToolCall { .. }));
            let reason = if calls && reason == Finish::Stop { Finish::ToolCalls } else { reason };
            events.push(Event::Finish { reason, stop_sequence: None });
            events.extend(usage.map(Event::Usage));
            events.push(Event::End);
            events
        },
    )
}

/// One event as an upstream writes it, and whether it carries something the model made.
fn frames(dialect: Dialect, events: &[Event]) -> Vec<(String, bool)> {
    let options = options(dialect, true);
    let mut chat = chat::reply_encode::StreamEncoder::new(&options);
    let mut messages = messages::reply_encode::StreamEncoder::new(&options);
    let mut frames = Vec::new();
    for event in events {
        let mut out = Vec::new();
        match dialect {
            Dialect::Chat => chat.event(event, &mut out),
            Dialect::Messages => messages.event(event, &mut out),
            Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
        };
        let text = String::from_utf8(out).unwrap();
        let made = matches!(event, Event::Delta { .. } | Event::BlockStart { kind: Block::RedactedThinking(_), .. });
        // A Messages encoder may write what waited; then the first frame is of something else.
        let made = made && dialect == Dialect::Chat;
        frames.extend(text.split_inclusive("\n\n").map(|frame| (frame.to_owned(), made)));
    }
    frames
}

/// What a proxy or a newer server puts between the events, and how it ends its lines.
#[derive(Clone, Debug)]
struct Noise {
    before: Option<usize>,
    ending: &'static str,
    /// Another field in the frame.
    field: &'static str,
    /// The data in two lines.
    two_lines: bool,
}

const BETWEEN: [&str; 6] = [
    ": a comment\n\n",
    ":\n: two\n\n",
    "\n",
    "event: future\ndata: {\"type\":\"future\",\"usage\":null}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "retry: 10\n\n",
];

fn noise() -> impl Strategy<Value = Noise> {
    let endings = prop::sample::select(vec!["\n", "\n", "\r\n", "\r"]);
    let fields = prop::sample::select(vec!["", "", "id: 7\n", ": inside\n", "unknown\n", "retry: 1\n"]);
    (prop::option::weighted(0.3, 0..BETWEEN.len()), endings, fields, any::<bool>())
        .prop_map(|(before, ending, field, two_lines)| Noise { before, ending, field, two_lines })
}

fn noisy(frame: &str, noise: &Noise) -> String {
    let mut frame = format!("{}{frame}", noise.field);
    if noise.two_lines && !noise.field.contains("inside") {
        frame = frame.replacen("data: {", "data: {\ndata:  ", 1);
    }
    frame.replace('\n', noise.ending)
}

/// Feeds a stream in chunks of the given lengths, which repeat.
fn run(options: &ReplyOptions, stream: &[u8], lengths: &[usize]) -> (Vec<Piece>, StreamCodec) {
    let mut codec = StreamCodec::new(options);
    let (mut pieces, mut from) = (Vec::new(), 0);
    for length in lengths.iter().cycle() {
        let to = (from + length).min(stream.len());
        codec.feed(Bytes::copy_from_slice(&stream[from..to]), &mut pieces).unwrap();
        from = to;
        if from == stream.len() {
            break;
        }
    }
    codec.finish(&mut pieces).unwrap();
    (pieces, codec)
}

fn is_usage_chunk(frame: &str) -> bool {
    frame.contains("\"choices\":[],\"usage\":{")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_passes_byte_for_byte_up_to_its_end(
        dialect in prop::sample::select([Dialect::Chat, Dialect::Messages].to_vec()),
        events in answer(),
        noises in prop::collection::vec(noise(), 1..12),
        lengths in prop::collection::vec(1usize..90, 1..8),
        usage_wanted in any::<bool>(),
        after in prop::sample::select(vec!["", "x", ": late\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n", "data: [DONE]\n\n", "\u{0}\r\r\r"]),
    ) {
        let written = frames(dialect, &events);
        let (mut stream, mut wanted) = (String::new(), String::new());
        for ((frame, _), noise) in written.iter().zip(noises.iter().cycle()) {
            let between = noise.before.map(|which| BETWEEN[which].replace('\n', noise.ending)).unwrap_or_default();
            // A line feed behind a lone carriage return is a part of that line's end, and no blank line.
            let between = if stream.ends_with('\r') { between.trim_start_matches('\n') } else { &between };
            let mut both = |text: &str| {
                stream.push_str(text);
                wanted.push_str(text);
            };
            both(between);
            let spelled = noisy(frame, noise);
            if is_usage_chunk(frame) && !usage_wanted {
                // Withheld; its own bytes alone.
                stream.push_str(&spelled);
            } else {
                both(&spelled);
            }
        }
        stream.push_str(after);

        let (pieces, codec) = run(&options(dialect, usage_wanted), stream.as_bytes(), &lengths);
        let passed: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        prop_assert_eq!(String::from_utf8(passed).unwrap(), wanted);
        prop_assert_eq!(codec.progress(), Progress::Done);

        let ends = pieces.iter().position(|piece| piece.class == Class::Terminal).unwrap();
        prop_assert!(pieces[ends..].iter().all(|piece| piece.class == Class::Terminal), "{:?}", pieces);

        // What was read in passing is what the events say.
        let usage = events.iter().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
        prop_assert_eq!(codec.facts().usage.unwrap_or_default(), usage.unwrap_or_default());
        prop_assert!(codec.facts().finish.is_some());
    }

    #[test]
    fn what_the_model_made_never_passes_as_a_preamble(events in answer(), dialect in prop::sample::select([Dialect::Chat, Dialect::Messages].to_vec())) {
        let options = options(dialect, true);
        let mut codec = StreamCodec::new(&options);
        for (frame, made) in frames(dialect, &events) {
            let mut pieces = Vec::new();
            codec.feed(frame.clone().into(), &mut pieces).unwrap();
            let made = made || ["_delta\"", "\"redacted_thinking\""].iter().any(|sign| dialect == Dialect::Messages && frame.contains(sign));
            prop_assert!(!made || pieces.iter().all(|piece| piece.class != Class::Preamble), "{} as {:?}", frame, pieces);
        }
    }

    #[test]
    fn a_stream_that_is_cut_passes_what_came_and_is_a_fault(
        events in answer(), dialect in prop::sample::select([Dialect::Chat, Dialect::Messages].to_vec()), cut in any::<prop::sample::Index>(), length in 1usize..60
    ) {
        let written = frames(dialect, &events);
        let before_end: String = written.iter().map(|(frame, _)| frame.as_str())
            .take_while(|frame| !frame.contains("finish_reason\":\"") && !frame.contains("\"message_delta\"")).collect();
        let stream = &before_end.as_bytes()[..cut.index(before_end.len() + 1)];
        let mut codec = StreamCodec::new(&options(dialect, true));
        let mut pieces = Vec::new();
        for chunk in stream.chunks(length) {
            codec.feed(Bytes::copy_from_slice(chunk), &mut pieces).unwrap();
        }
        let whole_frames = before_end[..].match_indices("\n\n").map(|(at, _)| at + 2).take_while(|end| *end <= stream.len()).last();
        let passed: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        prop_assert_eq!(&passed[..], &stream[..whole_frames.unwrap_or(0)]);
        let fault = codec.finish(&mut pieces).unwrap_err();
        prop_assert_eq!(fault.kind, turnkeep_base::FaultKind::StreamTruncated);
        prop_assert!(pieces.iter().all(|piece| piece.class != Class::Terminal));
    }
}
