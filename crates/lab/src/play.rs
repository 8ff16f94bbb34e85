//! Playing a reply's steps on a connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::StreamBody;
use hyper::body::Frame;

use crate::accounts::Visit;
use crate::cascade::Cascade;
use crate::gates::Gates;
use crate::http2;
use crate::ledger::Turn;
use crate::plan::Step;
use crate::socket::{Busy, Control, Order};

/// The body breaks off by order of the script.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks this reply off")]
pub(crate) struct Broken;

type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Broken>> + Send>>;

/// A body played step by step.
pub(crate) type PlayedBody = StreamBody<Frames>;

/// Plays one reply; dropped early, the [`Turn`] in it knows that the peer left.
pub(crate) struct Player {
    pub turn: Turn,
    pub visit: Visit,
    pub busy: Busy,
    /// HTTP/2 is spoken.
    pub http2: bool,
    pub control: Arc<Control>,
    pub gates: Arc<Gates>,
    pub cascade: Arc<Cascade>,
}

impl Player {
    /// Plays what comes before the headers.
    pub(crate) async fn before(&mut self, steps: Vec<Step>) -> Result<(), Broken> {
        for step in steps {
            if matches!(step, Step::Rst(_) | Step::Refuse(_)) {
                self.frame(step).await;
                self.turn.end();
                return Err(Broken);
            }
            self.quiet(step).await;
        }
        Ok(())
    }

    /// The body of these steps.
    pub(crate) fn body(self, steps: Vec<Step>) -> PlayedBody {
        let start = (self, VecDeque::from(steps));
        let frames = stream::unfold(start, |(mut player, mut steps)| async move {
            let item = player.next(&mut steps).await?;
            Some((item, (player, steps)))
        });
        StreamBody::new(Box::pin(frames))
    }

    async fn next(&mut self, steps: &mut VecDeque<Step>) -> Option<Result<Frame<Bytes>, Broken>> {
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Send(bytes) | Step::Uncoded(bytes) if bytes.is_empty() => {}
                Step::Send(bytes) | Step::Uncoded(bytes) => {
                    // Lets the connection flush what it has, so that a piece is a write.
                    tokio::task::yield_now().await;
                    return Some(Ok(Frame::data(bytes)));
                }
                Step::Last(bytes) => {
                    tokio::task::yield_now().await;
                    self.turn.end();
                    if let Some(usage) = self.visit.complete() {
                        self.turn.reported(usage.prompt, usage.completion);
                    }
                    steps.clear();
                    return (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)));
                }
                frame @ (Step::Rst(_) | Step::Refuse(_)) => {
                    // The library's own frames before it: what it has been given, it writes when it is next polled.
                    tokio::task::yield_now().await;
                    self.frame(frame).await;
                    steps.push_front(Step::Break);
                }
                Step::Break => {
                    self.turn.end();
                    steps.clear();
                    tokio::task::yield_now().await;
                    return Some(Err(Broken));
                }
                Step::End => {
                    self.turn.end();
                    steps.clear();
                }
                Step::Trailers(trailers) => {
                    tokio::task::yield_now().await;
                    self.turn.end();
                    if let Some(usage) = self.visit.complete() {
                        self.turn.reported(usage.prompt, usage.completion);
                    }
                    steps.clear();
                    return Some(Ok(Frame::trailers(trailers)));
                }
                Step::Shown { name, offset } => self.cascade.shown(&name, offset),
                quiet @ (Step::Wait(_) | Step::Gate(_) | Step::Order(_) | Step::Silence | Step::Goaway) => {
                    self.quiet(quiet).await;
                }
            }
        }
        self.turn.end();
        None
    }

    /// A step that sends nothing through HTTP.
    async fn quiet(&mut self, step: Step) {
        match step {
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Gate(name) => self.gates.pass(&name).await,
            Step::Order(order) => {
                self.turn.end();
                self.control.order(order);
                never().await;
            }
            Step::Silence => never().await,
            Step::Goaway => self.control.goaway.notify_one(),
            Step::Send(_)
            | Step::Uncoded(_)
            | Step::Last(_)
            | Step::Break
            | Step::Rst(_)
            | Step::Refuse(_)
            | Step::Trailers(_)
            | Step::Shown { .. }
            | Step::End => {}
        }
    }

    /// Ends the stream by a frame of ours. HTTP/1 has no such thing: there the connection ends.
    async fn frame(&mut self, step: Step) {
        if !self.http2 {
            self.quiet(Step::Order(Order::Close)).await;
        }
        let stream = self.busy.stream;
        if let Step::Rst(code) = step {
            self.control.inject(&http2::reset(stream, code)).await;
        } else if let Step::Refuse(code) = step {
            self.control.inject(&http2::goaway(stream.saturating_sub(2), code)).await;
        }
    }
}

/// Ends only by being dropped.
async fn never() {
    let forever: Infallible = std::future::pending().await;
    match forever {}
}
