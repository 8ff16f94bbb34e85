//! The reply on its way from the turn's task to the connection: a head, then bytes, bounded in number and size.
//!
//! The reader's end going away before the reply is whole is how the engine learns that the client has left. The pipe
//! knows no dialect and no HTTP framing.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use turnkeep_base::limit::{PIPE_BYTES, PIPE_EVENTS};

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
    /// The reader has seen the end.
    taken: bool,
    /// The reader has gone before the end.
    gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// The turn's end of the pipe.
#[derive(Debug)]
pub struct ReplyWriter(Arc<Mutex<State>>);

/// The connection's end of the pipe.
#[derive(Debug)]
pub struct ReplyReader(Arc<Mutex<State>>);

/// A pipe for one reply.
pub fn reply_pipe() -> (ReplyWriter, ReplyReader) {
    let shared = Arc::new(Mutex::new(State::default()));
    (ReplyWriter(shared.clone()), ReplyReader(shared))
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

    /// Ready when the connection has taken the whole reply, or the client has left.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let mut state = self.0.lock();
        if state.taken {
            return Poll::Ready(Ok(()));
        }
        if state.gone {
            return Poll::Ready(Err(Gone));
        }
        park(&mut state.writer, cx);
        Poll::Pending
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
        let mut state = self.0.lock();
        if let Some(head) = state.head.take() {
            return Poll::Ready(Some(head));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        park(&mut state.reader, cx);
        Poll::Pending
    }

    /// The next bytes; `None` at the end of the reply.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (out, waker) = {
            let mut state = self.0.lock();
            if let Some(chunk) = state.chunks.pop_front() {
                state.bytes -= chunk.len();
                (Some(chunk), state.writer.take())
            } else if state.ended {
                state.taken = true;
                (None, state.writer.take())
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
        let state = self.0.lock();
        state.ended && state.chunks.is_empty()
    }

    /// The connection has taken the last byte; framing that knows the length never asks for the end.
    pub fn mark_taken(&mut self) {
        let waker = {
            let mut state = self.0.lock();
            if !(state.ended && state.chunks.is_empty()) {
                return;
            }
            state.taken = true;
            state.writer.take()
        };
        wake(waker);
    }
}

impl Drop for ReplyReader {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.lock();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_full_pipe_has_no_room_until_it_is_read() {
        let (mut writer, mut reader) = reply_pipe();
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
    fn a_reader_that_goes_early_is_noticed_and_one_that_took_everything_is_not_gone() {
        let (mut writer, reader) = reply_pipe();
        let mut cx = context();
        writer.push(Bytes::from_static(b"x"));
        drop(reader);
        assert_eq!(writer.poll_taken(&mut cx), Poll::Ready(Err(Gone)));
        let (mut writer, mut reader) = reply_pipe();
        writer.push(Bytes::from_static(b"x"));
        writer.end();
        assert!(reader.poll_chunk(&mut cx).is_ready());
        assert_eq!(reader.poll_chunk(&mut cx), Poll::Ready(None));
        drop(reader);
        assert_eq!(writer.poll_taken(&mut cx), Poll::Ready(Ok(())));
        assert!(!writer.is_gone());
    }
}
