//! Clients that read too slowly, on a clock of the test's own: one whose buffer is full for a minute in all, or that takes
//! less than a kibibyte a second for a minute while bytes wait for it, has left. One that only waits has not.

use crate::world::{Act, Asking, DELTA, FINISH, Step, World, ask, world};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// A world whose upstream says so many pieces, each when the gate lets it, if there is one.
fn saying(pieces: usize, gate: Option<&Arc<Semaphore>>) -> World {
    let world = world();
    let gate = gate.cloned();
    world.upstream.act(move |_| {
        let each = || gate.clone().map(Step::Gate).into_iter().chain([Step::Say(DELTA)]);
        Act::Answer((0..pieces).flat_map(|_| each()).chain([Step::Say(FINISH)]).collect())
    });
    world
}

/// Lets a piece through each second.
fn a_piece_a_second() -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let opens = gate.clone();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(1)).await;
            opens.add_permits(1);
        }
    });
    gate
}

/// What must hold of a client that was let go.
async fn was_let_go(world: World, mut asking: Asking) {
    let tally = &world.engine.tally;
    assert_eq!((tally.client_gone_mid_answer.get(), tally.delivered.get(), tally.undelivered.get()), (1, 0, 0));
    let outcomes: Vec<_> = world.written.closed.lock().iter().map(|end| (end.outcome.name(), end.exact)).collect();
    assert_eq!(outcomes, [("interrupted", false)]);
    world.assert_settled(1);
    world.assert_unblamed();
    // What was left in the buffer may still be read; it does not look like a whole answer.
    while let Some(bytes) = asking.more().await {
        assert!(!String::from_utf8_lossy(&bytes).contains("[DONE]"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_buffer_is_full_for_a_minute_is_let_go() {
    let world = saying(10_000, None);
    let mut asking = world.start(&ask(true));
    asking.head().await;
    let begun = Instant::now();
    world.engine.idle().await;
    let took = begun.elapsed().as_secs();
    assert!((60..=61).contains(&took), "{took} s");
    was_let_go(world, asking).await;
}

#[tokio::test(start_paused = true)]
async fn the_minute_is_that_of_all_the_times_together() {
    let world = saying(10_000, None);
    let mut asking = world.start(&ask(true));
    asking.head().await;
    // Four naps of a quarter of a minute, each followed by enough reading to make room.
    for _ in 0..4 {
        assert_eq!(world.engine.tally.client_gone_mid_answer.get(), 0);
        sleep(Duration::from_millis(14_500)).await;
        for _ in 0..700 {
            asking.more().await;
        }
    }
    let begun = Instant::now();
    world.engine.idle().await;
    let took = begun.elapsed().as_secs();
    assert!(took <= 3, "{took} s more");
    was_let_go(world, asking).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_less_than_a_kibibyte_a_second_is_let_go_though_its_buffer_is_never_full() {
    let world = saying(10_000, Some(&a_piece_a_second()));
    let mut asking = world.start(&ask(true));
    asking.head().await;
    let begun = Instant::now();
    while world.engine.tally.turns_open.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        // Two come while it takes one.
        sleep(Duration::from_secs(2)).await;
        asking.more().await;
        assert!(begun.elapsed() < Duration::from_secs(200), "it is never let go");
    }
    assert!(begun.elapsed() >= Duration::from_secs(60), "{:?}", begun.elapsed());
    was_let_go(world, asking).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_read_all_there_is_may_wait_for_more_as_long_as_it_takes() {
    let world = saying(600, Some(&a_piece_a_second()));
    let told = world.start(&ask(true)).told().await;
    assert!(told.body.contains("[DONE]"));
    told.arrives();
    world.idle().await;
    assert_eq!(world.engine.tally.delivered.get(), 1);
    world.assert_settled(1);
}
