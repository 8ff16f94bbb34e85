//! A call of the published service is dropped after each of its polls, whichever: the server sees that it is cancelled, and
//! the connection that it had is closed or whole.

use crate::chat::{HOW, ask, everything};
use crate::cut::{Cut, cut, soon, taken_all_before};
use crate::polls::{Dropped, EITHER, MANY, Polls};
use crate::rpc_peer::{idle, spec};
use turnkeep_engine::ports::{Native, Writing};
use turnkeep_lab::{Lab, LabOptions, Point, Recorded, Rule, Script};
use turnkeep_upstream::rpc::{Codec, Protocol};
use turnkeep_upstream::{ConnectChat, ConnectSpec};

const WAYS: [(Protocol, Codec); 4] = [
    (Protocol::Connect, Codec::Proto),
    (Protocol::Connect, Codec::Json),
    (Protocol::Grpc, Codec::Proto),
    (Protocol::Grpc, Codec::Json),
];

/// What happens before the gate: the start, the block and two words of it.
const BEFORE_THE_GATE: usize = 4;

/// The model whose answer never gets beyond its second word, and the one that answers slowly.
const HELD: &str = "held-at-a-gate";
const SLOW: &str = "slow";

async fn lab() -> Lab {
    let of = |model: &str| Rule { model: Some(model.into()), text: Some("one two three".into()), ..Rule::default() };
    let held = Rule { gate: Some("never".into()), gate_at: Some(Point::AfterWords(2)), ..of(HELD) };
    let slow = Rule { word_delay_ms: 1, ..of(SLOW) };
    let script = Script::of([held, slow, of(HOW.model)]);
    Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap()
}

/// The calls of a model.
fn calls(lab: &Lab, model: &str) -> Vec<Recorded> {
    let names = |request: &Recorded| request.body.windows(model.len()).any(|bytes| bytes == model.as_bytes());
    lab.requests().into_iter().filter(names).collect()
}

/// A call of this model that is dropped after so many polls, and the next one. Gives what there was of the first, and how
/// often the server saw that it was cancelled.
async fn dropped_after(way: (Protocol, Codec), model: &str, polls: Polls, case: &str) -> (Cut, usize) {
    let (protocol, codec) = way;
    let lab = lab().await;
    let spec = ConnectSpec { protocol, codec, ..spec(format!("http://{}", lab.addr())) };
    let driver = ConnectChat::new(&spec).unwrap();
    let rpc = driver.rpc();
    let body = |model| driver.write(&everything(), Writing { model, ..HOW }).unwrap().body;
    let enough = if model == HELD { BEFORE_THE_GATE } else { usize::MAX };
    let first = cut(driver.send(ask(body(model))), polls, enough).await;
    assert!(!first.whole || first.text == "one two three", "{case}: {first:?}");

    // What is open serves nobody: over HTTP/1.1 that is none but one whose answer had come to its end.
    soon(&format!("{case}: the lease ends"), async {
        while rpc.open_connections() > rpc.idle_connections() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let most = usize::from(protocol == Protocol::Grpc || model == SLOW);
    assert!(rpc.open_connections() <= most, "{case}");

    let next = cut(driver.send(ask(body(HOW.model))), Polls::of(MANY, Dropped::Woken), usize::MAX).await;
    assert!(next.whole && next.text == "one two three", "{case}: {next:?}");
    soon(&format!("{case}: it is cancelled"), lab.wait_idle()).await;
    soon(&format!("{case}: it comes back"), idle(rpc)).await;
    assert_eq!(rpc.open_connections(), 1, "{case}: no more than the next call needs");
    soon(&format!("{case}: the others are closed"), lab.wait_connections(1)).await;

    drop(driver);
    taken_all_before(lab.addr()).await;
    soon(&format!("{case}: all are closed"), lab.wait_no_connections()).await;
    let asked = calls(&lab, model);
    assert!(asked.len() <= 1, "{case}: sent once");
    let cancelled = asked.iter().filter(|call| call.client_closed_after).count();
    assert!(calls(&lab, HOW.model).iter().all(|call| !call.client_closed_after), "{case}");
    assert_eq!(lab.aborted(), cancelled, "{case}");
    if model == HELD {
        assert_eq!(cancelled, asked.len(), "{case}: an answer without an end is left before it");
    }
    (first, cancelled)
}

#[tokio::test]
async fn a_call_that_is_dropped_after_any_of_its_polls_is_cancelled_and_its_connections_lease_ends() {
    for way in WAYS {
        for dropped in EITHER {
            let mut cancelled = 0;
            for polls in 0..MANY {
                let case = format!("{way:?}, held, {dropped:?} after {polls} polls");
                let (first, times) = dropped_after(way, HELD, Polls::of(polls, dropped), &case).await;
                cancelled += times;
                if first.happenings == BEFORE_THE_GATE {
                    assert!(cancelled >= BEFORE_THE_GATE, "{case}: {cancelled} were cancelled at the server");
                    break;
                }
                assert!(polls + 1 < MANY, "{case}: the gate is reached");
            }
            for polls in 0..MANY {
                let case = format!("{way:?}, slow, {dropped:?} after {polls} polls");
                if dropped_after(way, SLOW, Polls::of(polls, dropped), &case).await.0.whole {
                    break;
                }
                assert!(polls + 1 < MANY, "{case}: the turn has an end");
            }
        }
    }
}
