//! Where connections lead: over the network, on this machine alone, or wherever the embedding program takes them, which is
//! how whole systems are simulated.

use futures_util::future::BoxFuture;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Where connections may lead.
#[derive(Clone, Default)]
pub enum Egress {
    /// Anywhere.
    #[default]
    Network,
    /// To loopback addresses alone: for tests and for a machine that must stay silent.
    Loopback,
    /// Wherever the embedding program takes them: it makes the connections, to proxies too. Names are its to resolve, but
    /// for those that a SOCKS 5 proxy is told as addresses.
    Dialled(Arc<dyn Dial>),
}

impl Egress {
    /// Connections may lead anywhere.
    pub fn is_open(&self) -> bool {
        matches!(self, Egress::Network)
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Egress::Network => "Network",
            Egress::Loopback => "Loopback",
            Egress::Dialled(_) => "Dialled",
        })
    }
}

/// Makes connections in the place of the system.
pub trait Dial: Send + Sync {
    /// A connection to this host and port, on which the transport's errors are those of [`io::ErrorKind`]. Dropping the
    /// future gives it up.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'_, io::Result<Box<dyn Dialled>>>;
}

/// A connection that a [`Dial`] has made. Dropping it closes it.
pub trait Dialled: AsyncRead + AsyncWrite + Send + Unpin {}

/// The transport under TLS and HTTP.
pub(crate) enum Transport {
    Tcp(TcpStream),
    Dialled(Box<dyn Dialled>),
}

macro_rules! transport {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Tcp(tcp) => {
                let $io = Pin::new(tcp);
                $call
            }
            Transport::Dialled(dialled) => {
                let $io = Pin::new(dialled.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        transport!(self, io => io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        transport!(self, io => io.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        transport!(self, io => io.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.is_write_vectored(),
            Transport::Dialled(dialled) => dialled.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self, io => io.poll_shutdown(cx))
    }
}
