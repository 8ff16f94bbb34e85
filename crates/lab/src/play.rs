//! Playing a reply's steps on a connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::StreamBody;
use hyper::body::Frame;

use crate::gates::Gates;
use crate::ledger::Turn;
use crate::plan::Step;
use crate::socket::Control;

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
    pub control: Arc<Control>,
    pub gates: Arc<Gates>,
}

impl Player {
    /// Plays what comes before the headers.
    pub(crate) async fn before(&mut self, steps: Vec<Step>) {
        for step in steps {
            self.quiet(step).await;
        }
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
                Step::Send(bytes) if bytes.is_empty() => {}
                Step::Send(bytes) => {
                    // Lets the connection flush what it has, so that a piece is a write.
                    tokio::task::yield_now().await;
                    return Some(Ok(Frame::data(bytes)));
                }
                Step::Last(bytes) => {
                    tokio::task::yield_now().await;
                    self.turn.end();
                    steps.clear();
                    return (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)));
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
            Step::Send(_) | Step::Last(_) | Step::Break | Step::End => {}
        }
    }
}

/// Ends only by being dropped.
async fn never() {
    let forever: Infallible = std::future::pending().await;
    match forever {}
}
