//! An answer under way: looks at the session, each after a wait, until [`Watch`] says that the turn is over. Dropped, it
//! drops the look or the wait that is under way, and nothing more is asked.

use super::api::Api;
use super::handle::Handle;
use super::look::{Looked, look};
use super::messages::Messages;
use super::session::Session;
use super::spec::Times;
use super::watch::{Before, Verdict, Watch};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use turnkeep_base::verdict::row;
use turnkeep_base::{Fault, FaultKind, Origin, Phase};
use turnkeep_engine::ports::{Happening, NativeAnswer};
use turnkeep_policy::conversations::Conversation;

/// Looks that may fail in a row: asking again does nothing twice, and a turn of half an hour is not to end with one lost
/// packet.
const MAX_FAILURES: u32 = 5;
/// The longest wait after a look that failed, whatever a reply asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

enum State {
    Looking(BoxFuture<'static, Looked>),
    /// What is still queued is told, then this fault.
    Failing(Fault),
    Over,
}

/// The answer.
pub(super) struct DevinAnswer {
    api: Api,
    id: String,
    times: Times,
    watch: Watch,
    queue: VecDeque<Happening>,
    state: State,
    /// The wait before the next look.
    wait: Duration,
    failures: u32,
    /// The session after its end.
    left: Option<Conversation>,
}

impl DevinAnswer {
    /// Of a session that has just been begun, or been told something.
    pub(super) fn new(api: Api, session: Session, messages: Messages, before: Before, times: Times) -> Self {
        let mut queue = VecDeque::new();
        let now = Instant::now();
        let watch = Watch::begin(before, times.quiet, now, &mut queue);
        let next = later(now + times.poll_first, api.clone(), session.id.clone(), messages);
        DevinAnswer {
            api,
            id: session.id,
            times,
            watch,
            queue,
            state: State::Looking(next),
            wait: times.poll_first,
            failures: 0,
            left: None,
        }
    }

    fn looked(&mut self, looked: Looked) {
        let Looked { messages, news, session } = looked;
        let now = Instant::now();
        self.watch.heard(&news, now, &mut self.queue);
        let session = match session {
            Ok(Some(session)) => session,
            Ok(None) => {
                // How it stands may not end the turn before its words are read.
                self.failures = 0;
                let next = self.next(now, !news.is_empty());
                self.state = self.again(next, messages);
                return;
            }
            Err(mut fault) => {
                // Whatever became of this look, the turn's own message was sent long ago.
                fault.phase = Phase::Answered;
                self.failures += 1;
                self.state = match wait_after(&fault, self.failures, self.times.poll_first) {
                    Some(wait) => self.again(now + wait, messages),
                    None => State::Failing(fault),
                };
                return;
            }
        };
        self.failures = 0;
        self.state = match self.watch.seen(&session, now, &mut self.queue) {
            Verdict::Goes { changed, over_at } => {
                let next = self.next(now, changed || !news.is_empty());
                self.again(over_at.map_or(next, |over_at| next.min(over_at)), messages)
            }
            Verdict::Over { goes_on } => {
                let position = messages.position();
                let left = Conversation {
                    handle: Handle::of(self.id.clone(), &messages).text(),
                    position: Some(position),
                    instance: None,
                };
                self.left = goes_on.then_some(left);
                State::Over
            }
            Verdict::Failed(fault) => State::Failing(fault),
        };
    }

    /// When to look next: soon if something has happened, else ever later.
    fn next(&mut self, now: Instant, changed: bool) -> Instant {
        self.wait = if changed {
            self.times.poll_first
        } else {
            self.wait.saturating_mul(3).checked_div(2).unwrap_or(self.wait).min(self.times.poll_longest)
        };
        now + self.wait
    }

    fn again(&self, at: Instant, messages: Messages) -> State {
        State::Looking(later(at, self.api.clone(), self.id.clone(), messages))
    }
}

fn later(at: Instant, api: Api, id: String, messages: Messages) -> BoxFuture<'static, Looked> {
    Box::pin(async move {
        sleep_until(at).await;
        look(api, id, messages).await
    })
}

/// How long to wait after so many failures in a row; `None`: the turn has failed.
fn wait_after(fault: &Fault, failures: u32, first: Duration) -> Option<Duration> {
    let passes = match row(fault.kind).origin {
        Origin::Network | Origin::Upstream | Origin::Model | Origin::Unclassified => true,
        Origin::Account => fault.kind == FaultKind::RateLimited,
        Origin::Request | Origin::Caller | Origin::Egress | Origin::Conversation | Origin::Gateway | Origin::Client => {
            false
        }
    };
    if !passes || failures > MAX_FAILURES {
        return None;
    }
    let wait = first.saturating_mul(1 << failures.min(16));
    Some(wait.max(fault.declared.longest().unwrap_or_default()).min(LONGEST_WAIT))
}

impl NativeAnswer for DevinAnswer {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        loop {
            if let Some(happening) = self.queue.pop_front() {
                return Poll::Ready(Some(Ok(happening)));
            }
            match &mut self.state {
                State::Looking(looking) => {
                    let looked = ready!(looking.as_mut().poll(cx));
                    self.looked(looked);
                }
                State::Failing(fault) => {
                    let fault = fault.clone();
                    self.state = State::Over;
                    return Poll::Ready(Some(Err(fault)));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }

    fn conversation(&self) -> Option<Conversation> {
        self.left.clone().filter(|_| self.queue.is_empty())
    }
}
