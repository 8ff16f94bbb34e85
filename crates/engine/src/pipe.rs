//! The reply on its way from the turn's task to the connection: a head, then bytes, bounded in number and size.
//!
//! The reader's end going away before the reply is whole is how the engine learns that the client has left. When its last
//! byte has been taken the reader gives a [`Ticket`], which whoever learns of the reply's arrival turns in with the
//! receipt. The pipe knows no dialect and no HTTP framing.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use turnkeep_base::limit::{PIPE_BYTES, PIPE_EVENTS};
use turnkeep_base::{Receipt, TurnId};

/// The head of a reply.
#[derive(Debug)]
pub struct ReplyHead {
    /// The status.
    pub status: StatusCode,
    /// The headers, framing excepted.
    pub headers: HeaderMap,
    /// The whole body's length, when it is known: the reply is not a stream.
    pub length: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    head: Option<ReplyHead>,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    ended: bool,
    /// The reply was given up before its end.
    aborted: bool,
    /// The reader has taken the last byte and given the ticket.
    taken: bool,
    /// The reader has gone before the end, or the ticket was lost.
    gone: bool,
    /// Bytes taken since the reply began.
    read: u64,
    /// How many times nothing was left waiting.
    emptied: u64,
    receipt: Option<Receipt>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// How a reader keeps up with its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Bytes it has taken.
    read: u64,
    /// How many times it had taken everything.
    emptied: u64,
    /// Bytes wait for it.
    waiting: bool,
}

impl Pace {
    /// Bytes of the reply that the reader has taken.
    pub fn read(self) -> u64 {
        self.read
    }

    /// Bytes have waited for it ever since `before`, and it has taken fewer than this.
    pub fn is_under(self, before: Pace, bytes: u64) -> bool {
        before.waiting && self.waiting && before.emptied == self.emptied && self.read - before.read < bytes
    }
}

/// The turn's end of the pipe.
#[derive(Debug)]
pub struct ReplyWriter(Arc<Mutex<State>>);

/// The connection's end of the pipe.
#[derive(Debug)]
pub struct ReplyReader {
    shared: Arc<Mutex<State>>,
    turn: TurnId,
}

/// The right to say, once, that a reply has arrived. Dropped, it says that it has not.
#[derive(Debug)]
pub struct Ticket {
    shared: Arc<Mutex<State>>,
    turn: TurnId,
}

/// A pipe for the reply of one turn.
pub fn reply_pipe(turn: TurnId) -> (ReplyWriter, ReplyReader) {
    let shared = Arc::new(Mutex::new(State::default()));
    (ReplyWriter(shared.clone()), ReplyReader { shared, turn })
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn park(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        Some(_) | None => *place = Some(cx.waker().clone()),
    }
}

impl ReplyWriter {
    /// Sends the head; a second head is ignored.
    pub fn head(&mut self, head: ReplyHead) {
        let waker = {
            let mut state = self.0.lock();
            state.head = Some(head);
            state.reader.take()
        };
        wake(waker);
    }

    /// Adds bytes, whatever room there is; ask [`ReplyWriter::poll_room`] before making more.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let waker = {
            let mut state = self.0.lock();
            if state.gone {
                return;
            }
            state.bytes += bytes.len();
            state.chunks.push_back(bytes);
            state.reader.take()
        };
        wake(waker);
    }

    /// The reply is whole.
    pub fn end(&mut self) {
        let waker = {
            let mut state = self.0.lock();
            state.ended = true;
            state.reader.take()
        };
        wake(waker);
    }

    /// Ready when another event may be added. An empty pipe always has room for one.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let mut state = self.0.lock();
        if state.gone {
            return Poll::Ready(Err(Gone));
        }
        if state.chunks.is_empty() || (state.chunks.len() < PIPE_EVENTS && state.bytes < PIPE_BYTES) {
            return Poll::Ready(Ok(()));
        }
        park(&mut state.writer, cx);
        Poll::Pending
    }

    /// Ready when the client has left.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.gone {
            return Poll::Ready(());
        }
        park(&mut state.writer, cx);
        Poll::Pending
    }

    /// Ready with the proof that the reply has arrived, or when it is known that it has not.
    pub fn poll_receipt(&mut self, cx: &mut Context<'_>) -> Poll<Result<Receipt, Gone>> {
        let mut state = self.0.lock();
        if let Some(receipt) = state.receipt.take() {
            return Poll::Ready(Ok(receipt));
        }
        if state.gone {
            return Poll::Ready(Err(Gone));
        }
        park(&mut state.writer, cx);
        Poll::Pending
    }

    /// Gives the reply up: what waits for the reader is thrown away, and the reader is told that it was no end.
    pub fn abort(&mut self) {
        let waker = {
            let mut state = self.0.lock();
            state.aborted = true;
            state.ended = true;
            state.chunks.clear();
            state.bytes = 0;
            state.reader.take()
        };
        wake(waker);
    }

    /// The connection has taken the whole reply.
    pub fn is_taken(&self) -> bool {
        self.0.lock().taken
    }

    /// Ready when the connection has taken the whole reply, or the client has left.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.taken || state.gone {
            return Poll::Ready(());
        }
        park(&mut state.writer, cx);
        Poll::Pending
    }

    /// How the reader keeps up.
    pub fn pace(&self) -> Pace {
        let state = self.0.lock();
        Pace { read: state.read, emptied: state.emptied, waiting: !state.chunks.is_empty() }
    }

    /// The client has left.
    pub fn is_gone(&self) -> bool {
        self.0.lock().gone
    }
}

impl Drop for ReplyWriter {
    fn drop(&mut self) {
        self.end();
    }
}

impl ReplyReader {
    /// The head, when the turn has one. `None` when the turn ended without.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<ReplyHead>> {
        let mut state = self.shared.lock();
        if let Some(head) = state.head.take() {
            return Poll::Ready(Some(head));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        park(&mut state.reader, cx);
        Poll::Pending
    }

    /// The reply was given up before its end, and what was read of it is no whole reply.
    pub fn is_aborted(&self) -> bool {
        self.shared.lock().aborted
    }

    /// As [`ReplyReader::is_aborted`]; wakes when it is given up, or bytes come.
    pub fn poll_aborted(&mut self, cx: &mut Context<'_>) -> bool {
        let mut state = self.shared.lock();
        if !state.aborted {
            park(&mut state.reader, cx);
        }
        state.aborted
    }

    /// The next bytes; `None` at the end of the reply, or where it was given up ([`ReplyReader::is_aborted`]).
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (out, waker) = {
            let mut state = self.shared.lock();
            if let Some(chunk) = state.chunks.pop_front() {
                state.bytes -= chunk.len();
                state.read += chunk.len() as u64;
                state.emptied += u64::from(state.chunks.is_empty());
                (Some(chunk), state.writer.take())
            } else if state.ended {
                (None, None)
            } else {
                park(&mut state.reader, cx);
                return Poll::Pending;
            }
        };
        wake(waker);
        Poll::Ready(out)
    }

    /// Nothing is left to read.
    pub fn is_end(&self) -> bool {
        let state = self.shared.lock();
        state.ended && state.chunks.is_empty()
    }

    /// The ticket of the reply, once, when its last byte has been taken: to be asked for after every chunk, as a framing
    /// that knows the length never asks for the end.
    pub fn ticket(&mut self) -> Option<Ticket> {
        let waker = {
            let mut state = self.shared.lock();
            if state.taken || state.aborted || !state.ended || !state.chunks.is_empty() {
                return None;
            }
            state.taken = true;
            state.writer.take()
        };
        wake(waker);
        Some(Ticket { shared: self.shared.clone(), turn: self.turn })
    }

    /// Whose reply it is.
    pub fn turn(&self) -> TurnId {
        self.turn
    }
}

impl Drop for ReplyReader {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.lock();
            if !state.taken {
                state.gone = true;
                state.chunks.clear();
                state.bytes = 0;
            }
            state.writer.take()
        };
        wake(waker);
    }
}

impl Ticket {
    /// Whose reply it is for.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// The reply has arrived.
    pub fn turn_in(self, receipt: Receipt) {
        self.shared.lock().receipt = Some(receipt);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.lock();
            // With a receipt the writer takes that first.
            state.gone = true;
            state.writer.take()
        };
        wake(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use turnkeep_base::receipt::{Level, Mint};

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_full_pipe_has_no_room_until_it_is_read() {
        let (mut writer, mut reader) = reply_pipe(turn());
        let mut cx = context();
        writer.push(Bytes::from(vec![0; PIPE_BYTES * 2]));
        assert!(writer.poll_room(&mut cx).is_pending());
        assert!(reader.poll_chunk(&mut cx).is_ready());
        assert_eq!(writer.poll_room(&mut cx), Poll::Ready(Ok(())));
        for _ in 0..PIPE_EVENTS {
            writer.push(Bytes::from_static(b"x"));
        }
        assert!(writer.poll_room(&mut cx).is_pending());
    }

    #[test]
    fn a_reader_is_slow_only_while_bytes_wait_for_it_all_the_time() {
        let (mut writer, mut reader) = reply_pipe(turn());
        let mut cx = context();
        let idle = writer.pace();
        writer.push(Bytes::from_static(b"xx"));
        writer.push(Bytes::from_static(b"yyy"));
        let before = writer.pace();
        assert!(!before.is_under(idle, 100), "nothing waited at first");
        assert!(reader.poll_chunk(&mut cx).is_ready());
        assert!(writer.pace().is_under(before, 3), "two bytes of three");
        assert!(!writer.pace().is_under(before, 2));
        assert!(reader.poll_chunk(&mut cx).is_ready());
        writer.push(Bytes::from_static(b"z"));
        assert!(!writer.pace().is_under(before, 100), "it had caught up in between");
    }

    fn turn() -> TurnId {
        TurnId::new(1, 1)
    }

    #[test]
    fn a_reply_that_is_given_up_frees_what_waits_and_its_reader_is_told() {
        let (mut writer, mut reader) = reply_pipe(turn());
        let mut cx = context();
        writer.push(Bytes::from_static(b"x"));
        writer.abort();
        assert_eq!(reader.poll_chunk(&mut cx), Poll::Ready(None));
        assert!(reader.is_aborted() && reader.ticket().is_none());
        drop(reader);
        assert!(writer.is_gone());
    }

    #[test]
    fn a_reader_that_goes_early_is_noticed() {
        let (mut writer, mut reader) = reply_pipe(turn());
        let mut cx = context();
        writer.push(Bytes::from_static(b"x"));
        assert!(reader.ticket().is_none(), "more may come");
        drop(reader);
        assert!(matches!(writer.poll_receipt(&mut cx), Poll::Ready(Err(Gone))));
    }

    #[test]
    fn a_reply_that_was_taken_has_arrived_only_when_its_ticket_is_turned_in_with_a_receipt() {
        for arrives in [true, false] {
            let (mut writer, mut reader) = reply_pipe(turn());
            let mut cx = context();
            writer.push(Bytes::from_static(b"x"));
            writer.end();
            assert!(reader.ticket().is_none(), "the last byte is still here");
            assert!(reader.poll_chunk(&mut cx).is_ready());
            let ticket = reader.ticket().unwrap();
            assert!(reader.ticket().is_none(), "there is one");
            drop(reader);
            assert!(writer.poll_receipt(&mut cx).is_pending(), "taken by the connection proves nothing");
            assert!(!writer.is_gone());
            let receipt = Mint::for_the_wiring().receipt(ticket.turn(), Level::Acked);
            if arrives {
                ticket.turn_in(receipt);
                assert!(matches!(writer.poll_receipt(&mut cx), Poll::Ready(Ok(_))));
            } else {
                drop(ticket);
                assert!(matches!(writer.poll_receipt(&mut cx), Poll::Ready(Err(Gone))));
            }
        }
    }
}
