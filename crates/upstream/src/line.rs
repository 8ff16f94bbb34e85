//! The wire under an HTTP connection, watched: whether anything was heard on it, and how it broke. The HTTP libraries
//! above do not tell either reliably, and a fault is named by who saw it first.

use crate::classify;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turnkeep_base::FaultKind;

/// What the watcher knows.
#[derive(Default)]
pub(crate) struct LineState {
    heard: AtomicBool,
    broke: OnceLock<(FaultKind, String)>,
}

impl LineState {
    /// Forget what was heard: the next exchange begins.
    pub(crate) fn begin(&self) {
        self.heard.store(false, Ordering::Relaxed);
    }

    /// A byte (under TLS: of plain text) has come since the exchange began.
    pub(crate) fn heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// The first error or end seen on the wire.
    pub(crate) fn broke(&self) -> Option<(FaultKind, &str)> {
        self.broke.get().map(|(kind, text)| (*kind, text.as_str()))
    }

    fn note(&self, error: &io::Error) {
        self.broke.get_or_init(|| (classify::wire(error), classify::describe(error)));
    }
}

/// A transport that is watched.
pub(crate) struct Line<T> {
    io: T,
    state: Arc<LineState>,
}

impl<T> Line<T> {
    pub(crate) fn new(io: T, state: Arc<LineState>) -> Self {
        Line { io, state }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Line<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut this.io).poll_read(cx, buf));
        match &read {
            Ok(()) if buf.filled().len() > before => this.state.heard.store(true, Ordering::Relaxed),
            Ok(()) if buf.remaining() > 0 => this.state.note(&io::ErrorKind::UnexpectedEof.into()),
            Ok(()) => {}
            Err(error) => this.state.note(error),
        }
        Poll::Ready(read)
    }
}

impl<T> Line<T> {
    fn watched<R>(&self, written: io::Result<R>) -> Poll<io::Result<R>> {
        if let Err(error) = &written {
            self.state.note(error);
        }
        Poll::Ready(written)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Line<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, buf));
        this.watched(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.io).poll_write_vectored(cx, bufs));
        this.watched(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = ready!(Pin::new(&mut this.io).poll_flush(cx));
        this.watched(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
