//! What a local agent writes.

use crate::cuts;
use serde_json::Value;
use turnkeep_agents::acp::fuzzed::{self, Line, Told};

/// Lines of an agent's output.
pub fn json_lines(data: &[u8]) {
    let whole = fuzzed::lines(&[data]);
    for way in cuts::ways(data) {
        assert_eq!(fuzzed::lines(&way), whole, "other lines in other pieces");
    }
    // By the definition: what stands before a line feed, without white space behind it, and not empty.
    let ended = data.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &data[..end]);
    let wanted: Vec<&[u8]> =
        ended.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty()).collect();
    let got = whole.unwrap_or_default();
    assert_eq!(got.iter().map(|line| &line[..]).collect::<Vec<_>>(), wanted);
    assert!(got.iter().all(|line| line.len() <= fuzzed::MAX_LINE));
}

/// Messages, and what updates tell.
pub fn acp(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        message(line);
        if let Ok(text) = std::str::from_utf8(line) {
            update(text);
        }
    }
}

fn message(line: &[u8]) {
    let read = fuzzed::line(line);
    let tree = serde_json::from_slice::<Value>(line).ok();
    let member = |name: &str| tree.as_ref().and_then(|tree| tree.get(name)).filter(|value| !value.is_null());
    match read {
        Line::Unreadable => {}
        Line::Request(id, method, reply) => {
            assert!(tree.is_none() || member("method").and_then(Value::as_str) == Some(&method));
            assert_eq!(reply.iter().filter(|byte| **byte == b'\n').count(), 1, "a reply is one line");
            assert!(reply.ends_with(b"\n"));
            let reply: Value = serde_json::from_slice(&reply).unwrap_or_default();
            assert_eq!(Some(&reply["id"]), serde_json::from_str::<Value>(&id).ok().as_ref(), "the id as it came");
            assert_eq!(reply["error"]["message"].as_str(), Some(&method[..]));
        }
        Line::Notification(method) => {
            assert!(tree.is_none() || member("method").and_then(Value::as_str) == Some(&method));
            assert!(member("id").is_none(), "a request taken for a notification");
        }
        Line::Response(id, good) => {
            assert_eq!(tree.as_ref().map(|tree| tree["id"].as_u64()), tree.as_ref().map(|_| Some(id)));
            assert!(member("method").is_none());
            assert!(!good || member("error").is_none(), "an error taken for a result");
        }
        Line::Stray => assert!(member("method").is_none(), "a method that nobody is asked for"),
    }
}

fn update(text: &str) {
    for params in [text.to_owned(), params_of(text)] {
        let (shown, hidden) = (fuzzed::update(&params, true), fuzzed::update(&params, false));
        if let Ok(Told::Note(note)) = &shown {
            let lines = note.trim_end_matches('\n').split('\n');
            assert!(note.ends_with('\n') && lines.clone().count() <= 21, "a note of many lines");
            assert!(lines.clone().all(|line| line.len() <= 240 && !line.chars().any(char::is_control)), "{note:?}");
            assert_eq!(hidden, Ok(Told::Alive), "a note that is not shown is a sign of life");
        } else {
            assert_eq!(shown, hidden, "shown or not, the answer is the same");
        }
    }
}

/// The parameters within a line, which most seeds are.
fn params_of(line: &str) -> String {
    serde_json::from_str::<Value>(line).ok().map(|line| line["params"].to_string()).unwrap_or_default()
}
