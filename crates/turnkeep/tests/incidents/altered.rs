//! A trace that does not fit this build's rules, or is none: what the command line says, and by which status.

use crate::scene::at_rest;
use crate::stage::*;
use crate::support::dialects::CHAT;
use crate::support::*;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A turn that failed over, exported.
async fn place() -> (World, PathBuf, Value) {
    let error = ErrorSpec { status: Some(429), retry_after: Some(600), ..ErrorSpec::default() };
    let refusal = Rule { error: Some(error), times: Some(1), ..Rule::default() };
    let lab = lab([refusal, Rule { text: Some("one two".into()), ..Rule::default() }]).await;
    let world = World::two(CHAT, &lab).await;
    let reply = world.client().await.turn(CHAT).await;
    assert_eq!(reply.status, 200);
    at_rest(&world).await;
    let (file, trace) = exported(&world, reply.header("x-turnkeep-turn").unwrap()).await;
    (world, file, trace)
}

/// The first step of a sort, by its index.
fn first(trace: &Value, sort: &str) -> usize {
    trace["steps"].as_array().unwrap().iter().position(|step| !step["what"][sort].is_null()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_that_is_altered_by_hand_is_printed_where_it_stands() {
    let (_world, file, trace) = place().await;
    let judged = first(&trace, "judged");
    let attempt = first(&trace, "attempt");
    let turn = first(&trace, "turn");
    let delivery = first(&trace, "delivery");
    let at = |step: usize, path: &str| format!("/steps/{step}/what{path}");
    for (step, path, value, says) in [
        (0, "/machine/did".to_owned(), json!([]), "the trace has \"nothing\", this build gives \"look up\""),
        (judged, "/judged/judgement/applied".into(), json!(["sample"]), "this build gives \"Account cools 600s\""),
        // The facts, as another build's rules would have it: the reply's wait cut to half a minute.
        (judged, "/judged/fault/wait".into(), json!("30s"), "this build gives \"Account cools 30s\""),
        (
            judged,
            "/judged/grounds/tuning/longest_cooldown".into(),
            json!("1s"),
            "this build gives \"Account cools 1s\"",
        ),
        (attempt, "/attempt/closing/sent".into(), json!(false), "this build gives \"outcome"),
        (turn, "/turn/effects/publish".into(), json!(false), "publish"),
        (delivery, "/delivery/facts/receipt".into(), json!(false), "this build gives"),
    ] {
        let mut other = trace.clone();
        *other.pointer_mut(&at(step, &path)).unwrap_or_else(|| panic!("{path} in {trace:#}")) = value;
        std::fs::write(&file, other.to_string()).unwrap();
        let ran = replay(&file).await;
        assert_eq!(ran.status, 1, "{path}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(&format!("diverges at step {} of ", step + 1)), "{path}: {}", ran.err);
        assert!(ran.err.contains(says), "{path}: {}", ran.err);
        // The table ends there.
        let last = ran.out.lines().last().unwrap();
        assert!(!last.contains("  same") && !ran.out.contains("identical"), "{path}: {}", ran.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replayed_is_told_with_what_to_do_and_status_2() {
    let (world, file, trace) = place().await;
    let text = std::fs::read_to_string(&file).unwrap();
    let mut other_form = trace.clone();
    other_form["format"] = json!("turnkeep-incident/9");
    let mut unknown = trace.clone();
    unknown["steps"][3]["what"] = json!({"levitate": {}});
    let mut cut = trace.clone();
    cut["cut"] = json!({"us": 1_500, "by": "steps"});
    for (content, words) in [
        (text[..text.len() / 2].to_owned(), &["ends in the middle, at line ", "export it again"][..]),
        (other_form.to_string(), &["turnkeep-incident/9", "turnkeep-incident/1", "a build of its own version"]),
        (unknown.to_string(), &["levitate", "line 1, column"]),
        ("data: hello\n".to_owned(), &["no incident trace", "--export FILE"]),
        (String::new(), &["no incident trace"]),
        (" ".repeat((8 << 20) + 1), &["longer than 8 MiB"]),
        (cut.to_string(), &["breaks off 1.500 ms", "more steps than are kept", "every decision is the same"]),
    ] {
        std::fs::write(&file, content).unwrap();
        let ran = replay(&file).await;
        assert_eq!(ran.status, 2, "{words:?}: {}{}", ran.out, ran.err);
        let missing: Vec<&&str> = words.iter().filter(|words| !ran.err.contains(**words)).collect();
        assert!(missing.is_empty() && ran.err.contains(file.to_str().unwrap()), "{missing:?}: {}", ran.err);
    }
    let ran = replay(&world.folder().join("nothing.json")).await;
    assert!(ran.status == 2 && ran.err.contains("cannot be read"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_as_json_has_every_step_with_both_decisions() {
    let (_world, file, trace) = place().await;
    let ran = turnkeep(&["replay", file.to_str().unwrap(), "--json"], &[]).await;
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &told["divergence"], &told["turn"]), (0, &Value::Null, &trace["head"]["turn"]));
    let lines = told["steps"].as_array().unwrap();
    assert_eq!(lines.len(), trace["steps"].as_array().unwrap().len());
    assert!(lines.iter().all(|line| line["same"] == true && line["recorded"] == line["replayed"]), "{told:#}");
}
