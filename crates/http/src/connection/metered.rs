//! What the HTTP code reads and writes: plain bytes, above TLS where there is TLS. It tells [`Deliveries`] what passes:
//! where HTTP/2 streams end and are reset, and when everything handed over before has reached the kernel.

use super::deliveries::Deliveries;
use super::frames::{Frames, Seen};
use bytes::{Buf, Bytes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection's plain bytes.
#[derive(Debug)]
pub struct Metered<I> {
    inner: I,
    deliveries: Arc<Deliveries>,
    /// Bytes that were read to learn which protocol the client speaks.
    first: Bytes,
    frames: Option<Both>,
}

#[derive(Debug)]
struct Both {
    read: Frames,
    written: Frames,
}

impl<I> Metered<I> {
    /// For HTTP/1.1.
    pub fn http1(inner: I, first: Bytes, deliveries: Arc<Deliveries>) -> Self {
        Metered { inner, deliveries, first, frames: None }
    }

    /// For HTTP/2.
    pub fn http2(inner: I, first: Bytes, deliveries: Arc<Deliveries>) -> Self {
        let frames = Some(Both { read: Frames::of_client(), written: Frames::of_server() });
        Metered { inner, deliveries, first, frames }
    }

    /// hyper takes the client's end for an error while it has bytes left to send; they go first, and it is told then.
    fn holds_end(&self, cx: &Context<'_>) -> bool {
        self.frames.is_none() && self.deliveries.holds_end(cx)
    }

    /// A write or flush that cannot go on makes replies wait that were handed over.
    fn or_stalled<T>(&self, polled: Poll<T>) -> Poll<T> {
        if polled.is_pending() {
            self.deliveries.stalled();
        }
        polled
    }

    fn passed_out(&mut self, bytes: &[u8]) {
        if let Some(frames) = &mut self.frames {
            frames.written.pass(bytes, |seen| match seen {
                Seen::Ended(stream) => self.deliveries.stream_ended(stream),
                Seen::Reset(stream) => self.deliveries.given_up(stream),
            });
        }
    }
}

impl<I> Drop for Metered<I> {
    fn drop(&mut self) {
        self.deliveries.closed();
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Metered<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if this.first.is_empty() {
            match ready!(Pin::new(&mut this.inner).poll_read(cx, buffer)) {
                Ok(()) => {}
                // A TLS client that closes without saying so has ended like one that says so.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && this.holds_end(cx) => {
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        } else {
            let step = this.first.len().min(buffer.remaining());
            buffer.put_slice(&this.first[..step]);
            this.first.advance(step);
        }
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Some(frames) = &mut this.frames {
            this.deliveries.heard();
            frames.read.pass(read, |seen| match seen {
                Seen::Reset(stream) => this.deliveries.void(stream),
                Seen::Ended(_) => {}
            });
        } else if read.is_empty() && buffer.remaining() > 0 && this.holds_end(cx) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Metered<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        let taken = ready!(self.or_stalled(polled))?;
        self.passed_out(bytes.get(..taken).unwrap_or_default());
        Poll::Ready(Ok(taken))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        let taken = ready!(self.or_stalled(polled))?;
        let mut left = taken;
        for piece in pieces {
            let step = piece.len().min(left);
            self.passed_out(piece.get(..step).unwrap_or_default());
            left -= step;
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        ready!(self.or_stalled(polled))?;
        self.deliveries.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
