//! The review cases of leases, through the engine: what is counted, what the client is told, and what the agent has heard. Each
//! streamed and plain.

use crate::gateway::{Gateway, Leases};
use crate::processes::{runs, until};
use turnkeep_agents::acp::AcpAccount;

/// A gateway in which one turn has been answered, and what was said in it.
async fn begun(stream: bool) -> (Gateway, Vec<(&'static str, String)>) {
    begun_with(stream, &[]).await
}

async fn begun_with(stream: bool, more: &[&str]) -> (Gateway, Vec<(&'static str, String)>) {
    let gateway = Gateway::new(&[], |spec| {
        let like = spec.accounts.values().next().cloned().unwrap_or_default();
        for name in more {
            spec.accounts.insert((*name).into(), AcpAccount { ..like.clone() });
        }
    });
    let mut said = Vec::new();
    gateway.goes_on(stream, &mut said, "count").await;
    assert_eq!(gateway.leases(), Leases { size: 1, hits: 0, restored: 0, advanced: 0, dropped: 0 });
    (gateway, said)
}

fn and(said: &[(&'static str, String)], now: &str) -> Vec<(&'static str, String)> {
    let mut said = said.to_vec();
    said.push(("user", now.to_owned()));
    said
}

#[tokio::test]
async fn a_lease_goes_on_turn_after_turn_and_only_what_is_new_is_sent() {
    for stream in [true, false] {
        let (gateway, mut said) = begun(stream).await;
        for number in 2..5 {
            assert_eq!(gateway.goes_on(stream, &mut said, "count").await.text, number.to_string());
        }
        assert_eq!(gateway.leases(), Leases { size: 1, hits: 3, restored: 0, advanced: 3, dropped: 0 });
        assert_eq!(gateway.world.heard("session/new").len(), 1);
        for prompt in gateway.world.heard("session/prompt") {
            assert_eq!(prompt["prompt"], serde_json::json!([{"type": "text", "text": "count"}]));
        }
    }
}

#[tokio::test]
async fn a_lease_stays_when_the_client_leaves_after_its_turn_completed() {
    for stream in [true, false] {
        let (gateway, said) = begun(stream).await;
        let told = gateway.start("alice", stream, &and(&said, "count")).told(false).await;
        assert_eq!(told.text, "2");
        gateway.idle().await;
        assert_eq!(gateway.leases(), Leases { size: 1, hits: 1, restored: 0, advanced: 1, dropped: 0 });
    }
}

#[tokio::test]
async fn a_lease_whose_turn_was_interrupted_by_leaving_is_dropped_and_cancelled() {
    for (stream, steps) in [(true, "say a\nhang"), (false, "say a\nhang"), (true, "hang"), (false, "hang")] {
        let (gateway, said) = begun(stream).await;
        let mut asking = gateway.start("alice", stream, &and(&said, steps));
        if stream && steps.starts_with("say") {
            asking.more().await.expect("the first event");
        } else {
            until("the prompt is there", || gateway.sessions().len() == 2).await;
        }
        drop(asking);
        gateway.idle().await;
        assert_eq!(
            gateway.leases(),
            Leases { size: 0, hits: 1, restored: 0, advanced: 0, dropped: 1 },
            "{stream} {steps}"
        );
        until("the agent was cancelled", || gateway.world.file("cancelled") == "cancelled").await;
        // The next turn brings everything to a new session.
        let told = gateway.turn(stream, &and(&said, "count")).await;
        assert_eq!(told.text, "1");
        let sessions = gateway.sessions();
        assert_eq!((sessions.len(), &sessions[0]), (3, &sessions[1]));
        assert_ne!(sessions[1], sessions[2]);
    }
}

#[tokio::test]
async fn a_lease_is_restored_when_the_agent_refuses_the_content_and_not_after_the_first_event() {
    for stream in [true, false] {
        let (gateway, mut said) = begun(stream).await;
        let told = gateway.turn(stream, &and(&said, "error 451 blocked")).await;
        assert_eq!(told.status, 451, "{told:?}");
        assert_eq!(gateway.leases(), Leases { size: 1, hits: 1, restored: 1, advanced: 0, dropped: 0 });
        assert_eq!(gateway.goes_on(stream, &mut said, "count").await.text, "3");
        let told = gateway.turn(stream, &and(&said, "say a\nerror 451 blocked")).await;
        assert!(told.body.contains("error"), "{told:?}");
        assert_eq!(gateway.leases(), Leases { size: 0, hits: 3, restored: 1, advanced: 1, dropped: 1 });
    }
}

#[tokio::test]
async fn a_lease_is_restored_when_its_account_is_limited_and_none_other_serves() {
    for stream in [true, false] {
        let (gateway, said) = begun(stream).await;
        let told = gateway.turn(stream, &and(&said, "error 429 wait")).await;
        assert_eq!(told.status, 429, "{told:?}");
        assert_eq!(gateway.leases(), Leases { size: 1, hits: 1, restored: 1, advanced: 0, dropped: 0 });
        assert_eq!(gateway.sessions().len(), 2);
        // All candidates cool now: refused before anything is sent, the checkout counted as a hit.
        let told = gateway.turn(stream, &and(&said, "count")).await;
        assert_eq!(told.status, 429, "{told:?}");
        assert_eq!(gateway.leases(), Leases { size: 1, hits: 2, restored: 2, advanced: 0, dropped: 0 });
        assert_eq!(gateway.sessions().len(), 2);
    }
}

#[tokio::test]
async fn a_lease_is_restored_when_the_address_is_limited() {
    for stream in [true, false] {
        let (gateway, said) = begun_with(stream, &["second", "third", "fourth"]).await;
        let told = gateway.turn(stream, &and(&said, "error 429 wait")).await;
        assert_eq!(told.status, 429, "{told:?}");
        assert!(told.body.contains("address"), "{told:?}");
        let leases = gateway.leases();
        assert_eq!((leases.size, leases.restored, leases.dropped), (1, 1, 0));
    }
}

#[tokio::test]
async fn a_lease_after_a_deadline_of_the_agents_own_is_dead_whether_the_client_is_there_or_not() {
    for stream in [true, false] {
        for leaves in [true, false] {
            let (gateway, said) = begun(stream).await;
            let asking = gateway.start("alice", stream, &and(&said, "mark heard\nerror 504 too late"));
            if leaves {
                until("the agent answers", || gateway.world.file("mark") == "heard").await;
                drop(asking);
            } else {
                assert_eq!(asking.told(true).await.status, 504);
            }
            gateway.idle().await;
            let leases = gateway.leases();
            assert_eq!((leases.size, leases.restored, leases.dropped), (0, 0, 1), "{stream} {leaves}");
        }
    }
}

#[tokio::test]
async fn a_lease_of_a_turn_in_which_the_agent_crashes_is_dropped_and_nothing_is_sent_twice() {
    for (stream, steps) in [(true, "crash"), (false, "crash"), (true, "say a\ncrash"), (false, "say a\ncrash")] {
        let (gateway, mut said) = begun(stream).await;
        let told = gateway.turn(stream, &and(&said, steps)).await;
        assert!(told.body.contains("error"), "{told:?}");
        assert_eq!(
            gateway.leases(),
            Leases { size: 0, hits: 1, restored: 0, advanced: 0, dropped: 1 },
            "{stream} {steps}"
        );
        assert_eq!(gateway.sessions().len(), 2);
        assert_eq!(gateway.goes_on(stream, &mut said, "count").await.text, "1");
    }
}

#[tokio::test]
async fn a_lease_whose_process_died_between_turns_is_replaced_unseen_with_the_whole_history() {
    for stream in [true, false] {
        let gateway = Gateway::new(&[], |_| {});
        let mut said = Vec::new();
        let pid = gateway.goes_on(stream, &mut said, "pid").await.text;
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill");
        until("it has ended", || !runs(&pid)).await;
        until("that is known", || gateway.world.acp.processes() == 0).await;
        assert_eq!(gateway.goes_on(stream, &mut said, "count").await.text, "1");
        let prompts = gateway.world.heard("session/prompt");
        let history = format!("What was said in this conversation so far:\n\nUser: pid\n\nAssistant: {pid}");
        assert_eq!(prompts[1]["prompt"][0]["text"], history);
        assert_eq!(prompts.len(), 2);
        assert_eq!(gateway.leases().size, 1);
    }
}

#[tokio::test]
async fn a_lease_is_in_one_of_two_identical_turns_at_once() {
    for stream in [true, false] {
        let (gateway, said) = begun(stream).await;
        let said = and(&said, "count");
        let (one, other) = (gateway.start("alice", stream, &said), gateway.start("alice", stream, &said));
        let (one, other) = futures_util::future::join(one.told(true), other.told(true)).await;
        gateway.idle().await;
        let mut counts = [one.text, other.text];
        counts.sort();
        assert_eq!(counts, ["1", "2"]);
        assert_eq!(gateway.leases().hits, 1);
    }
}

#[tokio::test]
async fn a_lease_is_its_callers_and_its_historys_alone() {
    for stream in [true, false] {
        let (gateway, said) = begun(stream).await;
        let told = gateway.start("bob", stream, &and(&said, "count")).told(true).await;
        assert_eq!(told.text, "1");
        gateway.idle().await;
        assert_eq!(gateway.leases().hits, 0);
        let mut edited = and(&said, "count");
        edited[0].1 = "count, please".into();
        gateway.turn(stream, &edited).await;
        assert_eq!(gateway.leases().hits, 0);
        assert_eq!(gateway.turn(stream, &and(&said, "count")).await.text, "2");
        assert_eq!(gateway.leases().hits, 1);
    }
}

#[tokio::test]
async fn a_lease_ends_exactly_once_wherever_its_turn_is_dropped() {
    let ended = |leases: Leases| leases.restored + leases.advanced + leases.dropped;
    for stream in [true, false] {
        let gateway = Gateway::new(&[], |_| {});
        let mut all = [0; 3];
        for polls in 0.. {
            let mut said = Vec::new();
            gateway.goes_on(stream, &mut said, &format!("say {polls}")).await;
            let (before, session) = (gateway.leases(), gateway.sessions().pop());
            let whole =
                gateway.polled(stream, &and(&said, "think a\ntool b\nsay c\npermission read\nsay d"), polls).await;
            gateway.idle().await;
            let after = gateway.leases();
            assert_eq!(ended(after) - ended(before), after.hits - before.hits, "after {polls} polls");
            let [restored, advanced, dropped] =
                [after.restored - before.restored, after.advanced - before.advanced, after.dropped - before.dropped];
            all = [all[0] + restored, all[1] + advanced, all[2] + dropped];
            assert_eq!(after.size as u64, before.size as u64 - dropped, "after {polls} polls");
            // What is given back was never in the agent's hands.
            let heard = gateway.sessions().into_iter().filter(|heard| Some(heard) == session.as_ref()).count();
            assert!(restored == 0 || heard == 1, "after {polls} polls");
            if whole {
                assert_eq!((advanced, heard), (1, 2));
                break;
            }
        }
        assert!(all.iter().all(|ends| *ends > 0), "each end was met: {all:?}");
        assert_eq!(gateway.world.heard("initialize").len(), 1);
    }
}
