//! The socket under a connection, which a reply can order to misbehave.
//!
//! hyper writes only legal HTTP and closes only politely. A reply that must not be legal gives an [`Order`] to its
//! connection's [`Control`]; the socket carries it out at the next flush, when all bytes before it have left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio_rustls::server::TlsStream;

/// What a socket is to do once the bytes already written have left.
#[derive(Debug)]
pub(crate) enum Order {
    /// TCP reset.
    Reset,
    /// TCP close, without TLS's or HTTP's goodbye.
    Close,
    /// Send these bytes as they are, then close.
    Raw(Bytes),
}

/// The handle through which a reply orders its connection about.
#[derive(Debug, Default)]
pub(crate) struct Control {
    inner: Mutex<Pending>,
    /// Asks the connection for `GOAWAY` (or `connection: close`).
    pub(crate) goaway: Notify,
    /// Asks the connection to end, whatever it is doing.
    pub(crate) close: Notify,
    /// How many injected frames have left.
    written: watch::Sender<u64>,
    requests: AtomicU32,
    active: AtomicUsize,
}

#[derive(Debug, Default)]
struct Pending {
    order: Option<Order>,
    /// Whole HTTP/2 frames to be written between the library's own, and how many there were in all.
    frames: BytesMut,
    injected: u64,
    waker: Option<Waker>,
}

/// A request that its connection is answering, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Busy {
    control: Arc<Control>,
    /// The request's HTTP/2 stream: clients number theirs 1, 3, 5 and so on, and requests come in that order.
    pub(crate) stream: u32,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.control.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Control {
    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.active.fetch_add(1, Ordering::Relaxed);
        let earlier = self.requests.fetch_add(1, Ordering::Relaxed);
        Busy { control: Arc::clone(self), stream: earlier.saturating_mul(2).saturating_add(1) }
    }

    /// Whether no request is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0
    }

    /// Puts a whole HTTP/2 frame between those of the library, and waits until it has left.
    pub(crate) async fn inject(&self, frame: &[u8]) {
        let (number, waker) = {
            let mut inner = self.lock();
            inner.frames.extend_from_slice(frame);
            inner.injected += 1;
            (inner.injected, inner.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        // The sender lives in self, so the channel cannot close here.
        let _ = self.written.subscribe().wait_for(|written| *written >= number).await;
    }

    fn frames(&self) -> (Bytes, u64) {
        let mut inner = self.lock();
        (inner.frames.split().freeze(), inner.injected)
    }

    /// The first order counts: the connection does not outlive it.
    pub(crate) fn order(&self, order: Order) {
        let waker = {
            let mut inner = self.lock();
            inner.order.get_or_insert(order);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// What comes from now on wakes this task.
    fn watch(&self, waker: &Waker) {
        self.lock().waker = Some(waker.clone());
    }

    fn take(&self) -> Option<Order> {
        self.lock().order.take()
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to the lab that is no socket of the system's: for a lab within a simulation.
pub trait LabLink: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug {
    /// Makes the coming close of this connection a reset.
    fn reset_on_close(&self);
    /// Says that nothing more will be sent, and nothing else.
    fn half_close(&self);
}

/// Plain or encrypted, or no socket at all.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Link(Box<dyn LabLink>),
}

impl Transport {
    fn reset_on_close(&self) {
        match self {
            Self::Plain(tcp) => reset_on_close(tcp),
            Self::Tls(tls) => reset_on_close(tls.get_ref().0),
            Self::Link(link) => link.reset_on_close(),
        }
    }

    fn half_close(&self) {
        match self {
            Self::Plain(tcp) => half_close(tcp),
            Self::Tls(tls) => half_close(tls.get_ref().0),
            Self::Link(link) => link.half_close(),
        }
    }
}

/// The socket hyper is given.
#[derive(Debug)]
pub(crate) struct LabSocket {
    transport: Transport,
    control: Arc<Control>,
    raw: Option<Bytes>,
    /// What is left of injected frames, and the number of the last of them.
    frames: Bytes,
    last_frame: u64,
    ended: bool,
}

macro_rules! inner {
    ($self:ident, $io:ident => $call:expr) => {
        match &mut $self.transport {
            Transport::Plain(tcp) => {
                let $io = Pin::new(tcp);
                $call
            }
            Transport::Tls(tls) => {
                let $io = Pin::new(tls.as_mut());
                $call
            }
            Transport::Link(link) => {
                let $io = Pin::new(link.as_mut());
                $call
            }
        }
    };
}

impl LabSocket {
    pub(crate) fn new(transport: Transport, control: Arc<Control>) -> Self {
        Self { transport, control, raw: None, frames: Bytes::new(), last_frame: 0, ended: false }
    }

    /// Writes what is left of injected frames.
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.frames.is_empty() {
            let frames = self.frames.clone();
            let written = ready!(inner!(self, io => io.poll_write(cx, &frames)))?;
            self.frames.advance(written);
            if self.frames.is_empty() {
                self.control.written.send_replace(self.last_frame);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) -> io::Error {
        self.ended = true;
        io::Error::new(io::ErrorKind::ConnectionAborted, "the script ends this connection")
    }
}

/// Makes the coming close of this socket a reset.
pub(crate) fn reset_on_close(tcp: &TcpStream) {
    if let Err(error) = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO)) {
        tracing::debug!(%error, "the socket takes no linger");
    }
}

/// Sends FIN and nothing else.
pub(crate) fn half_close(tcp: &TcpStream) {
    if let Err(error) = socket2::SockRef::from(tcp).shutdown(std::net::Shutdown::Write) {
        tracing::debug!(%error, "the socket was closed already");
    }
}

impl Drop for LabSocket {
    /// An order that no flush has come for yet.
    fn drop(&mut self) {
        if !self.ended && matches!(self.control.take(), Some(Order::Reset)) {
            self.transport.reset_on_close();
        }
    }
}

impl AsyncRead for LabSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        inner!(self, io => io.poll_read(cx, buf))
    }
}

impl AsyncWrite for LabSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.raw.is_some() {
            // The literal bytes are on their way: nothing may follow them.
            return Poll::Ready(Ok(buf.len()));
        }
        ready!(self.poll_frames(cx))?;
        inner!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(self.poll_frames(cx))?;
        ready!(inner!(self, io => io.poll_flush(cx)))?;
        if self.raw.is_none() {
            self.control.watch(cx.waker());
            // The library has written all that it wanted to: a frame of its own does not stand half written here.
            (self.frames, self.last_frame) = self.control.frames();
            if !self.frames.is_empty() {
                ready!(self.poll_frames(cx))?;
                ready!(inner!(self, io => io.poll_flush(cx)))?;
            }
            match self.control.take() {
                None => return Poll::Ready(Ok(())),
                Some(Order::Reset) => {
                    self.transport.reset_on_close();
                    return Poll::Ready(Err(self.end()));
                }
                Some(Order::Close) => {
                    self.transport.half_close();
                    return Poll::Ready(Err(self.end()));
                }
                Some(Order::Raw(bytes)) => self.raw = Some(bytes),
            }
        }
        while let Some(mut raw) = self.raw.take_if(|raw| !raw.is_empty()) {
            match inner!(self, io => io.poll_write(cx, &raw)) {
                Poll::Ready(Ok(written)) => {
                    raw.advance(written);
                    self.raw = Some(raw);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.raw = Some(raw);
                    return Poll::Pending;
                }
            }
        }
        ready!(inner!(self, io => io.poll_flush(cx)))?;
        self.transport.half_close();
        Poll::Ready(Err(self.end()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        inner!(self, io => io.poll_shutdown(cx))
    }
}
