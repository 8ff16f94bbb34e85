//! What an agent says, as an answer.

use crate::processes::until;
use crate::world::World;
use turnkeep_agents::acp::ToolActivity;
use turnkeep_base::{FaultKind, Usage};
use turnkeep_dialect::event::{Event, Finish};

#[tokio::test]
async fn text_and_thoughts_come_in_order_and_tools_are_signs_of_life() {
    let world = World::new(&[]);
    let answer = world.turn("commands\nthink hm\nsay a\nsay b\ntool look\nused\nsay c", None).await;
    assert_eq!((answer.text.as_str(), answer.thinking.as_str()), ("abc", "hm"));
    assert_eq!(answer.finish, Some(Finish::Stop));
    assert!(answer.alive > 0);
    assert_eq!(answer.fault, None);
}

#[tokio::test]
async fn tools_are_notes_where_they_are_wanted() {
    let world = World::with(&[], |spec| spec.tool_activity = ToolActivity::Notes);
    let answer = world.turn("say a\ntool look\nsay b", None).await;
    assert_eq!((answer.text.as_str(), answer.thinking.as_str()), ("ab", "[look]\n[t1: completed]\n"));
}

#[tokio::test]
async fn a_character_cut_in_its_middle_comes_whole() {
    let world = World::new(&[]);
    assert_eq!(world.turn("split größer \u{1f600} 漢", None).await.text, "größer \u{1f600} 漢");
}

#[tokio::test]
async fn reasons_to_stop_are_told() {
    let world = World::new(&[]);
    for (reason, finish) in
        [("end_turn", Finish::Stop), ("max_tokens", Finish::Length), ("max_turn_requests", Finish::Length)]
    {
        let answer = world.turn(&format!("say a\nstop {reason}"), None).await;
        assert_eq!(answer.finish, Some(finish), "{reason}");
        assert!(answer.conversation.is_some());
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    let answer = World::new(&[]).turn("stop end_turn", None).await;
    assert_eq!((answer.text.as_str(), answer.finish, answer.fault), ("", Some(Finish::Stop), None));
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_its_session_is_not_gone_on_with() {
    let answer = World::new(&[]).turn("say no\nstop refusal", None).await;
    assert_eq!((answer.finish, answer.fault), (Some(Finish::Refusal), None));
    assert_eq!(answer.conversation, None);
}

#[tokio::test]
async fn a_turn_that_the_agent_cancels_by_itself_is_a_fault() {
    let answer = World::new(&[]).turn("say a\nstop cancelled", None).await;
    assert_eq!(answer.fault.map(|fault| fault.kind), Some(FaultKind::UpstreamUnavailable));
}

#[tokio::test]
async fn a_turn_that_stops_for_no_reason_of_the_protocols_is_a_fault_and_its_session_is_given_up() {
    let world = World::new(&["--closes"]);
    let answer = world.turn("say a\nstop of_next_year", None).await;
    assert_eq!((answer.fault.map(|fault| fault.kind), answer.finish), (Some(FaultKind::MalformedResponse), None));
    assert_eq!(answer.conversation, None);
    until("its session is closed", || !world.heard("session/close").is_empty()).await;
}

#[tokio::test]
async fn usage_is_told_where_the_agent_tells_it() {
    let world = World::new(&[]);
    let usage = |events: &[Event]| {
        events.iter().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None })
    };
    let answer = world.turn("say a\nusage", None).await;
    let expected = Usage { input: 10, cache_read: 90, cache_write: 0, output: 5, reasoning: 0 };
    assert_eq!(usage(&answer.events), Some(expected));
    // How full its context is says nothing of what a turn cost.
    assert_eq!(usage(&world.turn("say a\nused", None).await.events), None);
}

#[tokio::test]
async fn a_slow_client_holds_up_no_other_and_one_that_is_too_slow_loses_its_turn() {
    let world = World::new(&[]);
    let slow = world.send("flood 20\nmark over", None).await.expect("begun");
    assert_eq!(world.turn("say a", None).await.text, "a");
    until("the flood is over", || world.file("mark") == "over").await;
    assert_eq!(world.turn("say b", None).await.text, "b");
    let answer = crate::world::read(slow).await;
    assert_eq!(answer.fault.map(|fault| fault.kind), Some(FaultKind::GatewayExhausted));
    assert!(answer.text.len() > 10 << 20);
}
