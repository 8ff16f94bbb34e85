//! Upstreams with a protocol of their own: what a turn cost in their units, and what is not sent twice.

use crate::world::{Differs, World, ask, different, world};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::Turn;
use turnkeep_engine::ports::{Ask, AttemptOutcome, Happening, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_engine::route::{Handling, Route, Speech, UpstreamEntry};
use turnkeep_policy::conversations::{Conversation, RefusalProof};

/// What a driver says of a send that was refused.
type Proof = fn() -> RefusalProof;

/// How each send ends.
#[derive(Clone, Copy)]
enum Sends {
    Answer,
    /// An answer that is never whole.
    Half,
    Refuse(Proof),
}

struct Costly {
    sends: Sends,
    sent: AtomicUsize,
}

impl Native for Costly {
    fn write(&self, _: &Turn<'_>, _: Writing<'_>) -> Result<NativeWritten, Invalid> {
        Ok(NativeWritten { body: "hi".into(), dropped: Vec::new(), names: ToolNames::default() })
    }

    fn send(&self, _: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let answer = match self.sends {
            Sends::Answer => Ok(Box::new(Said(said(true))) as Box<dyn NativeAnswer>),
            Sends::Half => Ok(Box::new(Said(said(false))) as Box<dyn NativeAnswer>),
            Sends::Refuse(proof) => {
                let evidence = Evidence::text("oh").with_status(500);
                let fault = Fault::new(FaultKind::UpstreamInternal, Phase::Answered, evidence);
                Err(SendFault { fault, refused: Some(proof()) })
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn stands(&self, _: &Conversation) -> bool {
        true
    }

    fn forget(&self, _: &AccountId, _: Conversation) {}
}

/// What is left to happen, the last first.
struct Said(Vec<Happening>);

fn said(whole: bool) -> Vec<Happening> {
    let text = Event::Delta { block: 0, delta: Delta::Text("one".into()) };
    let mut all = vec![
        Happening::Event(Event::Start { id: None, model: None, usage: None }),
        Happening::Units(100),
        Happening::Event(Event::BlockStart { block: 0, kind: Block::Text }),
        Happening::Event(text),
        Happening::Units(1_250),
    ];
    if whole {
        all.push(Happening::Event(Event::BlockStop { block: 0 }));
        all.push(Happening::Event(Event::Finish { reason: Finish::Stop, stop_sequence: None }));
        all.push(Happening::Event(Event::End));
    }
    all.reverse();
    all
}

impl NativeAnswer for Said {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        self.0.pop().map_or(Poll::Pending, |happening| Poll::Ready(Some(Ok(happening))))
    }

    fn conversation(&self) -> Option<Conversation> {
        None
    }
}

/// The world with this upstream in the place of its own.
fn with(mut world: World, sends: Sends, replay_safe: bool) -> (World, Arc<Costly>) {
    let costly = Arc::new(Costly { sends, sent: AtomicUsize::new(0) });
    let Route { upstream, model, tier, name, price } = world.routes[0].clone();
    let speech = Speech::Native { conversations: Some(Handling::Mutable), replay_safe, port: costly.clone() };
    let entry = UpstreamEntry {
        name: upstream.name.clone(),
        speech,
        reuse: upstream.reuse,
        clocks: upstream.clocks,
        on_client_gone: upstream.on_client_gone,
    };
    world.routes = [Route { upstream: Arc::new(entry), model, tier, name, price }].into();
    (world, costly)
}

#[tokio::test]
async fn what_a_turn_cost_in_its_providers_units_is_in_its_entry() {
    for stream in [true, false] {
        let (world, _) = with(world(), Sends::Answer, false);
        let told = world.delivered(&ask(stream)).await;
        assert!(told.body.contains("one"), "{}", told.body);
        let closed = world.written.closed.lock()[0].clone();
        assert_eq!((closed.outcome, closed.milli_units), (AttemptOutcome::Completed, Some(1_250)));
    }
}

#[tokio::test]
async fn what_a_turn_had_cost_when_its_client_left_is_in_its_entry() {
    let (world, _) = with(world(), Sends::Half, false);
    let mut asking = world.start(&ask(true));
    asking.head().await;
    assert!(asking.more().await.is_some());
    drop(asking);
    world.idle().await;
    let closed = world.written.closed.lock()[0].clone();
    assert_eq!((closed.outcome, closed.milli_units), (AttemptOutcome::Interrupted, Some(1_250)));
}

#[tokio::test]
async fn a_failure_that_may_have_begun_is_not_sent_elsewhere_where_that_would_do_it_twice() {
    let rows: [(Proof, bool, usize); 4] = [
        (RefusalProof::by_failure, false, 1),
        (RefusalProof::by_failure, true, 2),
        (RefusalProof::by_reply, false, 2),
        (RefusalProof::never_left, false, 2),
    ];
    for (proof, replay_safe, sent) in rows {
        let world = different(Differs { more: &["b"], ..Differs::default() });
        let (world, costly) = with(world, Sends::Refuse(proof), replay_safe);
        let told = world.start(&ask(false)).told().await;
        assert_eq!(told.status, 502);
        assert_eq!(costly.sent.load(Ordering::Relaxed), sent, "{:?} {replay_safe}", proof());
    }
}
