//! The accept loop: TCP, TLS and Unix sockets, bounded connections, and an orderly end.

use crate::client_body::ClientBody;
use crate::connection::{self, Answers, Link, Socket, Terms};
use crate::reply_body::ReplyBody;
use crate::service::Gateway;
use http::{Request, Response};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

/// Between TCP keep-alive probes of a silent client, and how many may go unanswered.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 2;
/// How long a client may leave what it was sent unacknowledged, or its window shut. Longer than the minute that a slow reader
/// has: the kernel counts a shut window as silence, though the client is there.
const USER_TIMEOUT: Duration = Duration::from_secs(75);
/// A pause after an accept that failed for want of a file or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Between warnings that connections cannot be accepted.
const WARN_AGAIN: Duration = Duration::from_secs(1);

/// A place to listen, bound.
#[derive(Debug)]
pub enum Listener {
    /// TCP, with TLS when there is a certificate.
    Tcp(TcpListener, Option<Arc<ServerConfig>>),
    /// A Unix socket; its file is removed at the end.
    Unix(UnixListener, PathBuf),
    /// Connections that the embedding program brings, as from this address.
    Links(Mutex<mpsc::Receiver<Box<dyn Link>>>, SocketAddr),
}

/// Where a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An address.
    Tcp(SocketAddr),
    /// A file.
    Unix(PathBuf),
}

/// Who is at the other end of a connection; every request carries it in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP peer, by its address.
    Tcp(SocketAddr),
    /// A peer on a Unix socket.
    Unix,
}

/// The gateway cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {source}")]
pub struct ServeError {
    /// Where.
    pub place: String,
    /// Why.
    pub source: std::io::Error,
}

impl Listener {
    /// Where it is.
    pub fn bound(&self) -> Result<Bound, ServeError> {
        match self {
            Listener::Tcp(listener, _) => listener
                .local_addr()
                .map(Bound::Tcp)
                .map_err(|source| ServeError { place: "a TCP socket".into(), source }),
            Listener::Unix(_, path) => Ok(Bound::Unix(path.clone())),
            Listener::Links(_, from) => Ok(Bound::Tcp(*from)),
        }
    }
}

impl Answers for Arc<Gateway> {
    fn answer(self, request: Request<ClientBody>) -> impl Future<Output = Response<ReplyBody>> + Send + 'static {
        Gateway::answer(self, request)
    }
}

/// Tells each request who is at the other end of its connection.
#[derive(Clone)]
struct FromPeer<A> {
    answers: A,
    peer: Peer,
}

impl<A: Answers> Answers for FromPeer<A> {
    fn answer(self, mut request: Request<ClientBody>) -> impl Future<Output = Response<ReplyBody>> + Send + 'static {
        request.extensions_mut().insert(self.peer);
        self.answers.answer(request)
    }
}

/// Serves until `stop` turns true; then accepts nothing more, lets connections end as their turns do, and returns when
/// all have. The caller bounds that by stopping the engine. Receipts that are still open then are the turns' to wait for.
pub async fn serve(gateway: Arc<Gateway>, listeners: Vec<Listener>, stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(gateway.limits.connections));
    let terms = Terms { header_wait: gateway.limits.header_wait, delivery: gateway.delivery, stop };
    serve_with(gateway, listeners, permits, terms).await;
}

async fn serve_with<A: Answers>(answers: A, listeners: Vec<Listener>, permits: Arc<Semaphore>, terms: Terms) {
    // Nothing is ever sent: when all connections have let go of their ends, they have ended.
    let (open, mut all_ended) = mpsc::channel::<Infallible>(1);
    let loops = listeners
        .into_iter()
        .map(|listener| accept_loop(listener, answers.clone(), permits.clone(), terms.clone(), open.clone()));
    futures_util::future::join_all(loops).await;
    drop(open);
    all_ended.recv().await;
}

async fn accept_loop<A: Answers>(
    listener: Listener,
    answers: A,
    permits: Arc<Semaphore>,
    terms: Terms,
    open: mpsc::Sender<Infallible>,
) {
    let mut stop = terms.stop.clone();
    let mut warned: Option<Instant> = None;
    loop {
        let (permit, accepted) = tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => break,
            (Some(permit), accepted) = permitted(&permits, &listener) => (permit, accepted),
            else => break,
        };
        let (socket, tls, peer) = match accepted {
            Ok(Accepted::Tcp(stream, peer, tls)) => (Socket::tcp(stream, Some(permit)), tls, Peer::Tcp(peer)),
            Ok(Accepted::Unix(stream)) => (Socket::unix(stream, Some(permit)), None, Peer::Unix),
            Ok(Accepted::Link(link, from)) => (Socket::link(link, Some(permit)), None, Peer::Tcp(from)),
            Err(error) => {
                if warned.is_none_or(|at| at.elapsed() >= WARN_AGAIN) {
                    warned = Some(Instant::now());
                    tracing::warn!(%error, "a connection could not be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let answers = FromPeer { answers: answers.clone(), peer };
        let (terms, open) = (terms.clone(), open.clone());
        tokio::spawn(async move {
            connection::serve(socket, tls, answers, terms).await;
            drop(open);
        });
    }
    if let Listener::Unix(_, path) = &listener {
        let _ = std::fs::remove_file(path);
    }
}

enum Accepted {
    Tcp(TcpStream, SocketAddr, Option<Arc<ServerConfig>>),
    Unix(UnixStream),
    Link(Box<dyn Link>, SocketAddr),
}

/// A connection, and the right to hold it: without one nothing is accepted, and who connects waits in the backlog.
async fn permitted(
    permits: &Arc<Semaphore>,
    listener: &Listener,
) -> (Option<OwnedSemaphorePermit>, std::io::Result<Accepted>) {
    let permit = permits.clone().acquire_owned().await.ok();
    (permit, accept(listener).await)
}

async fn accept(listener: &Listener) -> std::io::Result<Accepted> {
    match listener {
        Listener::Tcp(listener, tls) => {
            let (stream, peer) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
            let socket = socket2::SockRef::from(&stream);
            socket.set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_PROBES))?;
            #[cfg(target_os = "linux")]
            socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
            Ok(Accepted::Tcp(stream, peer, tls.clone()))
        }
        Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
        Listener::Links(links, from) => match links.lock().await.recv().await {
            Some(link) => Ok(Accepted::Link(link, *from)),
            // Nobody brings any more; the loop ends when it is told to.
            None => std::future::pending().await,
        },
    }
}
