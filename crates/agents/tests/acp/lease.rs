//! Conversations that go on, as the engine's leases need them to.

use crate::processes::{runs, until};
use crate::world::World;
use turnkeep_base::{AccountId, FaultKind, Phase};
use turnkeep_engine::ports::Native;

fn account() -> AccountId {
    AccountId { upstream: "agent".into(), account: "me".into() }
}

#[tokio::test]
async fn a_lease_goes_on_in_the_same_session_and_directory() {
    let world = World::new(&[]);
    let first = world.turn("count", None).await.conversation.expect("a conversation");
    assert!(world.acp.stands(&first) && first.position.is_none() && first.instance.is_some());
    let second = world.turn("count", Some(first.clone())).await;
    assert_eq!((second.text.as_str(), second.conversation), ("2", Some(first)));
    assert_eq!(world.heard("session/new").len(), 1);
    let prompts = world.heard("session/prompt");
    assert_eq!(prompts[0]["sessionId"], prompts[1]["sessionId"]);
}

#[tokio::test]
async fn each_lease_has_an_empty_directory_of_its_own() {
    let world = World::new(&[]);
    for _ in 0..2 {
        world.turn("say a", None).await;
    }
    let directories: Vec<String> =
        world.heard("session/new").iter().map(|params| params["cwd"].as_str().expect("a path").to_owned()).collect();
    assert_eq!(directories.len(), 2);
    assert_ne!(directories[0], directories[1]);
    for directory in directories {
        let directory = std::path::Path::new(&directory);
        assert_eq!(directory.parent(), Some(world.directories().as_path()));
        assert_eq!(std::fs::read_dir(directory).expect("there").count(), 0);
    }
}

#[tokio::test]
async fn a_forgotten_lease_is_closed_and_its_directory_goes() {
    let world = World::new(&["--closes"]);
    let conversation = world.turn("say a", None).await.conversation.expect("a conversation");
    let directory = world.heard("session/new")[0]["cwd"].as_str().expect("a path").to_owned();
    world.acp.forget(&account(), conversation);
    until("its directory is gone", || !std::path::Path::new(&directory).exists()).await;
    until("its session is closed", || !world.heard("session/close").is_empty()).await;
}

#[tokio::test]
async fn a_refused_send_leaves_the_lease_as_it_was() {
    let world = World::new(&[]);
    let conversation = world.turn("count", None).await.conversation.expect("a conversation");
    let refused = world.send("error 429 wait", Some(conversation.clone())).await.err().expect("refused");
    assert!(refused.refused.is_some());
    assert!(world.acp.stands(&conversation));
    assert_eq!(world.turn("count", Some(conversation)).await.text, "3");
}

#[tokio::test]
async fn a_crash_between_turns_makes_a_lease_stale_and_the_send_says_gone() {
    let world = World::new(&[]);
    let answer = world.turn("pid", None).await;
    let conversation = answer.conversation.expect("a conversation");
    std::process::Command::new("kill").args(["-9", &answer.text]).status().expect("kill");
    until("it has ended", || !runs(&answer.text)).await;
    until("its lease is stale", || !world.acp.stands(&conversation)).await;
    let gone = world.send("say a", Some(conversation)).await.err().expect("gone");
    assert_eq!((gone.fault.kind, gone.fault.phase), (FaultKind::ConversationGone, Phase::Unsent));
    assert_eq!(world.turn("say b", None).await.text, "b");
}

#[tokio::test]
async fn a_lease_of_an_agent_that_loads_sessions_outlives_its_process_and_the_past_is_not_told_again() {
    let world = World::new(&["--loads"]);
    let before = world.turn("say a", None).await.conversation.expect("a conversation");
    // Another turn takes the process along.
    world.refused("crash").await;
    assert!(world.acp.stands(&before));
    let after = world.turn("say again", Some(before.clone())).await;
    assert_eq!(after.text, "again");
    let after = after.conversation.expect("a conversation");
    assert_eq!(after.handle, before.handle);
    assert_ne!(after.instance, before.instance);
    let (new, load) = (world.heard("session/new"), world.heard("session/load"));
    assert_eq!((load.len(), &load[0]["cwd"]), (1, &new[0]["cwd"]));
    assert_eq!(world.turn("say more", Some(after)).await.text, "more");
    assert_eq!(world.heard("session/load").len(), 1);
}

#[tokio::test]
async fn a_lease_of_an_agent_that_loads_sessions_outlives_the_gateway_and_of_another_is_gone() {
    let world = World::new(&["--loads"]);
    let before = world.turn("say a", None).await.conversation.expect("a conversation");
    let world = world.restarted();
    assert!(world.acp.stands(&before));
    assert_eq!(world.turn("say again", Some(before)).await.text, "again");
    let world = World::new(&[]);
    let before = world.turn("say a", None).await.conversation.expect("a conversation");
    until("there is its directory", || world.directories().read_dir().is_ok_and(|all| all.count() == 1)).await;
    let world = world.restarted();
    until("its directory goes", || world.directories().read_dir().is_ok_and(|all| all.count() == 0)).await;
    let gone = world.send("say again", Some(before.clone())).await.err().expect("gone");
    assert_eq!(gone.fault.kind, FaultKind::ConversationGone);
    assert!(!world.acp.stands(&before));
}

#[tokio::test]
async fn a_lease_whose_session_the_agent_does_not_know_any_more_is_gone() {
    let world = World::new(&["--loads"]);
    let mut conversation = world.turn("say a", None).await.conversation.expect("a conversation");
    let (directory, _) = conversation.handle.split_once('/').expect("a handle");
    conversation.handle = format!("{directory}/session-unknown").into();
    conversation.instance = Some(1);
    let gone = world.send("say a", Some(conversation)).await.err().expect("gone");
    assert_eq!(gone.fault.kind, FaultKind::ConversationGone);
    let answer = world.turn("say a", None).await.conversation.expect("a conversation");
    let (_, session) = answer.handle.split_once('/').expect("a handle");
    let lost = format!("error -32603 Session not found: {session}");
    let gone = world.send(&lost, Some(answer.clone())).await.err().expect("gone");
    assert_eq!(gone.fault.kind, FaultKind::ConversationGone);
    assert!(gone.refused.is_some());
}

#[tokio::test]
async fn a_lease_is_not_gone_by_somebody_elses_not_found_which_the_agent_passes_on() {
    let world = World::new(&[]);
    for (error, kind) in [
        ("error -32603 Session not found: another", FaultKind::UpstreamInternal),
        ("error -32602 unknown session", FaultKind::Unclassified),
        ("error -32002 Resource not found", FaultKind::Unclassified),
    ] {
        let conversation = world.turn("say a", None).await.conversation.expect("a conversation");
        let failed = world.send(error, Some(conversation)).await.err().expect("failed");
        assert_eq!((failed.fault.kind, failed.refused.is_some()), (kind, false), "{error}: it may have worked");
    }
}

#[tokio::test]
async fn a_lease_that_was_interrupted_is_never_in_a_second_turn() {
    let world = World::new(&[]);
    let conversation = world.turn("count", None).await.conversation.expect("a conversation");
    drop(world.send("say a\nhang", Some(conversation.clone())).await.expect("begun"));
    // The engine drops it; whoever sends it all the same waits for the cancellation and does not share the turn.
    let answer = world.turn("count", None).await;
    assert_eq!(answer.text, "1");
    assert_eq!(world.heard("session/cancel").len(), 1);
}

#[tokio::test]
async fn a_lease_is_gone_by_an_error_of_its_sessions_own_and_outlives_any_other_failure_to_take_it_up() {
    for (code, kind) in [
        ("-32602", FaultKind::ConversationGone),
        ("-32002", FaultKind::ConversationGone),
        ("-32603", FaultKind::UpstreamInternal),
        ("429", FaultKind::RateLimited),
        ("503", FaultKind::UpstreamUnavailable),
        ("77", FaultKind::Unclassified),
    ] {
        let world = World::new(&["--loads", "--load-error", code]);
        let before = world.turn("say a", None).await.conversation.expect("a conversation");
        let directory = world.heard("session/new")[0]["cwd"].as_str().expect("a path").to_owned();
        let world = world.restarted();
        let failed = world.send("say again", Some(before)).await.err().expect("not taken up");
        assert_eq!((failed.fault.kind, failed.fault.phase), (kind, Phase::Unsent), "{code}: {}", failed.fault);
        if kind == FaultKind::ConversationGone {
            until("its directory is gone", || !std::path::Path::new(&directory).exists()).await;
        } else {
            assert!(failed.refused.is_some(), "{code}: nothing of the turn has left");
            assert!(std::path::Path::new(&directory).exists(), "{code}");
        }
        assert_eq!(world.heard("session/prompt").len(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_lease_of_an_agent_that_wants_a_login_is_taken_up_after_one_login() {
    let world = World::new(&["--loads", "--auth", "some-api-key"]);
    let before = world.turn("say a", None).await.conversation.expect("a conversation");
    let world = world.restarted();
    assert_eq!(world.turn("say again", Some(before)).await.text, "again");
    assert_eq!((world.heard("authenticate").len(), world.heard("session/load").len()), (2, 2));
    // Where nobody can log in the account is to blame, and the conversation stands.
    let world = World::with(&["--loads", "--auth", "by-browser"], |spec| {
        spec.accounts.values_mut().for_each(|account| account.auth_method = Some("by-browser".into()));
    });
    let before = world.turn("say a", None).await.conversation.expect("a conversation");
    let directory = world.heard("session/new")[0]["cwd"].as_str().expect("a path").to_owned();
    let world = world.restarted_with(|spec| spec.accounts.values_mut().for_each(|account| account.auth_method = None));
    let failed = world.send("say again", Some(before)).await.err().expect("not taken up");
    assert_eq!(failed.fault.kind, FaultKind::CredentialRejected, "{}", failed.fault);
    assert!(failed.refused.is_some() && std::path::Path::new(&directory).exists());
}
