//! How an agent's process comes up, or does not.

use crate::processes::{LONG, runs, until};
use crate::world::{World, read};
use std::time::Duration;
use turnkeep_base::{FaultKind, Phase};

#[tokio::test]
async fn an_agent_gets_nothing_of_our_environment_but_what_is_named() {
    let world = World::new(&[]);
    world.turn("say a", None).await;
    let environment = world.file("environment");
    let names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let allowed = ["PATH", "LANG", "TMPDIR", "HOME", "FAKE_LOG", "FAKE_CANCELLED", "FAKE_MARK", "FAKE_ENVIRONMENT"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(names.contains(&"HOME") && environment.contains("/home\n"), "{environment}");
}

#[tokio::test]
async fn many_turns_at_once_start_one_process() {
    let world = World::new(&["--slow", "100"]);
    let turns = (0..10).map(|_| world.turn("pid", None));
    let answers = futures_util::future::join_all(turns).await;
    let pids: std::collections::BTreeSet<String> = answers.into_iter().map(|answer| answer.text).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(world.heard("initialize").len(), 1);
}

#[tokio::test]
async fn an_agent_of_the_second_version_is_refused_before_anything_of_a_turn_leaves() {
    let world = World::new(&["--version", "2"]);
    let refused = world.refused("say a").await;
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    assert!(refused.refused.is_some());
    assert!(refused.fault.evidence.detail.contains("version 1"), "{}", refused.fault);
    assert_eq!(world.heard("initialize")[0]["protocolVersion"], 1);
    assert!(world.heard("session/new").is_empty());
}

#[tokio::test]
async fn an_agent_that_does_not_come_up_in_time_is_given_up() {
    let world = World::with(&["--slow", "600000"], |spec| spec.limits.ready_within = Duration::from_millis(200));
    let refused = world.refused("say a").await;
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    assert!(
        refused.refused.is_some() && refused.fault.evidence.detail.contains("not ready within"),
        "{}",
        refused.fault
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let world = World::with(&[], |spec| spec.command = vec!["no-such-agent-anywhere".into()]);
    let refused = world.refused("say a").await;
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    assert!(refused.refused.is_some() && refused.fault.evidence.detail.contains("no-such-agent"), "{}", refused.fault);
}

#[tokio::test]
async fn an_agent_that_wants_a_login_is_a_rejected_credential_with_a_way_out() {
    let world = World::new(&["--auth", "by-browser"]);
    let refused = world.refused("say a").await;
    assert_eq!(refused.fault.kind, FaultKind::CredentialRejected);
    assert!(refused.refused.is_some() && refused.fault.evidence.detail.contains("by-browser"), "{}", refused.fault);
    assert!(world.heard("authenticate").is_empty());
}

#[tokio::test]
async fn a_login_by_a_key_or_by_the_named_method_is_made_once() {
    let by_key = World::new(&["--auth", "some-api-key"]);
    let named = World::with(&["--auth", "by-browser"], |spec| {
        spec.accounts.values_mut().for_each(|account| account.auth_method = Some("by-browser".into()));
    });
    for world in [by_key, named] {
        for _ in 0..2 {
            assert_eq!(world.turn("say a", None).await.text, "a");
        }
        assert_eq!(world.heard("authenticate").len(), 1);
    }
}

#[tokio::test]
async fn a_banner_before_the_first_message_does_no_harm() {
    assert_eq!(World::new(&["--banner"]).turn("say a", None).await.text, "a");
}

#[tokio::test]
async fn an_offered_model_is_chosen_and_another_name_is_the_agents_own_choice() {
    let world = World::new(&["--models", "first,m"]);
    world.turn("say a", None).await;
    let chosen = world.heard("session/set_model");
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0]["modelId"], "m");
    let world = World::new(&["--models", "m,other"]);
    world.turn("say a", None).await;
    assert!(world.heard("session/set_model").is_empty());
}

#[tokio::test]
async fn without_leave_callers_share_a_process_and_with_it_they_do_not() {
    for (permissions, processes) in [("deny", 1), ("allow-read", 2), ("allow", 2)] {
        let world = World::with(&[], |spec| {
            spec.permissions = turnkeep_agents::acp::Permissions::from_name(permissions).expect("a word");
        });
        let mut pids = std::collections::BTreeSet::new();
        for caller in ["alice", "bob", "alice"] {
            pids.insert(read(world.send_as(caller, "pid", None).await.expect("begun")).await.text);
        }
        assert_eq!(pids.len(), processes, "{permissions}");
    }
}

#[tokio::test]
async fn a_caller_too_many_takes_the_place_of_an_idle_one_and_of_none_in_a_turn() {
    let world = World::with(&[], |spec| {
        spec.permissions = turnkeep_agents::acp::Permissions::Allow;
        spec.processes = 1;
    });
    let first = world.send_as("alice", "say a\nhang", None).await.expect("begun");
    let refused = world.send_as("bob", "pid", None).await.err().expect("refused");
    assert_eq!((refused.fault.kind, refused.fault.phase), (FaultKind::GatewayExhausted, Phase::Unsent));
    assert!(refused.refused.is_some());
    drop(first);
    // Alice's turn is over when the agent says so.
    until("alice's turn is cancelled", || !world.file("cancelled").is_empty()).await;
    let answer = async {
        loop {
            match world.send_as("bob", "pid", None).await {
                Ok(answer) => break answer,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let answer = tokio::time::timeout(LONG, answer).await.expect("a place comes free");
    assert!(!read(answer).await.text.is_empty());
}

#[tokio::test]
async fn dropping_the_driver_ends_its_processes() {
    let world = World::new(&[]);
    let pid = world.turn("pid", None).await.text;
    assert!(runs(&pid));
    drop(world);
    until("the process has ended", || !runs(&pid)).await;
}
