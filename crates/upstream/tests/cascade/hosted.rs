//! The driver over processes that a host has started: each is shown its own secret, and one that takes no calls is given up.

use crate::driver::{ask, fault, said};
use crate::talk::{HEALTH, PROTOCOLS, SEND, START, lab, on, spec};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use turnkeep_base::{AccountId, Fault, FaultKind, Phase, Secret};
use turnkeep_engine::ports::Native;
use turnkeep_lab::{Lab, Rule};
use turnkeep_upstream::rpc::Protocol;
use turnkeep_upstream::{Cascade, CascadeHost, CascadePlace};

/// Nothing takes longer when it works.
const LONG: Duration = Duration::from_secs(30);

/// Processes that are started here, each a lab; when one is dismissed the next is lent.
struct Host {
    labs: Vec<Lab>,
    /// Where each is said to be, if not where its lab is.
    elsewhere: Mutex<Vec<Option<SocketAddr>>>,
    runs: AtomicUsize,
    lent: Mutex<Vec<usize>>,
}

impl Host {
    fn of(labs: Vec<Lab>) -> Arc<Host> {
        let elsewhere = Mutex::new(vec![None; labs.len()]);
        Arc::new(Host { labs, elsewhere, runs: AtomicUsize::new(0), lent: Mutex::default() })
    }

    fn driver(self: &Arc<Host>, protocol: Protocol) -> Cascade {
        let mut spec = spec(&self.labs[0], protocol);
        spec.host = Some(self.clone());
        spec.health_within = Duration::from_millis(300);
        spec.rpc.connect_timeout = Duration::from_millis(300);
        Cascade::new(spec).unwrap()
    }

    /// The next process runs in the place of the one that does.
    fn next(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    fn lent(&self) -> Vec<usize> {
        self.lent.lock().clone()
    }
}

impl CascadeHost for Host {
    fn lend(&self, _account: &AccountId) -> BoxFuture<'_, Result<CascadePlace, Fault>> {
        let runs = self.runs.load(Ordering::Relaxed);
        self.lent.lock().push(runs);
        let addr = self.elsewhere.lock()[runs].unwrap_or(self.labs[runs].addr());
        let place = CascadePlace {
            base_url: format!("http://{addr}"),
            secret: Secret::new(format!("secret-of-{runs}")),
            started: runs as u128,
            hold: Arc::new(()),
        };
        async move { Ok(place) }.boxed()
    }

    fn runs(&self, started: u128) -> bool {
        started == self.runs.load(Ordering::Relaxed) as u128
    }

    fn dismiss(&self, _account: &AccountId, started: u128) {
        if self.runs(started) {
            self.next();
        }
    }
}

/// A place where nobody listens: whoever connects is refused.
async fn nobodys() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn a_started_process_is_shown_its_own_secret_and_its_conversations_end_with_it() {
    let host = Host::of(vec![lab([]).await, lab([]).await]);
    let driver = host.driver(Protocol::Connect);
    let (_, first) = said(&driver, "one", None).await;
    let (_, first) = said(&driver, "two", Some(first)).await;
    assert!(driver.stands(&first));
    host.next();
    assert!(!driver.stands(&first), "its process runs no more");
    let failed = fault(driver.send(ask(&driver, "three", Some(first))).await);
    assert_eq!(failed.fault.kind, FaultKind::ConversationGone);
    said(&driver, "three", None).await;
    for (number, lab) in host.labs.iter().enumerate() {
        let secret = format!("secret-of-{number}");
        assert!(lab.requests().iter().all(|request| request.account.as_deref() == Some(&secret)));
        assert_eq!(lab.cascade().starts, 1);
    }
    assert_eq!(*host.lent.lock(), [0, 0, 1, 1]);
}

#[tokio::test]
async fn a_call_that_nobody_listens_for_gives_the_process_up_at_once_and_the_next_send_has_a_fresh_one() {
    for protocol in PROTOCOLS {
        for ready in [true, false] {
            let host = Host::of(vec![lab([]).await, lab([]).await]);
            let driver = host.driver(protocol);
            let first = if ready { Some(said(&driver, "one", None).await.1) } else { None };
            *host.elsewhere.lock() = vec![Some(nobodys().await), None];
            let failed = fault(driver.send(ask(&driver, "two", None)).await);
            assert_eq!((failed.fault.kind, failed.fault.phase), (FaultKind::ConnectRefused, Phase::Unsent));
            assert!(failed.refused.is_some(), "nothing of the turn has left");
            assert!(!host.runs(0), "{protocol:?}, ready {ready}");
            assert!(first.is_none_or(|first| !driver.stands(&first)), "its conversations end with it");
            said(&driver, "two", None).await;
            assert_eq!(host.lent().last(), Some(&1));
        }
    }
}

#[tokio::test]
async fn a_process_that_was_ready_and_hangs_is_passed_over_for_a_fresh_one_within_the_turn() {
    for protocol in PROTOCOLS {
        // The second turn finds a server that answers nothing more.
        let hangs = [
            Rule { gate: Some("never".into()), nth: Some(2), ..on(HEALTH) },
            Rule { gate: Some("start".into()), nth: Some(2), ..on(START) },
        ];
        let host = Host::of(vec![lab(hangs).await, lab([]).await]);
        let driver = Arc::new(host.driver(protocol));
        said(&driver, "one", None).await;
        let turn = {
            let driver = driver.clone();
            tokio::spawn(async move { driver.send(ask(&driver, "two", None)).await.map(drop) })
        };
        host.labs[0].wait_at_gate("start", 1).await;
        turn.abort();
        assert!(turn.await.is_err(), "it was let go of by its clock");
        assert_eq!(host.lent(), [0, 0]);
        said(&driver, "two", None).await;
        assert_eq!(host.lent(), [0, 0, 0, 1], "{protocol:?}: asked, found to hang, and another one");
    }
}

#[tokio::test]
async fn a_look_goes_on_when_its_turn_has_left_so_that_turns_in_a_hurry_find_out_too() {
    let hangs = [Rule { gate: Some("never".into()), ..on(HEALTH) }];
    let host = Host::of(vec![lab(hangs).await, lab([]).await]);
    let driver = host.driver(Protocol::Connect);
    for _ in 0..3 {
        assert!(driver.send(ask(&driver, "one", None)).now_or_never().is_none(), "it is let go of by its clock");
    }
    let dismissed = async {
        while host.runs(0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, dismissed).await.unwrap();
    assert_eq!(host.labs[0].requests().len(), 1, "one look for all of them");
    said(&driver, "one", None).await;
}

#[tokio::test]
async fn a_process_that_answers_anything_is_kept() {
    for rule in [
        Rule { raw: Some("{}".into()), ..on(HEALTH) },
        Rule { fault: Some(turnkeep_lab::Fault::Html), ..on(HEALTH) },
        Rule { fault: Some(turnkeep_lab::Fault::CloseBeforeReply), ..on(START) },
        Rule { fault: Some(turnkeep_lab::Fault::CloseBeforeReply), ..on(SEND) },
    ] {
        let host = Host::of(vec![lab([rule]).await, lab([]).await]);
        let driver = host.driver(Protocol::Connect);
        fault(driver.send(ask(&driver, "one", None)).await);
        assert!(host.runs(0));
    }
}
