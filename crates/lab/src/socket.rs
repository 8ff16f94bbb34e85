//! The socket under a connection, which a reply can order to misbehave.
//!
//! hyper writes only legal HTTP and closes only politely. A reply that must not be legal gives an [`Order`] to its
//! connection's [`Control`]; the socket carries it out at the next flush, when all bytes before it have left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
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
}

#[derive(Debug, Default)]
struct Pending {
    order: Option<Order>,
    waker: Option<Waker>,
}

impl Control {
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

    fn take(&self, waker: &Waker) -> Option<Order> {
        let mut inner = self.lock();
        inner.waker = Some(waker.clone());
        inner.order.take()
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plain or encrypted.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Transport {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }
}

/// The socket hyper is given.
#[derive(Debug)]
pub(crate) struct LabSocket {
    transport: Transport,
    control: Arc<Control>,
    raw: Option<Bytes>,
    ended: bool,
}

impl LabSocket {
    pub(crate) fn new(transport: Transport, control: Arc<Control>) -> Self {
        Self { transport, control, raw: None, ended: false }
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
        }
    };
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
        inner!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(inner!(self, io => io.poll_flush(cx)))?;
        if self.raw.is_none() {
            match self.control.take(cx.waker()) {
                None => return Poll::Ready(Ok(())),
                Some(Order::Reset) => {
                    reset_on_close(self.transport.tcp());
                    return Poll::Ready(Err(self.end()));
                }
                Some(Order::Close) => {
                    half_close(self.transport.tcp());
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
        half_close(self.transport.tcp());
        Poll::Ready(Err(self.end()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        inner!(self, io => io.poll_shutdown(cx))
    }
}
