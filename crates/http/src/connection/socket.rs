//! The socket of a client's connection, under TLS and HTTP. It counts what the kernel has taken, and its file stays open
//! while somebody still asks whether that has arrived, also after the protocol is done with it.

use super::kernel;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
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

    /// Bytes that the kernel has taken.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// What has arrived of them; `None` where the system does not tell.
    pub fn arrival(&self) -> Option<Arrival> {
        let before = self.acked_before?;
        let written = self.written();
        let standing = kernel::standing(self.fd(), written)?;
        Some(Arrival { acked: standing.acked.saturating_sub(before).min(written), over: standing.over })
    }

    /// Ready when the peer may have sent something or closed. `true` when it will send nothing more; that is told also
    /// while what it sent before has not been read.
    pub async fn readable(&self) -> io::Result<bool> {
        self.ready(Interest::READABLE).await.map(|ready| ready.is_read_closed())
    }

    /// Ready when an error has ended the connection.
    pub async fn failed(&self) {
        // An error here says just that.
        let _ = self.ready(Interest::ERROR).await;
    }

    async fn ready(&self, interest: Interest) -> io::Result<tokio::io::Ready> {
        match &self.stream {
            Stream::Tcp(stream) => stream.ready(interest).await,
            Stream::Unix(stream) => stream.ready(interest).await,
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&Stream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match &self.stream {
                Stream::Tcp(stream) => ready!(stream.poll_write_ready(cx))?,
                Stream::Unix(stream) => ready!(stream.poll_write_ready(cx))?,
            }
            match write(&self.stream) {
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
        // That it is closed already is no error.
        let _ = socket2::SockRef::from(&self.fd()).shutdown(std::net::Shutdown::Write);
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
            let unfilled = buffer.initialize_unfilled();
            let read = match &self.0.stream {
                Stream::Tcp(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(unfilled)
                }
                Stream::Unix(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(unfilled)
                }
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
        self.0.poll_write_with(cx, |stream| match stream {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
        })
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_with(cx, |stream| match stream {
            Stream::Tcp(stream) => stream.try_write_vectored(pieces),
            Stream::Unix(stream) => stream.try_write_vectored(pieces),
        })
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
