//! The replies of one connection on their way to the client: taken whole by the protocol, then flushed to the kernel,
//! which gives each its mark (bytes on the socket, under TLS), then arrived or not. The only place that turns tickets in.
//!
//! While nothing waits there is no task and no timer. A reply whose mark is not acknowledged when it is flushed is looked
//! after by one task of its connection, with pauses that grow with the wait.

use super::socket::Socket;
use crate::receipts::{Delivery, Receipts};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use turnkeep_base::limit::RECEIPT_WAIT;
use turnkeep_base::receipt::Level;
use turnkeep_base::seeded;
use turnkeep_engine::pipe::Ticket;

/// The first pause between two looks, and the longest.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The stream under which HTTP/1.1 knows its replies; HTTP/2 has none of that number for requests.
pub const HTTP1: u32 = 0;

/// What a reply's arrival is reported with.
#[derive(Debug)]
pub struct Proof {
    /// To turn in.
    pub ticket: Ticket,
    /// Makes the receipt.
    pub receipts: Receipts,
}

impl Proof {
    fn turn_in(self, level: Level) {
        let receipt = self.receipts.receipt(self.ticket.turn(), level);
        self.ticket.turn_in(receipt);
    }
}

/// A reply that the protocol has taken whole.
#[derive(Debug)]
struct Handed {
    stream: u32,
    since: Instant,
    proof: Proof,
    /// Its end is among the bytes that the next flush is about. On HTTP/1.1 it always is.
    ended: bool,
}

/// A reply that the kernel has taken whole.
#[derive(Debug)]
struct Waiting {
    stream: u32,
    since: Instant,
    proof: Proof,
    mark: u64,
    /// When it got its mark.
    marked: Instant,
}

#[derive(Debug, Default)]
struct State {
    handed: Vec<Handed>,
    /// In the order of their marks.
    waiting: VecDeque<Waiting>,
    /// HTTP/1.1: bytes of a reply were handed over and not flushed since.
    unflushed: bool,
    /// HTTP/1.1: so was the end of a reply.
    end_unflushed: bool,
    /// HTTP/1.1: what had been written when the last bytes of a reply were flushed.
    flushed_at: u64,
    /// Who waits to be told that the client has ended its side.
    end_held: Option<Waker>,
    /// A task looks after what waits.
    watched: bool,
    /// The protocol is done: nothing more will be flushed.
    closed: bool,
    /// HTTP/2: when the client last sent something.
    heard: Option<Instant>,
}

/// The replies of a connection.
#[derive(Debug)]
pub struct Deliveries {
    socket: Arc<Socket>,
    rule: Delivery,
    state: Mutex<State>,
    /// Something was added for the task that looks.
    added: Notify,
    under_way: AtomicUsize,
    begun: Notify,
}

/// While it lives, its reply is under way: not handed over whole, so that the client's end means that it has left.
#[derive(Debug)]
pub struct UnderWay(Arc<Deliveries>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Deliveries {
    /// Of a connection, under the rule of what proves an arrival.
    pub fn new(socket: Arc<Socket>, rule: Delivery) -> Arc<Self> {
        Arc::new(Deliveries {
            socket,
            rule,
            state: Mutex::default(),
            added: Notify::new(),
            under_way: AtomicUsize::new(0),
            begun: Notify::new(),
        })
    }

    /// The connection's socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// A request has come.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.begun.notify_one();
        UnderWay(self.clone())
    }

    /// A reply is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    /// Until a reply is under way.
    pub async fn until_under_way(&self) {
        while !self.is_under_way() {
            self.begun.notified().await;
        }
    }

    /// Bytes of a reply are handed to HTTP/1.1.
    pub fn piece(&self) {
        self.state.lock().unflushed = true;
    }

    /// The last bytes of a reply without a ticket are handed to HTTP/1.1.
    pub fn whole(&self) {
        self.state.lock().end_unflushed = true;
    }

    /// The last byte of a turn's reply is handed over, now (`with_bytes`) or with the piece before.
    pub fn handed(self: &Arc<Self>, stream: u32, proof: Proof, with_bytes: bool) {
        if self.rule == Delivery::Forced {
            return proof.turn_in(Level::Flushed);
        }
        let mut done = Vec::new();
        let mut state = self.state.lock();
        let since = Instant::now();
        if state.closed {
            drop(state);
            return drop(proof);
        }
        if stream == HTTP1 {
            state.end_unflushed = true;
            if !with_bytes && !state.unflushed {
                let mark = state.flushed_at;
                state.waiting.push_back(Waiting { stream, since, proof, mark, marked: since });
                self.settle(&mut state, &mut done);
                self.watch_if_needed(&mut state, true);
                drop(state);
                return finish(done);
            }
        }
        state.handed.push(Handed { stream, since, proof, ended: stream == HTTP1 });
    }

    /// The frame that ends our side of a stream has gone out, up to its last byte.
    pub fn stream_ended(&self, stream: u32) {
        for handed in self.state.lock().handed.iter_mut().filter(|handed| handed.stream == stream) {
            handed.ended = true;
        }
    }

    /// The client has reset a stream: what it had not acknowledged before has not arrived.
    pub fn void(&self, stream: u32) {
        let mut done = Vec::new();
        let mut state = self.state.lock();
        if state.handed.is_empty() && state.waiting.is_empty() {
            return;
        }
        self.settle(&mut state, &mut done);
        let handed = take_if(&mut state.handed, |handed| handed.stream == stream);
        let waiting = std::mem::take(&mut state.waiting);
        let (lost, kept): (VecDeque<_>, _) = waiting.into_iter().partition(|waiting| waiting.stream == stream);
        state.waiting = kept;
        drop(state);
        finish(done);
        drop((handed, lost));
    }

    /// We have reset a stream; a reply that had ended is whole all the same.
    pub fn given_up(&self, stream: u32) {
        let lost = take_if(&mut self.state.lock().handed, |handed| handed.stream == stream && !handed.ended);
        drop(lost);
    }

    /// Everything that was handed over before, as far as it has ended, is with the kernel.
    pub fn flushed(self: &Arc<Self>) {
        let mut done = Vec::new();
        let mut state = self.state.lock();
        let held = state.end_held.take();
        state.end_unflushed = false;
        if state.unflushed || !state.handed.is_empty() {
            state.unflushed = false;
            let mark = self.socket.written();
            state.flushed_at = mark;
            let ended = take_if(&mut state.handed, |handed| handed.ended);
            let added = !ended.is_empty();
            for Handed { stream, since, proof, .. } in ended {
                state.waiting.push_back(Waiting { stream, since, proof, mark, marked: Instant::now() });
            }
            self.settle(&mut state, &mut done);
            self.watch_if_needed(&mut state, added);
        }
        drop(state);
        finish(done);
        if let Some(held) = held {
            held.wake();
        }
    }

    /// A write or flush could not go on: the peer takes nothing more for now.
    pub fn stalled(self: &Arc<Self>) {
        self.watch_if_needed(&mut self.state.lock(), false);
    }

    /// The client's end is not to be told now, because the end of a reply is still to be flushed; `cx` is woken then.
    pub fn holds_end(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if state.end_unflushed {
            state.end_held = Some(cx.waker().clone());
        }
        state.end_unflushed
    }

    /// The client has sent something, or closed.
    pub fn heard(&self) {
        self.state.lock().heard = Some(Instant::now());
    }

    /// When the client last sent something.
    pub fn last_heard(&self) -> Option<Instant> {
        self.state.lock().heard
    }

    /// The protocol is done with the socket: what it has not flushed will not arrive.
    pub fn closed(&self) {
        let lost = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.handed)
        };
        finish(lost.into_iter().map(|handed| Outcome(handed.proof, None)).collect());
    }

    /// Takes out what has arrived, and drops what has not and will not.
    fn settle(&self, state: &mut State, done: &mut Vec<Outcome>) {
        let late = |since: Instant| since.elapsed() >= RECEIPT_WAIT;
        for late in take_if(&mut state.handed, |handed| late(handed.since)) {
            done.push(Outcome(late.proof, None));
        }
        if state.waiting.is_empty() {
            return;
        }
        let (acked, over, level) = match (self.rule, self.socket.arrival()) {
            (Delivery::Acked, Some(arrival)) => (arrival.acked, arrival.over, Level::Acked),
            (Delivery::Acked, None) | (Delivery::Flushed | Delivery::Forced, _) => (u64::MAX, false, Level::Flushed),
        };
        while let Some(first) = state.waiting.front() {
            let arrived = first.mark <= acked;
            if !arrived && !over {
                break;
            }
            if let Some(first) = state.waiting.pop_front() {
                done.push(Outcome(first.proof, arrived.then_some(level)));
            }
        }
        while state.waiting.front().is_some_and(|first| late(first.since)) {
            done.extend(state.waiting.pop_front().map(|first| Outcome(first.proof, None)));
        }
    }

    /// Starts the task that looks, or tells it that something was added, for which it may have to look sooner.
    fn watch_if_needed(self: &Arc<Self>, state: &mut State, added: bool) {
        if state.handed.is_empty() && state.waiting.is_empty() {
            return;
        }
        if state.watched {
            if added {
                self.added.notify_one();
            }
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            state.watched = true;
            runtime.spawn(self.clone().watch());
        }
    }

    /// How long until the next look; `None`, once, when nothing is left to look after.
    fn pause(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        if let Some(youngest) = state.waiting.back() {
            return Some(youngest.marked.elapsed().clamp(PAUSE, LONGEST_PAUSE));
        }
        let oldest = state.handed.iter().map(|handed| handed.since).min();
        state.watched = oldest.is_some();
        oldest.map(|since| RECEIPT_WAIT.saturating_sub(since.elapsed()).max(PAUSE))
    }

    async fn watch(self: Arc<Self>) {
        let mut failed = false;
        while let Some(pause) = self.pause() {
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => {}
                () = self.added.notified() => {}
                () = self.socket.failed(), if !failed => failed = true,
            }
            let mut done = Vec::new();
            self.settle(&mut self.state.lock(), &mut done);
            finish(done);
        }
    }

    /// Whether a task looks after replies.
    #[cfg(test)]
    pub fn is_watched(&self) -> bool {
        self.state.lock().watched
    }

    /// How many replies the kernel has whole and the peer has not.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

/// What became of a reply: the level of its receipt, or that it has not arrived.
struct Outcome(Proof, Option<Level>);

/// Reports, without the lock: the engine's tasks are woken by it.
fn finish(done: Vec<Outcome>) {
    for Outcome(proof, level) in done {
        match level {
            Some(level) => proof.turn_in(level),
            None if seeded::is("a-receipt-for-everything") => proof.turn_in(Level::Flushed),
            None => drop(proof),
        }
    }
}

fn take_if<T>(from: &mut Vec<T>, which: impl Fn(&T) -> bool) -> Vec<T> {
    from.extract_if(.., |it| which(it)).collect()
}
