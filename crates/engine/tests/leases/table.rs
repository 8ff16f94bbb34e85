//! Each cell of the table of leases: what becomes of a conversation of either kind at each end of a turn, streamed and
//! plain.

use crate::fake::{Act, Beat, Proof, gone, says};
use crate::turns::Asking;
use crate::world::{With, World, begun, second, with};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use turnkeep_base::FaultKind;
use turnkeep_engine::route::Rules;
use turnkeep_policy::conversations::Handling;

/// What became of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Restored,
    Advanced,
    Dropped,
}

use Became::{Advanced, Dropped, Restored};

/// One try at a turn, so that its first end is its last.
fn once(handling: Handling) -> World {
    let rules = Rules { attempts: 1, dispatches: 1, ..Rules::default() };
    with(With { handling, rules, ..With::default() })
}

/// The second turn of a conversation ends with this, and its lease so.
async fn ends(name: &str, act: Act, mutable: Became, immutable: Became) {
    for (handling, expected) in [(Handling::Mutable, mutable), (Handling::Immutable, immutable)] {
        for stream in [true, false] {
            let world = once(handling);
            begun(&world, stream).await;
            world.fake.act([act.clone()]);
            patient(world.start(&second(stream))).await;
            world.idle().await;
            expect(&world, &format!("{name} {handling:?} stream {stream}"), handling, expected).await;
        }
    }
}

/// The counters, the conversations that are left, and that the caller's next turn goes on as it may.
async fn expect(world: &World, name: &str, handling: Handling, expected: Became) {
    world.assert_right();
    let [hits, misses, restored, advanced, dropped] = world.counts();
    let count = |became| u64::from(expected == became);
    assert_eq!((hits, misses), (1, 0), "{name}");
    assert_eq!([restored, advanced, dropped], [count(Restored), count(Advanced), count(Dropped)], "{name}");
    let left = match (expected, handling) {
        (Restored, _) | (Advanced, Handling::Mutable) => 1,
        (Advanced, Handling::Immutable) => 2,
        (Dropped, _) => 0,
    };
    assert_eq!(world.size(), left, "{name}");
    let lost = usize::from(expected == Dropped && handling == Handling::Mutable);
    assert_eq!(world.fake.kept.lock().forgotten.len(), lost, "{name}: its driver is told of what is lost");
    let sends = world.fake.sends();
    let again = world.delivered(&crate::world::Ask { bypass: true, ..second(true) }).await;
    if again.status == 429 || again.status == 403 {
        // The account cools, or may not use the model for a while.
        assert_eq!((world.fake.sends(), world.size()), (sends, left), "{name}");
        return;
    }
    let resumes = world.fake.last().resume.is_some();
    let goes_on = expected == Restored || (expected == Advanced && handling == Handling::Immutable);
    assert_eq!((world.fake.sends(), resumes), (sends + 1, goes_on), "{name}: the same turn again");
    world.fake.assert_right();
}

#[tokio::test]
async fn a_lease_whose_send_never_left_is_restored() {
    for kind in [FaultKind::ConnectRefused, FaultKind::DnsFailure, FaultKind::TlsFailure, FaultKind::ConnectTimeout] {
        ends(kind.name(), Act::Refuse(kind, Proof::NeverLeft), Restored, Restored).await;
    }
}

#[tokio::test]
async fn a_lease_whose_send_was_refused_by_a_reply_is_restored() {
    for kind in [
        FaultKind::CredentialRejected,
        FaultKind::QuotaExhausted,
        FaultKind::RateLimited,
        FaultKind::ModelNotEntitled,
        FaultKind::ModelOverloaded,
        FaultKind::ModelNotFound,
        FaultKind::RequestInvalid,
        FaultKind::PolicyBlocked,
        FaultKind::Unclassified,
    ] {
        ends(kind.name(), Act::Refuse(kind, Proof::ByReply), Restored, Restored).await;
    }
}

#[tokio::test]
async fn a_lease_refused_by_a_failure_is_restored_where_the_position_can_be_read_and_dropped_where_not() {
    for kind in [FaultKind::UpstreamInternal, FaultKind::UpstreamUnavailable] {
        ends(kind.name(), Act::Refuse(kind, Proof::ByFailure), Restored, Restored).await;
        ends(kind.name(), Act::Refuse(kind, Proof::Nothing), Dropped, Restored).await;
    }
}

#[tokio::test]
async fn a_lease_whose_send_may_have_begun_is_dropped_if_that_may_have_changed_it() {
    for kind in [FaultKind::ConnectionReset, FaultKind::HttpProtocolError, FaultKind::MalformedResponse] {
        ends(kind.name(), Act::Refuse(kind, Proof::Nothing), Dropped, Restored).await;
    }
}

#[tokio::test]
async fn a_lease_whose_answer_breaks_after_its_first_event_is_dropped_if_that_may_have_changed_it() {
    for kind in [
        FaultKind::ConnectionReset,
        FaultKind::UpstreamInternal,
        FaultKind::RateLimited,
        FaultKind::PolicyBlocked,
        FaultKind::CredentialRejected,
        FaultKind::ModelOverloaded,
    ] {
        for before in [vec![Beat::Start], vec![Beat::Start, Beat::Say("half an")]] {
            let beats = before.into_iter().chain([Beat::Fault(kind)]).collect();
            ends(kind.name(), Act::Answer(beats), Dropped, Restored).await;
        }
    }
}

#[tokio::test]
async fn a_lease_whose_answer_stops_without_its_end_is_dropped_if_that_may_have_changed_it() {
    for beats in [vec![], vec![Beat::Start], vec![Beat::Start, Beat::Say("half an")]] {
        ends("truncated", Act::Answer(beats), Dropped, Restored).await;
    }
}

#[tokio::test]
async fn a_lease_is_dead_by_a_deadline_even_where_the_send_was_refused() {
    for proof in [Proof::Nothing, Proof::ByReply, Proof::ByFailure] {
        ends("deadline", Act::Refuse(FaultKind::DeadlineExceeded, proof), Dropped, Restored).await;
    }
    let beats = vec![Beat::Start, Beat::Fault(FaultKind::DeadlineExceeded)];
    ends("deadline in the middle", Act::Answer(beats), Dropped, Restored).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_dead_by_an_upstream_that_stalls() {
    ends("at the send", Act::Hang, Dropped, Restored).await;
    ends("before anything is said", Act::Answer(vec![Beat::Start, Beat::Hang]), Dropped, Restored).await;
    let said = vec![Beat::Start, Beat::Say("half an"), Beat::Hang];
    ends("in the middle", Act::Answer(said), Dropped, Restored).await;
}

#[tokio::test]
async fn a_lease_that_is_gone_is_dropped_whatever_its_kind_is() {
    // One dispatch is all that these turns have, so nothing comes after it.
    ends("gone", gone(), Dropped, Dropped).await;
    let in_the_answer = Act::Answer(vec![Beat::Fault(FaultKind::ConversationGone)]);
    ends("gone, as the answer begins", in_the_answer, Dropped, Dropped).await;
}

#[tokio::test]
async fn a_lease_survives_a_panic_as_its_state_says() {
    ends("in sending", Act::Panic, Dropped, Restored).await;
    ends("in reading", Act::Answer(vec![Beat::Start, Beat::Panic]), Dropped, Restored).await;
}

#[tokio::test]
async fn a_completed_lease_is_advanced_delivered_or_not_and_an_undelivered_answer_is_held() {
    ends("completed", says("two"), Advanced, Advanced).await;
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = once(handling);
        begun(&world, true).await;
        world.fake.act([says("two")]);
        world.lost(&second(true)).await;
        assert_eq!(world.engine.kept.holds.get(), 1);
        let sends = world.fake.sends();
        let again = world.delivered(&second(false)).await;
        assert_eq!((again.header("x-turnkeep-cache"), world.fake.sends()), ("held", sends), "{}", again.body);
        assert!(again.body.contains("two"), "{}", again.body);
        let next = crate::world::said(true, &["hi", "one", "more", "two", "and then"]);
        world.delivered(&next).await;
        assert_eq!(world.fake.last().lines, ["user: and then"], "it stayed advanced");
        world.assert_right();
    }
}

/// The client leaves while the upstream is at this beat of its answer.
async fn left_at(beats: Vec<Beat>, gate: &Arc<Semaphore>, mutable: Became, immutable: Became) {
    for (handling, expected) in [(Handling::Mutable, mutable), (Handling::Immutable, immutable)] {
        for stream in [true, false] {
            let world = once(handling);
            begun(&world, stream).await;
            world.fake.act([Act::Answer(beats.clone())]);
            let Asking { reader, .. } = world.start(&second(stream));
            until(|| world.fake.sends() == 2).await;
            drop(reader);
            world.idle().await;
            gate.add_permits(1);
            assert_eq!(world.fake.kept.lock().cancelled, 1, "for real");
            expect(&world, &format!("left {handling:?} stream {stream}"), handling, expected).await;
        }
    }
}

/// Reads the whole reply, however long that takes, and gives its status. It does not arrive.
pub async fn patient(mut asking: Asking) -> u16 {
    let reader = &mut asking.reader;
    let head = poll_fn(|cx| reader.poll_head(cx)).await.expect("the client is told");
    while poll_fn(|cx| reader.poll_chunk(cx)).await.is_some() {}
    drop(reader.ticket());
    head.status.as_u16()
}

/// Lets others run until it holds.
pub async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("in time");
}

#[tokio::test]
async fn a_lease_whose_client_leaves_in_the_middle_is_dropped_if_that_may_have_changed_it() {
    let gate = Arc::new(Semaphore::new(0));
    left_at(vec![Beat::Start, Beat::Gate(gate.clone()), Beat::End], &gate, Dropped, Restored).await;
    let said = vec![Beat::Start, Beat::Say("half an"), Beat::Gate(gate.clone()), Beat::End];
    left_at(said, &gate, Dropped, Restored).await;
}

#[tokio::test]
async fn a_lease_that_is_held_as_the_gateway_stops_is_dropped_if_that_may_have_changed_it() {
    for (handling, expected) in [(Handling::Mutable, Dropped), (Handling::Immutable, Restored)] {
        let world = once(handling);
        begun(&world, true).await;
        world.fake.act([Act::Answer(vec![Beat::Start, Beat::Hang])]);
        let asking = world.start(&second(true));
        until(|| world.fake.sends() == 2).await;
        world.engine.stop();
        drop(asking.told().await);
        world.idle().await;
        world.assert_right();
        let [.., restored, _, dropped] = world.counts();
        assert_eq!([restored, dropped], [u64::from(expected == Restored), u64::from(expected == Dropped)]);
    }
}

#[tokio::test]
async fn a_lease_refused_by_a_failure_reads_its_position_again_until_it_has_gone_on() {
    let world = with(With { rules: Rules { attempts: 1, ..Rules::default() }, ..With::default() });
    begun(&world, true).await;
    let fails = Act::Refuse(FaultKind::UpstreamUnavailable, Proof::ByFailure);
    let unsent = Act::Refuse(FaultKind::ConnectRefused, Proof::NeverLeft);
    world.fake.act([fails, unsent]);
    let mut rereads = Vec::new();
    for words in [vec!["hi", "one", "more"], vec!["hi", "one", "more", "one", "and then"]] {
        for _ in 0..3 {
            world.delivered(&crate::world::said(true, &words)).await;
        }
        rereads.extend(world.fake.kept.lock().sends.drain(..).map(|sent| (sent.resume.is_some(), sent.reread)));
    }
    let goes_on = |(resumed, _): &&(bool, bool)| *resumed;
    let resumed: Vec<bool> = rereads.iter().filter(goes_on).map(|(_, reread)| *reread).collect();
    assert!(!resumed[0], "nothing has happened to it");
    assert!(resumed[1], "a failure may have moved it");
    assert_eq!(resumed.last(), Some(&false), "it has gone on since");
    world.assert_right();
}

#[tokio::test]
async fn a_lease_is_not_killed_by_what_befalls_another_attempt() {
    // The owner refuses, the other account stalls out: the conversation was not in that.
    let rules = Rules { attempts: 2, ..Rules::default() };
    let world = with(With { accounts: &["a", "b"], rules, ..With::default() });
    begun(&world, true).await;
    let refuses = Act::Refuse(FaultKind::RateLimited, Proof::ByReply);
    let dead = Act::Refuse(FaultKind::DeadlineExceeded, Proof::ByReply);
    world.fake.act([refuses, dead]);
    let told = world.delivered(&second(true)).await;
    assert_eq!(told.status, 504, "{}", told.body);
    assert_eq!((world.size(), world.counts()), (1, [1, 0, 1, 0, 0]));
    world.assert_right();
}
