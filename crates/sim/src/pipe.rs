//! One direction of a simulated connection: bytes that leave in pieces, are under way for a time, stand unread at the other
//! host, and may be stalled or never come.

use crate::streams::Stream;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// How a direction carries bytes.
#[derive(Clone, Copy, Debug)]
pub struct Carries {
    /// The time that a piece is under way, in microseconds, at least and at most.
    pub delay_us: (u64, u64),
    /// The longest piece, in bytes.
    pub piece: u64,
    /// Bytes that may be under way, and as many unread at the other host.
    pub window: usize,
}

/// What befalls a direction at a certain byte.
#[derive(Clone, Copy, Debug)]
pub enum Befalls {
    /// From this byte on, nothing comes for so long.
    Stall(u64, Duration),
    /// At this byte the connection is reset, in both directions.
    Reset(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Open,
    /// The writer has closed: after what is under way comes the end.
    Closed,
    /// Reset: nothing more comes and nothing goes.
    Reset,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    carries: Carries,
    befalls: Option<Befalls>,
    stream: Stream,
    /// What is under way, each piece with the moment of its arrival.
    under_way: VecDeque<(Instant, Bytes)>,
    under_way_bytes: usize,
    last: Option<Instant>,
    /// What has arrived and is not read.
    unread: VecDeque<Bytes>,
    unread_bytes: usize,
    /// Bytes that were taken, and bytes that have arrived.
    pub(crate) written: u64,
    pub(crate) arrived: u64,
    pub(crate) ended: Ended,
    /// The end has arrived.
    pub(crate) over: bool,
    waits: Vec<Waker>,
}

impl Pipe {
    pub(crate) fn new(carries: Carries, befalls: Option<Befalls>, stream: Stream) -> Pipe {
        Pipe {
            carries,
            befalls,
            stream,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            last: None,
            unread: VecDeque::new(),
            unread_bytes: 0,
            written: 0,
            arrived: 0,
            ended: Ended::Open,
            over: false,
            waits: Vec::new(),
        }
    }

    /// Takes bytes, as many as there is room for. `Ready(None)`: at a byte of these the connection is to be reset.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<Option<usize>>> {
        match self.ended {
            Ended::Open => {}
            Ended::Closed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Ended::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
        let room = self.carries.window.saturating_sub(self.under_way_bytes);
        if room == 0 {
            self.wait(cx);
            return Poll::Pending;
        }
        let taken = bytes.len().min(room);
        let mut left = bytes.get(..taken).unwrap_or_default();
        if let Some(Befalls::Reset(at)) = self.befalls {
            let until = usize::try_from(at.saturating_sub(self.written)).unwrap_or(usize::MAX);
            if until < taken {
                return Poll::Ready(Ok(None));
            }
        }
        while !left.is_empty() {
            let piece = usize::try_from(self.stream.within(1..=self.carries.piece)).unwrap_or(1).min(left.len());
            let (delay_from, delay_to) = self.carries.delay_us;
            let mut at = Instant::now() + Duration::from_micros(self.stream.within(delay_from..=delay_to));
            if let Some(Befalls::Stall(from, time)) = self.befalls
                && self.written + piece as u64 > from
            {
                at += time;
                self.befalls = None;
            }
            at = self.last.map_or(at, |last| at.max(last));
            self.last = Some(at);
            let (now, later) = left.split_at(piece);
            self.under_way.push_back((at, Bytes::copy_from_slice(now)));
            self.under_way_bytes += piece;
            self.written += piece as u64;
            left = later;
        }
        self.wake();
        Poll::Ready(Ok(Some(taken)))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<Bytes>> {
        if self.ended == Ended::Reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let Some(first) = self.unread.front_mut() else {
            if self.over {
                return Poll::Ready(Ok(Bytes::new()));
            }
            self.wait(cx);
            return Poll::Pending;
        };
        let piece = first.split_to(most.min(first.len()));
        if !first.has_remaining() {
            self.unread.pop_front();
        }
        self.unread_bytes -= piece.len();
        self.wake();
        Poll::Ready(Ok(piece))
    }

    /// Something is to be read, or the end has come; `true` for the latter.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.over || self.ended == Ended::Reset {
            Poll::Ready(true)
        } else if self.unread.is_empty() {
            self.wait(cx);
            Poll::Pending
        } else {
            Poll::Ready(false)
        }
    }

    pub(crate) fn close(&mut self) {
        if self.ended == Ended::Open {
            self.ended = Ended::Closed;
            self.wake();
        }
    }

    pub(crate) fn reset(&mut self) {
        if self.ended != Ended::Reset && !(self.over && self.unread.is_empty()) {
            self.ended = Ended::Reset;
            self.under_way.clear();
            self.unread.clear();
            (self.under_way_bytes, self.unread_bytes) = (0, 0);
        }
        self.ended = Ended::Reset;
        self.wake();
    }

    /// Lets arrive what has been under way long enough; the moment to look again, if there is one.
    pub(crate) fn carry(&mut self, now: Instant) -> Option<Instant> {
        let mut moved = false;
        while let Some((at, piece)) = self.under_way.front() {
            if *at > now {
                break;
            }
            if self.unread_bytes + piece.len() > self.carries.window.max(piece.len()) && self.unread_bytes > 0 {
                // The other host's window is shut until something is read.
                if moved {
                    self.wake();
                }
                return None;
            }
            if let Some((_, piece)) = self.under_way.pop_front() {
                self.under_way_bytes -= piece.len();
                self.arrived += piece.len() as u64;
                self.unread_bytes += piece.len();
                self.unread.push_back(piece);
                moved = true;
            }
        }
        if self.under_way.is_empty() && self.ended == Ended::Closed && !self.over {
            self.over = true;
            moved = true;
        }
        if moved {
            self.wake();
        }
        self.under_way.front().map(|(at, _)| *at)
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.unread_bytes > 0
    }

    pub(crate) fn wait(&mut self, cx: &Context<'_>) {
        if !self.waits.iter().any(|waits| waits.will_wake(cx.waker())) {
            self.waits.push(cx.waker().clone());
        }
    }

    pub(crate) fn wake(&mut self) {
        self.waits.drain(..).for_each(Waker::wake);
    }
}
