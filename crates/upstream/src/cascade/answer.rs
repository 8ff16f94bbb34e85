//! An answer under way: the watch that is open, or being opened, and what its steps have become.

use super::calls::CODEC;
use super::cancel::Guard;
use super::link::Link;
use super::refusal;
use super::steps::{Next, Seen, Steps, What};
use crate::connect_chat::read::Events;
use crate::rpc::RpcStream;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::Fault;
use turnkeep_dialect::event::Event;
use turnkeep_engine::ports::{Happening, NativeAnswer};
use turnkeep_policy::conversations::Conversation;
use turnkeep_proto::cascade::v1::{WatchResponse, step, watch_response};
use turnkeep_proto::connect::v1::ChatEvent;

enum Watch {
    Opening(BoxFuture<'static, Result<RpcStream, Fault>>),
    Open(Box<RpcStream>),
    Over,
}

/// A turn that was taken. Dropping it before its end cancels it at the server.
pub(super) struct CascadeAnswer {
    watch: Watch,
    steps: Steps,
    events: Events,
    guard: Guard,
    link: Link,
    handle: Arc<str>,
    until: Option<Instant>,
    /// Told after the events that came before it.
    fault: Option<Fault>,
    /// As it stands after the end.
    stands: Option<Conversation>,
}

impl Drop for CascadeAnswer {
    fn drop(&mut self) {
        match self.watch {
            Watch::Opening(_) | Watch::Open(_) => self.link.unanswered(),
            Watch::Over => {}
        }
    }
}

impl CascadeAnswer {
    /// `until`: when the server may give up, of an answer that is wanted whole.
    pub(super) fn new(link: Link, guard: Guard, handle: &Arc<str>, steps: Steps, until: Option<Instant>) -> Self {
        let mut answer = CascadeAnswer {
            watch: Watch::Over,
            steps,
            events: Events::default(),
            guard,
            link,
            handle: handle.clone(),
            until,
            fault: None,
            stands: None,
        };
        answer.open(answer.steps.due(), Duration::ZERO);
        answer
    }

    fn open(&mut self, from: u64, after: Duration) {
        let (link, handle, until) = (self.link.clone(), self.handle.clone(), self.until);
        let opening = async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            link.watch(&handle, from, until).await
        };
        self.watch = Watch::Opening(opening.boxed());
    }

    /// What the watch brings next.
    fn poll_seen(&mut self, cx: &mut Context<'_>) -> Poll<Seen<ChatEvent>> {
        loop {
            match &mut self.watch {
                Watch::Opening(opening) => match ready!(opening.poll_unpin(cx)) {
                    Ok(stream) => self.watch = Watch::Open(Box::new(stream)),
                    Err(fault) => return Poll::Ready(Seen::Failed(fault)),
                },
                Watch::Open(stream) => {
                    return Poll::Ready(match ready!(stream.poll_message(cx)) {
                        Some(Ok(message)) => match CODEC.read::<WatchResponse>(&message) {
                            Ok(response) => seen(response),
                            Err(fault) => Seen::Failed(fault),
                        },
                        Some(Err(failed)) => Seen::Failed(failed.fault),
                        None => Seen::Ended,
                    });
                }
                Watch::Over => return Poll::Ready(Seen::Ended),
            }
        }
    }

    fn take(&mut self, seen: Seen<ChatEvent>) -> Option<Happening> {
        if let Seen::Failed(fault) = &seen {
            self.link.heard(fault);
        }
        match self.steps.seen(seen) {
            Next::Read => {}
            Next::Alive => return Some(Happening::Alive),
            Next::Event(event) => self.events.take(event),
            Next::Open { from, after } => self.open(from, after),
            Next::Final => {
                self.watch = Watch::Over;
                self.events.end();
            }
            Next::Fault(fault) => {
                self.watch = Watch::Over;
                self.fault = Some(fault);
            }
        }
        None
    }
}

/// A message of the watch. One of nothing that is known counts as work; a step of nothing that is known takes its place
/// among the steps, and is no part of the answer.
pub(super) fn seen(response: WatchResponse) -> Seen<ChatEvent> {
    let Some(watch_response::What::Step(step)) = response.what else { return Seen::Working };
    let what = match step.what {
        Some(step::What::Event(event)) => What::Event(event),
        Some(step::What::Final(_)) => What::Final,
        Some(step::What::Failed(why)) => What::Failed(refusal::fault(&why, false)),
        None => What::Event(ChatEvent::default()),
    };
    Seen::Step { offset: step.offset, what }
}

impl NativeAnswer for CascadeAnswer {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        loop {
            match self.events.next_event() {
                Ok(Some(event)) => {
                    if event == Event::End {
                        self.guard.disarm();
                        self.stands = Some(Conversation {
                            handle: self.handle.clone(),
                            position: Some(self.steps.due()),
                            instance: Some(self.link.instance()),
                        });
                    }
                    return Poll::Ready(Some(Ok(Happening::Event(event))));
                }
                Ok(None) => {}
                Err(fault) => {
                    self.watch = Watch::Over;
                    return Poll::Ready(Some(Err(fault)));
                }
            }
            if let Some(fault) = self.fault.take() {
                return Poll::Ready(Some(Err(fault)));
            }
            if let Watch::Over = self.watch {
                return Poll::Ready(None);
            }
            let seen = ready!(self.poll_seen(cx));
            if let Some(happening) = self.take(seen) {
                return Poll::Ready(Some(Ok(happening)));
            }
        }
    }

    fn conversation(&self) -> Option<Conversation> {
        self.stands.clone()
    }
}
