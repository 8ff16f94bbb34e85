//! Answers that are stored: before their client has the end of them, and whatever becomes of the turn.

use crate::world::{Act, Ask, Step, World, ask, world};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;
use turnkeep_engine::ports::{Closed, KeepAnswer};

/// A store that is as slow as the test wants.
struct Slow {
    began: Arc<Notify>,
    may_end: Arc<Semaphore>,
    stored: Arc<AtomicBool>,
}

impl Slow {
    fn new() -> (Box<Slow>, Arc<Notify>, Arc<Semaphore>, Arc<AtomicBool>) {
        let (began, may_end, stored) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)), Arc::default());
        let slow = Slow { began: began.clone(), may_end: may_end.clone(), stored: Arc::clone(&stored) };
        (Box::new(slow), began, may_end, stored)
    }
}

impl KeepAnswer for Slow {
    fn closed(self: Box<Self>, _end: Closed) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.began.notify_one();
            let _permit = self.may_end.acquire().await;
            self.stored.store(true, Ordering::SeqCst);
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_answer_is_written_when_it_is_stored_and_not_before() {
    for stream in [true, false] {
        let world = world();
        let (slow, began, may_end, stored) = Slow::new();
        let mut asking = world.start_kept(&ask(stream), slow);
        began.notified().await;
        let mut seen = Vec::new();
        while let Some(Some(bytes)) = poll_fn(|cx| asking.reader.poll_chunk(cx)).now_or_never() {
            seen.extend_from_slice(&bytes);
        }
        let seen = String::from_utf8(seen).unwrap();
        assert!(!seen.contains("[DONE]") && !seen.contains("\"usage\""), "{stream}: {seen}");
        assert!(!stored.load(Ordering::SeqCst));
        may_end.add_permits(1);
        let mut rest = seen;
        while let Some(bytes) = asking.more().await {
            rest += &String::from_utf8(bytes.to_vec()).unwrap();
            let ended = if stream { rest.contains("[DONE]") } else { rest.ends_with('}') };
            assert!(!ended || stored.load(Ordering::SeqCst), "{stream}: who has the end of it can find it");
        }
        assert!(stored.load(Ordering::SeqCst) && rest.contains("one"), "{stream}: {rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_holds_the_end_up_for_a_second_and_no_longer() {
    let world = world();
    let (slow, _began, _may_end, stored) = Slow::new();
    let begun = Instant::now();
    let told = world.start_kept(&ask(true), slow).told().await;
    assert!(told.body.contains("[DONE]") && !stored.load(Ordering::SeqCst));
    let took = begun.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&took), "{took:?}");
}

/// Says how a turn ended.
struct Says(mpsc::UnboundedSender<Closed>);

impl KeepAnswer for Says {
    fn closed(self: Box<Self>, end: Closed) -> BoxFuture<'static, ()> {
        self.0.send(end).unwrap();
        Box::pin(std::future::ready(()))
    }
}

async fn ended(world: &World, ask: &Ask, leave: bool) -> Closed {
    let (says, mut hears) = mpsc::unbounded_channel();
    let mut asking = world.start_kept(ask, Box::new(Says(says)));
    if leave {
        asking.head().await;
        drop(asking);
    } else {
        asking.told().await.arrives();
    }
    world.idle().await;
    let end = hears.recv().await.expect("it is told once");
    assert!(hears.recv().await.is_none(), "and no more");
    end
}

#[tokio::test]
async fn whoever_stores_answers_is_told_once_how_the_turn_ended() {
    let world = world();
    let first = ended(&world, &ask(true), false).await;
    assert!(matches!(first, Closed::Completed { recorded: Some(_), again: false }), "{first:?}");
    let cached = ended(&world, &ask(true), false).await;
    assert!(matches!(cached, Closed::Completed { recorded: Some(_), again: true }), "{cached:?}");

    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act(move |_| Act::Answer(vec![Step::Say(crate::world::DELTA), Step::Gate(gate.clone())]));
    let other = Ask { cache: false, caller: "another", ..ask(true) };
    let left = ended(&world, &other, true).await;
    assert!(matches!(left, Closed::Interrupted), "{left:?}");
}
