//! The socket of a client's connection, under TLS and HTTP. It counts what the kernel has taken, and its file stays open
//! while somebody still asks whether that has arrived, also after the protocol is done with it.

use super::kernel;
use super::link::Link;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// No socket of the kernel's.
    Link(Box<dyn Link>),
}

/// A client's socket.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    /// Bytes that the kernel has taken.
    written: AtomicU64,
    /// What the kernel called acknowledged before anything was written; `None` where it does not tell.
    acked_before: Option<u64>,
    /// The right to hold the file open.
    _permit: Option<OwnedSemaphorePermit>,
}

/// What is known of the bytes that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes that the peer's host has acknowledged.
    pub acked: u64,
    /// Nothing more will be.
    pub over: bool,
}

impl Socket {
    /// Over TCP. To be called before anything is written.
    pub fn tcp(stream: TcpStream, permit: Option<OwnedSemaphorePermit>) -> Arc<Self> {
        let acked_before = kernel::standing(stream.as_fd(), 0).map(|standing| standing.acked);
        Arc::new(Socket { stream: Stream::Tcp(stream), written: AtomicU64::new(0), acked_before, _permit: permit })
    }

    /// Over a Unix socket, whose other end is this host's kernel: there is nothing to acknowledge.
    pub fn unix(stream: UnixStream, permit: Option<OwnedSemaphorePermit>) -> Arc<Self> {
        let stream = Stream::Unix(stream);
        Arc::new(Socket { stream, written: AtomicU64::new(0), acked_before: None, _permit: permit })
    }

    /// Over a link, which tells what has arrived as TCP does.
    pub fn link(link: Box<dyn Link>, permit: Option<OwnedSemaphorePermit>) -> Arc<Self> {
        Arc::new(Socket {
            stream: Stream::Link(link),
            written: AtomicU64::new(0),
            acked_before: Some(0),
            _permit: permit,
        })
    }

    /// Bytes that the kernel has taken.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// What has arrived of them; `None` where the system does not tell.
    pub fn arrival(&self) -> Option<Arrival> {
        let before = self.acked_before?;
        let written = self.written();
        let standing = match &self.stream {
            Stream::Tcp(stream) => kernel::standing(stream.as_fd(), written)?,
            Stream::Unix(stream) => kernel::standing(stream.as_fd(), written)?,
            Stream::Link(link) => link.standing(),
        };
        Some(Arrival { acked: standing.acked.saturating_sub(before).min(written), over: standing.over })
    }

    /// Ready when the peer may have sent something or closed. `true` when it will send nothing more; that is told also
    /// while what it sent before has not been read.
    pub async fn readable(&self) -> io::Result<bool> {
        match &self.stream {
            Stream::Tcp(stream) => stream.ready(Interest::READABLE).await.map(|ready| ready.is_read_closed()),
            Stream::Unix(stream) => stream.ready(Interest::READABLE).await.map(|ready| ready.is_read_closed()),
            Stream::Link(link) => Ok(poll_fn(|cx| link.poll_readable(cx)).await),
        }
    }

    /// Ready when an error has ended the connection.
    pub async fn failed(&self) {
        // An error here says just that.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.ready(Interest::ERROR).await,
            Stream::Unix(stream) => stream.ready(Interest::ERROR).await,
            Stream::Link(link) => return poll_fn(|cx| link.poll_failed(cx)).await,
        };
    }

    fn poll_write(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            let written = match &self.stream {
                Stream::Tcp(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    stream.try_write_vectored(pieces)
                }
                Stream::Unix(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    stream.try_write_vectored(pieces)
                }
                Stream::Link(link) => {
                    let first = pieces.iter().find(|piece| !piece.is_empty()).map_or(&[][..], |piece| piece);
                    ready!(link.poll_write(cx, first))
                }
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(taken) => {
                    self.written.fetch_add(taken as u64, Ordering::AcqRel);
                    return Poll::Ready(Ok(taken));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn shut_down(&self) {
        let socket = match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Link(link) => return link.shut_down(),
        };
        // That it is closed already is no error.
        let _ = socket2::SockRef::from(&socket).shutdown(std::net::Shutdown::Write);
    }
}

/// The protocol's end of a socket. When it is dropped nothing more is sent.
#[derive(Debug)]
pub struct SocketIo(Arc<Socket>);

impl SocketIo {
    /// The only one of its socket.
    pub fn new(socket: Arc<Socket>) -> Self {
        SocketIo(socket)
    }
}

impl Drop for SocketIo {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl AsyncRead for SocketIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let read = match &self.0.stream {
                Stream::Tcp(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(buffer.initialize_unfilled())
                }
                Stream::Unix(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(buffer.initialize_unfilled())
                }
                Stream::Link(link) => return link.poll_read(cx, buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for SocketIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shut_down();
        Poll::Ready(Ok(()))
    }
}
