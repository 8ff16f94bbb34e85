//! A recorded Gemini answer, used again in every form that a client may ask for.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

mod gemini_said;

use gemini_said::{decode, in_form, last, options, parts, run, short, stream, text};
use serde_json::value::RawValue;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::gemini::{order, reply_decode};
use turnkeep_dialect::recorded::{Recorded, replay};
use turnkeep_dialect::request::StreamForm;

/// A signed call after thinking, and a signed text.
fn upstream() -> String {
    stream(&[
        &parts(r#"{"text":"hm","thought":true}"#),
        &parts(r#"{"text":"so\nbe it"}"#),
        &parts(r#"{"functionCall":{"id":"a","name":"f","args":{"x":[1.50]}},"thoughtSignature":"c2ln"}"#),
        &last(r#"{"text":"","thoughtSignature":"ZW5k"}"#, "STOP"),
    ])
}

/// The answer as a client got it.
fn recorded(form: StreamForm) -> Recorded {
    let (pieces, ended, facts) = run(&in_form(form), &[upstream().as_bytes()]);
    assert_eq!(ended, Ok(()));
    Recorded { dialect: Dialect::Gemini, stream: true, bytes: text(&pieces).into(), facts }
}

/// What the answer says, but for a thinking that is signed by the call after it, which gets an empty one.
const SAID: [&str; 17] = [
    "start r1 up",
    "+0 thinking",
    "0 hm",
    "-0",
    "+1 text",
    "1 so\nbe it",
    "-1",
    "+2 thinking",
    "2 signed turnkeep.gemini.c2ln",
    "-2",
    "+3 call a f",
    r#"3 {"x":[1.50]}"#,
    "-3",
    "+4 thinking",
    "4 signed turnkeep.gemini.ZW5k",
    "-4",
    "usage 9+5",
];

#[test]
fn a_stream_of_either_form_is_used_again_in_either_form_and_plain() {
    for kept in [StreamForm::Events, StreamForm::Array] {
        let record = recorded(kept);
        for wanted in [StreamForm::Events, StreamForm::Array] {
            let pieces = replay(&record, &in_form(wanted), true).unwrap();
            assert_eq!(pieces.last().unwrap().class, Class::Terminal);
            let again = text(&pieces);
            if kept == wanted {
                assert_eq!(again.as_bytes(), record.bytes);
            }
            let events = match wanted {
                StreamForm::Events => again,
                StreamForm::Array => {
                    assert_eq!(order::array(again.as_bytes()), Ok(()));
                    let elements: Vec<&RawValue> = serde_json::from_str(&again).unwrap();
                    elements.iter().map(|element| format!("data: {}\n\n", element.get())).collect()
                }
            };
            assert_eq!(decode(&[events.as_bytes()]), decode(&[upstream().as_bytes()]), "{kept:?} {wanted:?}");
        }
        let pieces = replay(&record, &options(), false).unwrap();
        let body = text(&pieces);
        assert_eq!(order::body(body.as_bytes()), Ok(()), "{body}");
        let events = short(&reply_decode::plain_strict(body.as_bytes(), &options()).unwrap());
        assert_eq!(events[..SAID.len()], SAID);
    }
}

#[test]
fn a_whole_answer_is_used_again_as_a_stream_of_either_form() {
    let pieces = replay(&recorded(StreamForm::Events), &options(), false).unwrap();
    let whole = Recorded { stream: false, bytes: text(&pieces).into(), ..recorded(StreamForm::Events) };
    for form in [StreamForm::Events, StreamForm::Array] {
        let streamed = text(&replay(&whole, &in_form(form), true).unwrap());
        let back = Recorded { stream: true, bytes: streamed.into(), ..whole.clone() };
        let body = text(&replay(&back, &options(), false).unwrap());
        let events = short(&reply_decode::plain_strict(body.as_bytes(), &options()).unwrap());
        assert_eq!(events[..SAID.len()], SAID, "{form:?}");
    }
}

#[test]
fn a_stream_that_was_cut_is_no_answer_to_be_used_again() {
    for form in [StreamForm::Events, StreamForm::Array] {
        let record = recorded(form);
        for length in 0..record.bytes.len() - 200 {
            let cut = Recorded { bytes: record.bytes.slice(..length), ..record.clone() };
            for stream in [true, false] {
                let fault = replay(&cut, &in_form(form), stream).unwrap_err();
                let kinds = [FaultKind::StreamTruncated, FaultKind::MalformedResponse];
                assert!(kinds.contains(&fault.kind), "{length}: {fault:?}");
            }
        }
    }
}
