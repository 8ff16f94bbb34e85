//! A file that is no trace, is cut short, is of another form, or was altered: what is said of it, and that nothing panics.

use crate::turns::Happening::*;
use crate::turns::*;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault as Broken, FaultKind, Phase};
use turnkeep_dialect::reply::Progress;
use turnkeep_engine::incident::{self, MAX_BYTES, Unreadable};

fn text() -> Vec<u8> {
    let ring = ring();
    let mut turn = Turn::begin(&ring, 1, facts(true), Instant::now());
    let refused = Broken::new(FaultKind::RateLimited, Phase::Answered, Evidence::text("slow").with_status(429));
    turn.happens([NotKept, Slot(0, 0), Recorded, Fault(refused), Slot(1, 1), Recorded, Answering]);
    (0..3).for_each(|_| turn.happens([Read(true, Progress::Open, false)]));
    turn.happens([Read(false, Progress::Done, false)]);
    serde_json::to_vec_pretty(&turn.tape.trace()).unwrap()
}

#[test]
fn a_trace_that_ends_anywhere_in_the_middle_is_told_as_cut_short() {
    let text = text();
    let end = text.iter().rposition(|byte| *byte == b'}').unwrap();
    for at in 1..=end {
        let told = incident::read(&text[..at]).unwrap_err();
        assert!(matches!(told, Unreadable::Truncated { .. }), "{at} bytes: {told}");
    }
    assert!(incident::read(&text[..5]).unwrap_err().to_string().contains("export it again"));
}

#[test]
fn what_is_no_trace_is_told_as_none_with_what_to_do() {
    for other in ["", "[]", "3", "{}", "{\"format\":3}", "data: {}", "\u{0}"] {
        let told = incident::read(other.as_bytes()).unwrap_err();
        assert!(matches!(told, Unreadable::NoTrace { .. }), "{other:?}: {told}");
        assert!(told.to_string().contains("--export"), "{told}");
    }
    let long = vec![b' '; MAX_BYTES + 1];
    assert_eq!(incident::read(&long), Err(Unreadable::TooLong));
}

fn altered(change: impl FnOnce(&mut Value)) -> Result<incident::Trace, Unreadable> {
    let mut value: Value = serde_json::from_slice(&text()).unwrap();
    change(&mut value);
    incident::read(value.to_string().as_bytes())
}

#[test]
fn another_form_is_told_by_its_name_and_a_step_that_is_not_known_by_its_place() {
    let other = altered(|value| value["format"] = json!("turnkeep-incident/2")).unwrap_err();
    assert!(other.to_string().contains("turnkeep-incident/2") && other.to_string().contains("its own version"));
    let step = altered(|value| value["steps"][1]["what"] = json!({"teleport": {}})).unwrap_err();
    assert!(matches!(&step, Unreadable::Invalid { why, .. } if why.contains("teleport")), "{step}");
    assert!(step.to_string().contains("line 1, column"), "{step}");
    let event = altered(|value| value["steps"][1]["what"]["machine"]["event"] = json!("miracle")).unwrap_err();
    assert!(event.to_string().contains("miracle"), "{event}");
    let field = altered(|value| value["head"]["prompt"] = json!("words")).unwrap_err();
    assert!(field.to_string().contains("prompt"), "there is no place for content: {field}");
    let kind = altered(|value| value["steps"][4]["what"]["machine"]["event"]["fault"]["kind"] = json!("gremlins"));
    assert!(kind.unwrap_err().to_string().contains("blame table"));
}

#[test]
fn a_fact_that_was_altered_parts_the_two_where_it_is_decided_on() {
    // Had the upstream blamed the request, the turn would have ended there.
    let trace = altered(|value| {
        value["steps"][4]["what"]["machine"]["event"]["fault"]["kind"] = json!("request_invalid");
    });
    let replayed = incident::replay(&trace.unwrap());
    let (number, line) = replayed.divergence().expect("another fault is another decision");
    assert_eq!(number, 5);
    assert!(line.recorded.contains("acquire") && line.replayed.as_deref().unwrap().contains("write error"), "{line:?}");
    // Nor would a machine that may dispatch once have gone on.
    let trace = altered(|value| value["head"]["facts"]["rules"]["dispatches"] = json!(1));
    let replayed = incident::replay(&trace.unwrap());
    assert_eq!(replayed.divergence().map(|(number, _)| number), Some(5));
}

/// Puts another number in the place of each, one at a time.
fn each_number(value: &mut Value, root: &Value, path: &str, check: &mut impl FnMut(&Value)) {
    match value {
        Value::Number(_) => {
            for number in [json!(u64::MAX), json!(0), json!(255)] {
                let mut other = root.clone();
                *other.pointer_mut(path).unwrap() = number;
                check(&other);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                each_number(item, root, &format!("{path}/{at}"), check);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                each_number(field, root, &format!("{path}/{name}"), check);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn no_number_in_a_file_makes_the_replay_panic() {
    let root: Value = serde_json::from_slice(&text()).unwrap();
    let mut ran = 0;
    each_number(&mut root.clone(), &root, "", &mut |other| {
        if let Ok(trace) = incident::read(other.to_string().as_bytes()) {
            let _ = incident::replay(&trace);
            ran += 1;
        }
    });
    assert!(ran > 50, "{ran}");
}

#[test]
fn a_file_of_thousands_of_dispatches_does_not_make_the_replay_panic() {
    let mut value: Value = serde_json::from_slice(&text()).unwrap();
    let steps = value["steps"].as_array().unwrap().clone();
    let (recorded, faulty) = (steps[3].clone(), steps[4].clone());
    assert_eq!(recorded["what"]["machine"]["event"], "recorded");
    let mut many = steps[..3].to_vec();
    many.extend(std::iter::repeat_n(recorded, 3_000));
    many.push(faulty);
    value["steps"] = many.into();
    let trace = incident::read(value.to_string().as_bytes()).unwrap();
    // All of them are taken, until the fault finds the dispatches spent.
    assert_eq!(incident::replay(&trace).divergence().map(|(number, _)| number), Some(3_004));
}
