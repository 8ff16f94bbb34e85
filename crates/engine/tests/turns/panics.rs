//! A panic anywhere below the drive loop costs one turn and nobody else anything: the attempt is closed once, the slot
//! comes back, the client is told, and the account is not blamed.

use crate::world::{Act, Ask, DELTA, PLAIN, Step, Told, World, ask, world};
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_engine::ports::AttemptOutcome;

/// Where the upstream panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Sending,
    BeforeContent,
    AfterContent,
    Nowhere,
}

const ALL: [Where; 3] = [Where::Sending, Where::BeforeContent, Where::AfterContent];

fn act(at: Where, stream: bool) -> Act {
    match (at, stream) {
        (Where::Sending, _) => Act::PanicInSending,
        (Where::BeforeContent, _) => Act::Answer(vec![Step::Panic]),
        (Where::AfterContent, true) => Act::Answer(vec![Step::Say(DELTA), Step::Panic]),
        (Where::AfterContent, false) => Act::Answer(vec![Step::Say(&PLAIN[..20]), Step::Panic]),
        (Where::Nowhere, _) => Act::whole(stream, None),
    }
}

fn mistaken(world: &World, at: Where) {
    world.upstream.act(move |stream| act(at, stream));
}

/// A turn, read to its end.
async fn turn_of(world: &World, client: Dialect, stream: bool) -> Told {
    let told = world.start(&Ask { client, cache: false, ..ask(stream) }).told().await;
    let told = if told.ticket.is_some() { told.arrives() } else { told };
    world.idle().await;
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_its_turn_and_blames_nobody() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for stream in [true, false] {
            for at in ALL {
                let case = format!("{client:?} stream {stream} {at:?}");
                let world = world();
                mistaken(&world, at);
                // The account has one slot: four turns in a row are only served if it comes back each time.
                for turn in 1..=4_u64 {
                    let told = turn_of(&world, client, stream).await;
                    let begun = at == Where::AfterContent && stream;
                    assert_eq!(told.status, if begun { 200 } else { 500 }, "{case}: {}", told.body);
                    assert!(
                        told.body.contains("gateway_bug") || told.body.contains("made a mistake"),
                        "{case}: {}",
                        told.body
                    );
                    assert_eq!(told.body.contains("one"), begun, "{case}: {}", told.body);
                    for success in ["[DONE]", "message_stop", "\"finish_reason\":\"stop\"", "end_turn"] {
                        assert!(!told.body.contains(success), "{case}: {}", told.body);
                    }
                    assert_eq!(world.engine.tally.faults(FaultKind::GatewayBug), turn, "{case}");
                    world.assert_unblamed();
                }
                let closed = world.written.closed.lock().clone();
                let opened: Vec<_> = world.written.opened.lock().iter().map(|entry| entry.attempt).collect();
                assert_eq!(closed.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), opened, "{case}: each once");
                let bug = AttemptOutcome::Failed(FaultKind::GatewayBug);
                assert!(closed.iter().all(|entry| entry.outcome == bug), "{case}: {closed:?}");
                assert!(world.written.faults.lock().iter().all(|record| record.fault == "gateway_bug"), "{case}");
                assert_eq!(world.engine.tally.delivered.get(), 0, "{case}");
                // The mistake is mended: the account serves at once.
                mistaken(&world, Where::Nowhere);
                let told = turn_of(&world, client, stream).await;
                assert!(told.status == 200 && told.body.contains("one"), "{case}: {}", told.body);
                world.assert_unblamed();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_one_turn_leaves_another_that_waits_for_its_slot_alone() {
    let world = world();
    mistaken(&world, Where::BeforeContent);
    let turns = (0..8).map(|_| turn_of(&world, Dialect::Chat, true));
    let told = futures_util::future::join_all(turns).await;
    assert!(told.iter().all(|told| told.status == 500), "each gets the slot in its turn");
    assert_eq!(world.engine.tally.faults(FaultKind::GatewayBug), 8);
    assert_eq!(world.written.closed.lock().len(), 8);
    world.assert_unblamed();
}
