//! One upstream stream passed on, and read and written anew: for every legal stream that is at hand (the seeds, and what
//! the lab writes), in all ways of cutting it, both say the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use std::io::{Read, Write};
use turnkeep_base::Dialect;
use turnkeep_fuzz::differential::{Outcome, both_ways, both_ways_whole, options, through};
use turnkeep_fuzz::said::{Part, Said};
use turnkeep_fuzz::seeds;
use turnkeep_lab::{Lab, LabOptions, Script};

/// Seeds that are no whole answer of one candidate in the protocol's words, and why: errors, several choices, log
/// probabilities, tools of the provider's own, another protocol's words, or what an answer that is written anew has no place for.
const OTHERS: &[(&str, &str)] = &[
    ("chat_stream", "error"),
    ("chat_stream", "logprobs"),
    ("chat_stream", "two"),
    ("chat_whole", "annotated"),
    ("chat_whole", "custom"),
    ("chat_whole", "error"),
    ("gemini_stream", "blocked"),
    ("gemini_stream", "code"),
    ("gemini_stream", "error"),
    ("gemini_stream", "partial"),
    ("gemini_whole", "blocked"),
    ("messages_stream", "error"),
    ("messages_stream", "hosted"),
    ("messages_whole", "error"),
    ("responses_stream", "error"),
    ("responses_stream", "failed"),
    ("responses_stream", "hosted"),
    ("responses_stream", "no_prefix"),
    ("responses_stream", "one_id"),
    ("responses_whole", "failed"),
    ("responses_whole", "hosted"),
];

fn name(dialect: Dialect, form: &str) -> String {
    format!("{dialect}_{form}")
}

#[track_caller]
fn same(outcome: Outcome, what: &str) -> Said {
    if let Outcome::Same(said) = outcome {
        return said;
    }
    panic!("{what}: {outcome:?}")
}

#[test]
fn every_legal_seed_says_the_same_when_it_is_passed_on_and_when_it_is_written_anew() {
    let (mut met, mut others, mut wrong) = (0, Vec::new(), Vec::new());
    for dialect in Dialect::ALL {
        for form in ["stream", "whole"] {
            let target = name(dialect, form);
            for seed in seeds::own(&target).unwrap() {
                let file = seed.path.file_name().unwrap().to_str().unwrap().to_owned();
                let outcome = match form {
                    "stream" => both_ways(dialect, &seed.data),
                    _ => both_ways_whole(dialect, &seed.data),
                };
                match outcome {
                    Outcome::Same(said) if said.complete => met += 1,
                    Outcome::Refused | Outcome::PassedOnly(_) => others.push(format!("{target}/{file}")),
                    Outcome::Same(_) | Outcome::ReadOnly(_) | Outcome::Different(_) => {
                        wrong.push(format!("{target}/{file}: {outcome:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let known: Vec<String> = OTHERS.iter().map(|(target, file)| format!("{target}/{file}")).collect();
    others.sort();
    assert_eq!(others, known, "not written anew");
    assert!(met >= 20, "{met}");
}

#[test]
fn however_a_legal_stream_is_cut_what_passes_is_the_same_and_so_is_what_it_says() {
    for dialect in Dialect::ALL {
        let target = name(dialect, "stream");
        for seed in seeds::own(&target).unwrap() {
            let file = seed.path.file_name().unwrap().to_str().unwrap().to_owned();
            if OTHERS.contains(&(&target, &file)) {
                continue;
            }
            let options = options(dialect, dialect);
            let whole = through(&options, &[&seed.data]);
            for at in 0..=seed.data.len() {
                let (before, after) = seed.data.split_at(at);
                assert_eq!(through(&options, &[before, after]), whole, "{target}/{file} cut at {at}");
            }
            for ending in ["\r\n", "\r"] {
                let text = String::from_utf8(seed.data.clone()).unwrap().replace("\r\n", "\n").replace('\n', ending);
                let said = same(both_ways(dialect, text.as_bytes()), &format!("{target}/{file} with {ending:?}"));
                let before = same(both_ways(dialect, &seed.data), &file);
                assert_eq!(said, before, "{target}/{file} with {ending:?}");
            }
        }
    }
}

/// What the lab answers, without the head; chunked bodies are put together.
fn asked(lab: &Lab, path: &str, body: &serde_json::Value) -> Vec<u8> {
    let mut socket = std::net::TcpStream::connect(lab.addr()).unwrap();
    let body = body.to_string();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer sk-lab\r\nx-api-key: sk-lab\r\n\
         x-goog-api-key: sk-lab\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).unwrap();
    let head = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let (head, mut rest) = reply.split_at(head + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}{}", String::from_utf8_lossy(rest));
    if !head.contains("transfer-encoding: chunked") {
        return rest.to_vec();
    }
    let mut out = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        out.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
    out
}

const SCRIPT: &str = r#"
[[rule]]
text = "Hello there, é and 😀."
thinking = "Let me see."
fragment_chars = 3
tool_calls = [
  { name = "read", arguments = '{"path":"a","n":[1,2.5,null]}' },
  { name = "read", arguments = '{}' },
]
usage = { prompt = 1200, completion = 80, cached = 1000, reasoning = 20 }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_the_lab_writes_says_the_same_in_both_ways_streamed_and_plain() {
    let script = Script::parse(SCRIPT).unwrap();
    let lab = Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap();
    let schema = serde_json::json!({"type":"object","properties":{"path":{"type":"string"}}});
    for dialect in Dialect::ALL {
        let mut texts = Vec::new();
        for stream in [true, false] {
            let (path, body) = match dialect {
                Dialect::Chat => (
                    "/v1/chat/completions",
                    serde_json::json!({"model":"m","stream":stream,"messages":[{"role":"user","content":"q"}],
                        "tools":[{"type":"function","function":{"name":"read","parameters":schema}}]}),
                ),
                Dialect::Responses => (
                    "/v1/responses",
                    serde_json::json!({"model":"m","stream":stream,"input":"q",
                        "tools":[{"type":"function","name":"read","parameters":schema}]}),
                ),
                Dialect::Messages => (
                    "/v1/messages",
                    serde_json::json!({"model":"m","stream":stream,"max_tokens":4096,
                        "messages":[{"role":"user","content":"q"}],"tools":[{"name":"read","input_schema":schema}]}),
                ),
                Dialect::Gemini => (
                    if stream {
                        "/v1beta/models/m:streamGenerateContent?alt=sse"
                    } else {
                        "/v1beta/models/m:generateContent"
                    },
                    serde_json::json!({"contents":[{"role":"user","parts":[{"text":"q"}]}],
                        "tools":[{"functionDeclarations":[{"name":"read","parametersJsonSchema":schema}]}]}),
                ),
            };
            let answer = tokio::task::block_in_place(|| asked(&lab, path, &body));
            let outcome = if stream { both_ways(dialect, &answer) } else { both_ways_whole(dialect, &answer) };
            let said = same(outcome, &format!("{dialect}, stream {stream}: {}", String::from_utf8_lossy(&answer)));
            let calls = said.parts.iter().filter(|part| matches!(part, Part::Call(..))).count();
            assert_eq!(calls, 2, "{dialect}: {said:?}");
            let text = |part: &Part| if let Part::Text(text) = part { Some(text.clone()) } else { None };
            texts.push(said.parts.iter().filter_map(text).collect::<String>());
        }
        assert_eq!(texts, ["Hello there, é and 😀."; 2], "{dialect}");
    }
}
