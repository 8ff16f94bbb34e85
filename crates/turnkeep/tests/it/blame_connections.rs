//! Whose fault a broken connection is: never the account's, and of one that died while idle not even an attempt's.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{assert_broke_off, assert_refused, assert_said, covering, kind, streamed};
use crate::support::world::{Plan, account, assert_unblamed, nobodys};
use crate::support::*;
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use turnkeep_lab::Lab;

const WORDS: &str = "one two three four";

fn faulty(fault: Fault, at: Option<Point>, code: Option<&str>) -> Rule {
    let fault_code = code.map(str::to_owned);
    Rule { text: Some(WORDS.into()), fault: Some(fault), fault_at: at, fault_code, ..Rule::default() }
}

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

/// Four turns on an upstream that cannot be reached: each tries it twice, and nobody is blamed.
async fn cannot_be_reached(pair: Pair, plan: &Plan, counter: &str) {
    let world = World::of(plan).await;
    for _ in 0..4 {
        let reply = world.client().await.turn(pair).await;
        assert_refused(pair, &reply, 502);
        assert_eq!(reply.header("x-should-retry"), Some("false"), "{pair:?} {counter}");
    }
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!((&counters[counter], &counters["transport_fault"]), (&8.into(), &8.into()), "{pair:?} {counters:#}");
    assert_eq!((&counters["unclassified_fault"], &counters["dead_credentials"]), (&0.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn four_refused_connections_in_a_row_leave_the_account_alone() {
    let nobody = nobodys();
    let addr = nobody.local_addr().unwrap();
    join_all(covering().into_iter().map(|pair| async move {
        cannot_be_reached(pair, &Plan::over([Up::address(pair.upstream, addr)]), "connect_refused").await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_unknown_names_in_a_row_leave_the_account_alone() {
    join_all(covering().into_iter().map(|pair| async move {
        let (kind, path) = kind(pair.upstream);
        let mut plan = Plan::over([]).models("[[models]]\nname = \"m\"\nroutes = [{ upstream = \"nowhere\" }]\n");
        plan.more = format!(
            "[[upstreams]]\nname = \"nowhere\"\nkind = {kind:?}\nbase_url = \"http://does-not-exist.invalid{path}\"\n\
             [[upstreams.accounts]]\nname = \"a\"\nsecret = \"secret-a\"\n"
        );
        cannot_be_reached(pair, &plan, "dns_failure").await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_unknown_certificates_in_a_row_leave_the_account_alone_and_nothing_is_sent() {
    let stranger = tls_lab(Script::default()).await;
    let ca = stranger.ca_pem().map(str::to_owned);
    let ca = &ca;
    join_all(covering().into_iter().map(|pair| async move {
        let lab = tls_lab(Script::default()).await;
        let up = Up { ca: ca.clone(), ..Up::at(pair.upstream, &lab) };
        cannot_be_reached(pair, &Plan::over([up]), "tls_failure").await;
        assert_eq!(lab.requests().len(), 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_spoken_to_a_tls_port_leaves_the_account_alone() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = tls_lab(Script::default()).await;
        let world = World::over([Up { ca: None, ..Up::at(pair.upstream, &lab) }]).await;
        for _ in 0..4 {
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        // It says something that is no HTTP, or just closes.
        let told = counters["http_protocol_error"].as_u64().unwrap() + counters["connection_reset"].as_u64().unwrap();
        assert_eq!(told, 8, "{pair:?} {counters:#}");
        assert_eq!((&counters["unclassified_fault"], &counters["dead_credentials"]), (&0.into(), &0.into()));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_end_as_soon_as_they_are_accepted_leave_the_account_alone() {
    join_all(covering().into_iter().map(|pair| async move {
        for fault in [AcceptFault::ResetOnAccept, AcceptFault::CloseOnAccept] {
            let accept = vec![AcceptRule { fault, times: None }];
            let lab = plain_lab(Script { accept, ..Script::default() }).await;
            cannot_be_reached(pair, &Plan::over([Up::at(pair.upstream, &lab)]), "connection_reset").await;
        }
    }))
    .await;
}

/// A served turn, then the upstream does `ends` to the idle connection, then another turn: served at once on a fresh
/// connection, as if nothing had been.
async fn died_while_idle(pair: Pair, lab: Lab, ends: fn(&Lab) -> usize) {
    let world = World::two(pair, &lab).await;
    assert_said(pair, &world.client().await.turn(pair).await, WORDS);
    world.until_at_rest().await;
    soon(lab.wait_idle()).await;
    assert_eq!(ends(&lab), 1, "{pair:?}: one connection waits");
    for _ in 0..3 {
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "{pair:?}");
    }
    let counters = world.until_at_rest().await;
    for name in ["a", "b"] {
        assert_unblamed(&counters, name);
    }
    for counter in ["connection_reset", "stream_truncated", "transport_fault", "failover_hops", "transient_replays"] {
        assert_eq!(counters[counter], 0, "{pair:?} {counter}");
    }
    assert_eq!(counters["upstreams"][0]["faults_in_a_row"], 0);
    assert_eq!(lab.requests().len(), 4, "{pair:?}");
    let entries = world.into_ledger().await;
    assert_eq!(entries.len(), 4, "{pair:?}: one attempt for each turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_closed_while_idle_costs_neither_an_attempt_nor_a_sample() {
    join_all(covering().into_iter().map(|pair| async move {
        for ends in [Lab::close_idle, Lab::reset_idle] {
            died_while_idle(pair, lab([good()]).await, ends).await;
            died_while_idle(pair, tls_lab(Script::of([good()])).await, ends).await;
        }
    }))
    .await;
}

/// Stands before a lab and ends every connection at its second request, which it does not pass on. Counts them.
async fn one_request_each(lab: &Lab, reset: bool) -> (SocketAddr, Arc<AtomicUsize>) {
    let (listener, to) = (TcpListener::bind(("127.0.0.1", 0)).await.unwrap(), lab.addr());
    let (addr, ended) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = ended.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let [mut asked, mut told] = [[0; 16 << 10]; 2];
                let mut answered = false;
                loop {
                    tokio::select! {
                        read = near.read(&mut asked) => match read {
                            Ok(0) | Err(_) => return,
                            Ok(_) if answered => {
                                count.fetch_add(1, Ordering::Relaxed);
                                let wait = reset.then_some(std::time::Duration::ZERO);
                                socket2::SockRef::from(&near).set_linger(wait).unwrap();
                                return;
                            }
                            Ok(read) => far.write_all(&asked[..read]).await.unwrap(),
                        },
                        read = far.read(&mut told) => match read {
                            Ok(0) | Err(_) => return,
                            Ok(read) => {
                                answered = true;
                                if near.write_all(&told[..read]).await.is_err() {
                                    return;
                                }
                            }
                        },
                    }
                }
            });
        }
    });
    (addr, ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_that_ends_instead_of_answering_is_retried_at_once_on_a_fresh_one() {
    join_all(covering().into_iter().map(|pair| async move {
        for reset in [false, true] {
            let lab = lab([good()]).await;
            let (addr, ended) = one_request_each(&lab, reset).await;
            let world = World::over([Up::address(pair.upstream, addr)]).await;
            for _ in 0..6 {
                let reply = world.client().await.turn(pair).await;
                assert_said(pair, &reply, WORDS);
                assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "{pair:?} reset {reset}");
                world.until_at_rest().await;
            }
            assert!(ended.load(Ordering::Relaxed) > 0, "{pair:?}: no connection was used again");
            assert_eq!(lab.requests().len(), 6, "{pair:?} reset {reset}");
            let counters = world.counters().await;
            assert_unblamed(&counters, "a");
            assert_eq!((&counters["connection_reset"], &counters["transport_fault"]), (&0.into(), &0.into()));
            assert_eq!(counters["upstreams"][0]["faults_in_a_row"], 0);
        }
    }))
    .await;
}

/// The end of a stream's transport may come well after the protocol's own end.
#[tokio::test(flavor = "multi_thread")]
async fn a_streams_connection_is_kept_although_its_transport_ends_later_than_its_answer() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([good()]).await;
        let (addr, slow) = late_ends(&lab).await;
        let world = World::over([Up::address(pair.upstream, addr)]).await;
        for turn in 0..4 {
            assert_said(pair, &world.client().await.turn(pair).await, WORDS);
            world.until_at_rest().await;
            soon(slow.clone().wait_for(|ends| *ends > turn)).await.unwrap();
            // The gateway hears the end in its own time.
            world.until("nothing is lent", |counters| counters["waiting"] == 0).await;
        }
        let connections: Vec<u64> = lab.requests().iter().map(|request| request.connection).collect();
        assert!(connections.windows(2).any(|two| two[0] == two[1]), "{pair:?}: each its own: {connections:?}");
    }))
    .await;
}

/// Stands before a lab and passes the last chunk's mark on 50 ms after what came before it. Tells how many ends there were.
async fn late_ends(lab: &Lab) -> (SocketAddr, watch::Receiver<usize>) {
    let (listener, to) = (TcpListener::bind(("127.0.0.1", 0)).await.unwrap(), lab.addr());
    let (addr, (ends, told)) = (listener.local_addr().unwrap(), watch::channel(0));
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let ends = ends.clone();
            tokio::spawn(async move {
                let far = TcpStream::connect(to).await.unwrap();
                let ((mut near_read, mut near), (mut far_read, mut far)) = (near.into_split(), far.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut near_read, &mut far).await });
                let mut bytes = [0; 16 << 10];
                while let Ok(read @ 1..) = far_read.read(&mut bytes).await {
                    let (now, later) = match bytes[..read].strip_suffix(b"0\r\n\r\n") {
                        Some(before) => (before, &b"0\r\n\r\n"[..]),
                        None => (&bytes[..read], &b""[..]),
                    };
                    if near.write_all(now).await.is_err() {
                        return;
                    }
                    if !later.is_empty() {
                        // What is tested is this very delay.
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        let written = near.write_all(later).await;
                        ends.send_modify(|ends| *ends += 1);
                        if written.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (addr, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goaway_lets_the_answer_finish_and_the_next_turn_opens_a_connection_of_its_own() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = tls_lab(Script::of([faulty(Fault::Http2Goaway, None, None)])).await;
        let world = World::simple(pair, &lab).await;
        for _ in 0..3 {
            let reply = world.client().await.turn(pair).await;
            assert_said(pair, &reply, WORDS);
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "{pair:?}");
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_eq!(counters["transport_fault"], 0, "{pair:?} {counters:#}");
        let requests = lab.requests();
        assert!(requests.iter().all(|request| request.version == http::Version::HTTP_2));
        assert_ne!(requests[0].connection, requests[1].connection);
    }))
    .await;
}

/// The first turn fails by this fault on a fresh connection, before its content: the other account serves, and what is
/// counted is `counter`.
async fn over_http2_the_other_serves(pair: Pair, rule: Rule, counter: &str) {
    let lab = tls_lab(Script::of([Rule { times: Some(1), ..rule }, good()])).await;
    let world = World::two(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_said(pair, &reply, WORDS);
    assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?} {counter}");
    let counters = world.until_at_rest().await;
    for name in ["a", "b"] {
        assert_unblamed(&counters, name);
    }
    assert_eq!((&counters[counter], &counters["failover_hops"]), (&1.into(), &1.into()), "{pair:?} {counters:#}");
    let requests = lab.requests();
    assert_eq!((requests.len(), requests[0].version), (2, http::Version::HTTP_2));
    assert_ne!(requests[0].account, requests[1].account);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusing_goaway_or_a_reset_stream_before_content_is_passed_over() {
    join_all(covering().into_iter().map(|pair| async move {
        let before = Some(Point::BeforeHeaders);
        let refusing = faulty(Fault::Http2GoawayRefusing, None, None);
        over_http2_the_other_serves(pair, refusing, "connection_reset").await;
        let refused = faulty(Fault::RstStream, before, Some("refused_stream"));
        over_http2_the_other_serves(pair, refused, "connection_reset").await;
        over_http2_the_other_serves(pair, faulty(Fault::RstStream, before, None), "connection_reset").await;
        let wrong = faulty(Fault::RstStream, before, Some("protocol_error"));
        over_http2_the_other_serves(pair, wrong, "http_protocol_error").await;
        let preamble = Some(Point::AfterPreamble);
        over_http2_the_other_serves(pair, faulty(Fault::RstStream, preamble, None), "connection_reset").await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_that_refuses_by_goaway_is_retried_at_once_on_a_fresh_one() {
    join_all(covering().into_iter().map(|pair| async move {
        let refusing = Rule { nth: Some(2), ..faulty(Fault::Http2GoawayRefusing, None, None) };
        let lab = tls_lab(Script::of([refusing, good()])).await;
        let world = World::simple(pair, &lab).await;
        for _ in 0..2 {
            let reply = world.client().await.turn(pair).await;
            assert_said(pair, &reply, WORDS);
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "{pair:?}");
            world.until_at_rest().await;
        }
        assert_eq!(lab.requests().len(), 3);
        let counters = world.counters().await;
        assert_unblamed(&counters, "a");
        assert_eq!(counters["transport_fault"], 0, "{pair:?} {counters:#}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_reset_after_content_ends_the_answer_as_failed_and_blames_nobody() {
    join_all(streamed().into_iter().map(|pair| async move {
        // A reset may overtake what came before it; here the client has that already.
        let reset = faulty(Fault::RstStream, Some(Point::AfterWords(2)), None);
        let rule = Rule { gate: Some("middle".into()), gate_at: Some(Point::AfterWords(2)), ..reset };
        let lab = tls_lab(Script::of([rule])).await;
        let world = World::two(pair, &lab).await;
        let mut client = world.client().await;
        client.ask(pair).await;
        client.until("two").await;
        lab.release("middle");
        assert_broke_off(pair, &client.reply().await, "one two ");
        let counters = world.until_at_rest().await;
        for name in ["a", "b"] {
            assert_unblamed(&counters, name);
        }
        assert_eq!((&counters["connection_reset"], &counters["delivered"]), (&1.into(), &0.into()), "{counters:#}");
        assert_eq!(lab.requests().len(), 1, "nobody else is asked");
        // The connection lives: the next turn uses it.
        lab.set_script(Script::of([good()]));
        assert_said(pair, &world.client().await.turn(pair).await, WORDS);
        assert_eq!(account(&counters, "a")["status"], "active");
    }))
    .await;
}
