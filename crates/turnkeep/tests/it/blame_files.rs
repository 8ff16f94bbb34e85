//! The gateway's own process runs out of files, in the real binary: its own fault, whoever was asked, and it recovers.

use crate::support::binary;
use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{assert_refused, assert_said, covering};
use crate::support::world::{Plan, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

const WORDS: &str = "one two three four";

/// What the operator sees, on a connection that is open already.
async fn counters(client: &mut Client) -> Value {
    client.write(&request_bytes("GET", "/dashboard/api/connect-metrics", &[], b"")).await;
    client.reply().await.json()
}

async fn at_rest(client: &mut Client) -> Value {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(5));
    soon(async {
        loop {
            looks.tick().await;
            let counters = counters(client).await;
            let accounts = counters["accounts"].as_array().unwrap();
            if counters["waiting"] == 0 && accounts.iter().all(|account| account["in_flight"] == 0) {
                return counters;
            }
        }
    })
    .await
}

fn lab_says() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

/// How many files the process has open, by its highest number.
fn highest_file(pid: u32) -> u64 {
    let names = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    names.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap()).max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_finds_no_file_is_told_so_and_the_next_one_with_files_is_served() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([lab_says()]).await;
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b"])]);
        let (child, addr) = binary::serve(&plan, folder.path(), None).await;
        let [mut operator, mut client] = [Client::tcp(addr).await, Client::tcp(addr).await];
        for open in [&mut operator, &mut client] {
            counters(open).await;
        }
        let id = child.id().unwrap();
        let pid = Pid::from_raw(i32::try_from(id).unwrap());
        // From here on it can open nothing: what it has, it has.
        let most = highest_file(id) + 100;
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(0), maximum: Some(most) }).unwrap();
        for turn in 1..=4u64 {
            let reply = client.turn(pair).await;
            let message = assert_refused(pair, &reply, 503);
            assert!(message.contains("out of a resource"), "{message}");
            let counters = at_rest(&mut operator).await;
            assert_eq!(counters["gateway_exhausted"], turn, "{pair:?} {counters:#}");
            for name in ["a", "b"] {
                assert_unblamed(&counters, name);
            }
            assert_eq!((&counters["transport_fault"], &counters["unclassified_fault"]), (&0.into(), &0.into()));
            assert_eq!(counters["upstreams"][0]["faults_in_a_row"], 0);
        }
        assert_eq!(lab.requests().len(), 0);
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) }).unwrap();
        assert_said(pair, &client.turn(pair).await, WORDS);
        assert_said(pair, &Client::tcp(addr).await.turn(pair).await, WORDS);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_callers_than_files_wait_or_are_told_and_no_account_is_blamed() {
    let pair = crate::support::dialects::CHAT;
    let lab = lab([Rule { word_delay_ms: 20, ..lab_says() }]).await;
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b"]).slots(64)]);
    let (_child, addr) = binary::serve(&plan, folder.path(), Some(40)).await;
    let turns = (0..80).map(|at| async move {
        let pair = pairs().into_iter().filter(|other| other.upstream == pair.upstream).nth(at % 8).unwrap();
        let reply = Client::tcp(addr).await.turn(pair).await;
        if reply.status == 200 {
            assert_said(pair, &reply, WORDS);
        } else {
            assert!(assert_refused(pair, &reply, 503).contains("out of a resource"), "{}", reply.text());
        }
        reply.status
    });
    let statuses = join_all(turns).await;
    assert!(statuses.contains(&200), "{statuses:?}");
    let mut operator = Client::tcp(addr).await;
    let counters = at_rest(&mut operator).await;
    for name in ["a", "b"] {
        assert_unblamed(&counters, name);
    }
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!(counters["gateway_exhausted"], refused, "{counters:#}");
    assert_eq!((&counters["transport_fault"], &counters["unclassified_fault"]), (&0.into(), &0.into()));
    assert_said(pair, &Client::tcp(addr).await.turn(pair).await, WORDS);
}
