//! What became of the conversation that a turn went on with is replayed from the same facts to the same row of the table.

use crate::cascade_scene::Place;
use crate::cascade_server::Next;
use crate::scene::streamed_and_plain;
use crate::stage::*;
use crate::support::*;
use serde_json::{Value, json};

/// The ends of a turn's lease: how it ended, and what became of the conversation.
fn ends(trace: &Value) -> Vec<(Value, Value)> {
    let ends = steps(trace, "check_in").into_iter();
    ends.map(|step| (step["arrival"]["end"].clone(), step["became"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_lease_is_replayed_identically() {
    for pair in streamed_and_plain() {
        for (next, end, became) in [
            (Next::Say("one two".into()), json!("advanced"), "advanced"),
            (Next::Refuse("RATE", 600_000), json!({"restored": {"reread": false}}), "restored"),
            (Next::Fail("one two", "INTERNAL"), json!("interrupted"), "dropped"),
        ] {
            let place = Place::of(&["a"]).await;
            let talk = place.begun(pair).await;
            place.server.script([next.clone()]);
            talk.turn(&place.world).await;
            let turns = turns(&place.world).await;
            let trace = same(&place.world, &turns[1]).await;
            assert_eq!(ends(&trace), [(end, json!(became))], "{pair:?} {next:?} {trace:#}");
            let holds = steps(&trace, "hold");
            let states: Vec<&Value> = holds.iter().map(|step| &step["left"]["state"]).collect();
            assert_eq!(states[..2], [&json!("clean"), &json!("sent")], "it was lent, and sent: {trace:#}");
            assert_eq!(states.last(), Some(&&json!("nothing")), "nothing is held at the end: {trace:#}");
            let first = same(&place.world, &turns[0]).await;
            assert_eq!(ends(&first), [], "it began the conversation");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_gone_and_the_new_one_after_it_are_replayed_identically() {
    let pair = streamed_and_plain()[0];
    let place = Place::of(&["a"]).await;
    let talk = place.begun(pair).await;
    place.server.forget_all();
    place.server.script([Next::Say("one two".into())]);
    let reply = talk.turn(&place.world).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let turns = turns(&place.world).await;
    let trace = same(&place.world, &turns[1]).await;
    assert_eq!(ends(&trace), [(json!({"dead": {"gone": true}}), json!("dropped"))], "{trace:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_a_conversation_is_replayed_identically() {
    for how in Leave::BOTH {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(streamed_and_plain()[0]).await;
        place.server.script([Next::Hold("one two", "three")]);
        let mut client = talk.ask(&place.world).await;
        client.until("one two").await;
        client.leave(how).await;
        let turns = turns(&place.world).await;
        let trace = same(&place.world, &turns[1]).await;
        assert_eq!(ends(&trace), [(json!("interrupted"), json!("dropped"))], "{how:?} {trace:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_of_a_lease_that_was_altered_is_where_the_replay_stops() {
    let place = Place::of(&["a"]).await;
    let talk = place.begun(streamed_and_plain()[0]).await;
    place.server.script([Next::Refuse("RATE", 600_000)]);
    talk.turn(&place.world).await;
    let turns = turns(&place.world).await;
    let (file, mut trace) = exported(&place.world, &turns[1]).await;
    let at = trace["steps"].as_array().unwrap().iter().position(|step| !step["what"]["check_in"].is_null()).unwrap();
    // Its account would not have been what it was.
    trace["steps"][at]["what"]["check_in"]["arrival"]["stands"] = json!(false);
    std::fs::write(&file, trace.to_string()).unwrap();
    let ran = replay(&file).await;
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(&format!("diverges at step {} of", at + 1)), "{}", ran.err);
    assert!(ran.err.contains("the trace has \"Restored\", this build gives \"Dropped\""), "{}", ran.err);
}
