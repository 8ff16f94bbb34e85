//! Agents that fail, before and after their answer has begun.

use crate::processes::{runs, until};
use crate::world::{World, next};
use std::time::Duration;
use turnkeep_base::{FaultKind, Phase};
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_engine::ports::Happening;

#[tokio::test]
async fn a_crash_in_the_middle_is_a_truncated_stream_and_before_it_an_unavailable_upstream() {
    let world = World::new(&[]);
    let answer = world.turn("say a\ncrash", None).await;
    let fault = answer.fault.expect("a fault");
    assert_eq!((fault.kind, fault.phase, answer.text.as_str()), (FaultKind::StreamTruncated, Phase::Answered, "a"));
    let refused = world.refused("crash").await;
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::MaybeSent));
    // The agent may have begun, and acted.
    assert!(refused.refused.is_none());
    assert_eq!(world.turn("say b", None).await.text, "b");
}

#[tokio::test]
async fn what_is_not_the_protocol_ends_the_turn_and_the_process() {
    let world = World::new(&[]);
    for bad in ["garbage", "huge"] {
        let pid = world.turn("pid", None).await.text;
        let answer = world.turn(&format!("say a\n{bad}\nsay b\ndeaf"), None).await;
        assert_eq!(answer.fault.map(|fault| fault.kind), Some(FaultKind::MalformedResponse), "{bad}");
        until("the process has ended", || !runs(&pid)).await;
    }
    assert_eq!(world.turn("say b", None).await.text, "b");
}

#[tokio::test]
async fn a_turn_that_broke_its_process_leaves_no_directory() {
    let world = World::new(&[]);
    for bad in ["garbage", "huge", "crash"] {
        assert!(world.turn(&format!("say a\n{bad}\nhang"), None).await.fault.is_some(), "{bad}");
    }
    until("its directory is gone", || std::fs::read_dir(world.directories()).is_ok_and(|all| all.count() == 0)).await;
}

#[tokio::test]
async fn a_session_that_does_not_come_in_time_ends_no_turn_of_another_caller_and_its_process_gets_no_new_ones() {
    let world = World::with(&["--late", "2"], |spec| spec.answer_within = Duration::from_secs(2));
    let mut other = world.send("pid\nhang", None).await.expect("begun");
    let pid = loop {
        match next(&mut other).await.expect("more").expect("no fault") {
            Happening::Event(Event::Delta { delta: Delta::Text(pid), .. }) => break pid,
            Happening::Event(_) | Happening::Alive | Happening::Units(_) => {}
        }
    };
    let refused = world.send_as("bob", "say a", None).await.err().expect("refused");
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    assert_eq!(world.turn("say b", None).await.text, "b");
    assert_eq!(world.heard("initialize").len(), 2);
    // The first one's turn is as it was, and takes its process along.
    assert!(runs(&pid));
    drop(other);
    until("it was cancelled", || world.file("cancelled") == "cancelled").await;
    until("the process has ended", || !runs(&pid)).await;
}

#[tokio::test]
async fn a_chunk_that_cannot_be_read_ends_its_turn_and_no_other() {
    let world = World::new(&[]);
    let other = world.send("say a\nhang", None).await.expect("begun");
    let answer = world.turn("say a\nodd-update\nhang", None).await;
    assert_eq!(answer.fault.map(|fault| fault.kind), Some(FaultKind::MalformedResponse));
    assert_eq!(world.heard("initialize").len(), 1);
    drop(other);
}

#[tokio::test]
async fn an_error_instead_of_an_answer_is_a_refusal_if_the_agent_cannot_have_begun() {
    let world = World::new(&[]);
    for (error, kind, proof) in [
        ("error -32000 login", FaultKind::CredentialRejected, true),
        ("error -32602 params", FaultKind::RequestInvalid, true),
        ("error 429 too many", FaultKind::RateLimited, true),
        ("error -32603 oops", FaultKind::UpstreamInternal, false),
        ("error -32800 cancelled", FaultKind::UpstreamUnavailable, false),
        ("error 77 what", FaultKind::Unclassified, false),
    ] {
        let refused = world.refused(error).await;
        assert_eq!((refused.fault.kind, refused.refused.is_some()), (kind, proof), "{error}");
    }
    // What is set, and what was said by the client, is no beginning.
    let set = world.refused("commands\nupdate session_info_update\nerror 429 too many").await;
    assert!(set.refused.is_some());
    // After something was said, it is no refusal.
    let answer = world.turn("say a\nerror 429 too many", None).await;
    let fault = answer.fault.expect("a fault");
    assert_eq!((fault.kind, fault.phase), (FaultKind::RateLimited, Phase::Answered));
}

#[tokio::test]
async fn an_agent_that_fails_again_and_again_is_started_six_times_and_then_left_alone() {
    let world = World::with(&[], |spec| spec.limits.backoff = std::time::Duration::from_millis(1));
    for _ in 0..6 {
        let refused = world.refused("crash").await;
        assert_eq!(refused.fault.phase, Phase::MaybeSent);
    }
    let refused = world.refused("say a").await;
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    assert!(refused.fault.evidence.detail.contains("not started again"), "{}", refused.fault);
    assert_eq!(world.heard("initialize").len(), 6);
}

#[tokio::test]
async fn an_agent_that_eats_too_much_memory_is_ended() {
    let world = World::with(&[], |spec| {
        spec.limits.memory = Some(200 << 20);
        spec.limits.memory_every = std::time::Duration::from_millis(20);
    });
    let answer = world.turn("say a\neat 400\nhang", None).await;
    assert_eq!(answer.fault.map(|fault| fault.kind), Some(FaultKind::StreamTruncated));
    assert_eq!(world.turn("say b", None).await.text, "b");
}

#[tokio::test]
async fn an_agent_that_asks_for_anything_or_tells_something_unknown_has_begun() {
    let world = World::new(&[]);
    for step in [
        "ask-quietly fs/write_text_file",
        "ask-quietly terminal/create",
        "ask-quietly _of/next_year",
        "update of_next_year",
    ] {
        let answer = world.turn(&format!("{step}\nerror 429 too many"), None).await;
        let fault = answer.fault.unwrap_or_else(|| panic!("{step}: no fault"));
        assert_eq!((fault.kind, fault.phase), (FaultKind::RateLimited, Phase::Answered), "{step}");
    }
}
