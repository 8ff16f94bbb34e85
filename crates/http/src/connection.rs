//! One client's connection, from the accepted socket to its end. hyper serves HTTP/1.1; HTTP/2 is served with `h2` itself,
//! because hyper does not tell which stream a response goes out on, and a reply's arrival is known by its stream. What
//! passes is metered on two levels: on the socket, for what the kernel took and the peer acknowledged ([`socket`]), and
//! above TLS, for where replies end ([`metered`]). [`deliveries`] puts the two together.

mod body;
mod deliveries;
mod frames;
mod h1;
mod h2;
mod kernel;
mod link;
mod metered;
mod socket;
#[cfg(test)]
mod tests;

pub use link::{Link, Standing};
pub use socket::Socket;

use crate::client_body::ClientBody;
use crate::receipts::Delivery;
use crate::reply_body::ReplyBody;
use bytes::{Bytes, BytesMut};
use deliveries::Deliveries;
use frames::PREFACE;
use http::{Request, Response};
use metered::Metered;
use rustls::ServerConfig;
use socket::SocketIo;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// How long until it is looked again whether a client has left, while bytes of it lie unread.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Answers requests.
pub trait Answers: Clone + Send + Sync + 'static {
    /// The answer to one.
    fn answer(self, request: Request<ClientBody>) -> impl Future<Output = Response<ReplyBody>> + Send + 'static;
}

/// What holds for each connection.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How long a client may take until its TLS handshake, or its first request's head, has come.
    pub header_wait: Duration,
    /// What proves that a reply has arrived.
    pub delivery: Delivery,
    /// Turns true when the connection is to end as its replies do.
    pub stop: watch::Receiver<bool>,
}

/// Why a connection ended other than well.
type Ended = Box<dyn Error + Send + Sync>;

/// A connection's parts, whatever it runs over.
struct Connection<A> {
    answers: A,
    terms: Terms,
    deliveries: Arc<Deliveries>,
    /// A request's head has come.
    seen: Arc<AtomicBool>,
}

/// Serves a connection to its end.
pub async fn serve<A: Answers>(socket: Arc<Socket>, tls: Option<Arc<ServerConfig>>, answers: A, terms: Terms) {
    let deliveries = Deliveries::new(socket.clone(), terms.delivery);
    serve_tracked(socket, deliveries, tls, answers, terms).await;
}

async fn serve_tracked<A: Answers>(
    socket: Arc<Socket>,
    deliveries: Arc<Deliveries>,
    tls: Option<Arc<ServerConfig>>,
    answers: A,
    terms: Terms,
) {
    let io = SocketIo::new(socket);
    let header_wait = terms.header_wait;
    let seen = Arc::new(AtomicBool::new(false));
    let connection = Connection { answers, terms, deliveries, seen: seen.clone() };
    let ended = match tls {
        None => until_silent(Box::pin(connection.sniff(io)), &seen, header_wait).await,
        Some(tls) => {
            let handshake = TlsAcceptor::from(tls).accept(io);
            match tokio::time::timeout(header_wait, handshake).await {
                Ok(Ok(io)) if io.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    until_silent(Box::pin(connection.http2(io, Bytes::new())), &seen, header_wait).await
                }
                Ok(Ok(io)) => until_silent(Box::pin(connection.sniff(io)), &seen, header_wait).await,
                Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => return tracing::debug!("a TLS handshake took too long"),
            }
        }
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "a client's connection ended"),
        None => tracing::debug!("a client sent no request in time"),
    }
}

impl<A: Answers> Connection<A> {
    /// Learns from the first bytes which protocol the client speaks, and serves it.
    async fn sniff<I>(self, mut io: I) -> Result<(), Ended>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut stop = self.terms.stop.clone();
        let first = tokio::select! {
            biased;
            first = first_bytes(&mut io) => first?,
            // Nothing was asked, so nothing is owed.
            _ = stop.wait_for(|stopped| *stopped) => return Ok(()),
        };
        // Each in a place of its own: a connection holds one of the two for as long as it lives.
        match first.starts_with(PREFACE) {
            true => Box::pin(self.http2(io, first)).await,
            false => Box::pin(self.http1(io, first)).await,
        }
    }

    async fn http1<I>(self, io: I, first: Bytes) -> Result<(), Ended>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = Metered::http1(io, first, self.deliveries.clone());
        h1::serve(self, io).await.map_err(Into::into)
    }

    async fn http2<I>(self, io: I, first: Bytes) -> Result<(), Ended>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = Metered::http2(io, first, self.deliveries.clone());
        h2::serve(self, io).await.map_err(Into::into)
    }
}

/// Bytes until they are the HTTP/2 preface or cannot become it; empty when the client closes first.
async fn first_bytes(io: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Bytes> {
    let mut first = BytesMut::with_capacity(PREFACE.len());
    while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
        let room = PREFACE.len() - first.len();
        if (&mut *io).take(room as u64).read_buf(&mut first).await? == 0 {
            break;
        }
    }
    Ok(first.freeze())
}

/// Until the client has ended its side while a reply is under way: then it has left. Pending for as long as none is.
async fn left(deliveries: &Deliveries) {
    loop {
        deliveries.until_under_way().await;
        while deliveries.is_under_way() {
            let closed = deliveries.socket().readable().await.unwrap_or(true);
            if !deliveries.is_under_way() {
                break;
            }
            if closed {
                return;
            }
            // Unread bytes keep the socket ready; only a look tells whether an end is behind them.
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Serves a connection; drops it, with `None`, when its first request's head has not come in time. The protocol's own
/// clocks do not see a client that says nothing at all: they start when the first bytes have told which protocol it is.
async fn until_silent<F: Future>(mut served: Pin<Box<F>>, seen: &AtomicBool, wait: Duration) -> Option<F::Output> {
    if let Ok(output) = tokio::time::timeout(wait, served.as_mut()).await {
        return Some(output);
    }
    if seen.load(Ordering::Relaxed) { Some(served.await) } else { None }
}
