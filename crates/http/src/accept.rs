//! The accept loop: TCP, TLS and Unix sockets, bounded connections, and an orderly end.

use crate::client_body::ClientBody;
use crate::service::Gateway;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// Between TCP keep-alive probes of a silent client, and how many may go unanswered.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 2;
/// Between HTTP/2 pings of a silent client.
const PING: Duration = Duration::from_secs(15);
/// HTTP/2 streams of one connection at once.
const STREAMS: u32 = 256;
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
        }
    }
}

/// Serves until `stop` turns true; then accepts nothing more, lets connections end as their turns do, and returns when
/// all have. The caller bounds that by stopping the engine.
pub async fn serve(gateway: Arc<Gateway>, listeners: Vec<Listener>, stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(gateway.limits.connections));
    let graceful = GracefulShutdown::new();
    let loops = listeners
        .into_iter()
        .map(|listener| accept_loop(listener, gateway.clone(), permits.clone(), stop.clone(), &graceful));
    futures_util::future::join_all(loops).await;
    graceful.shutdown().await;
}

async fn accept_loop(
    listener: Listener,
    gateway: Arc<Gateway>,
    permits: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
    graceful: &GracefulShutdown,
) {
    let header_wait = gateway.limits.header_wait;
    let mut warned: Option<Instant> = None;
    loop {
        let (permit, accepted) = tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => break,
            (Some(permit), accepted) = permitted(&permits, &listener) => (permit, accepted),
            else => break,
        };
        let watcher = graceful.watcher();
        let gateway = gateway.clone();
        match accepted {
            Ok(Accepted::Tcp(stream, peer, None)) => {
                tokio::spawn(async move {
                    connection(stream, Peer::Tcp(peer), gateway, watcher).await;
                    drop(permit);
                });
            }
            Ok(Accepted::Tcp(stream, peer, Some(tls))) => {
                tokio::spawn(async move {
                    let handshake = TlsAcceptor::from(tls).accept(stream);
                    match tokio::time::timeout(header_wait, handshake).await {
                        Ok(Ok(stream)) => connection(stream, Peer::Tcp(peer), gateway, watcher).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    }
                    drop(permit);
                });
            }
            Ok(Accepted::Unix(stream)) => {
                tokio::spawn(async move {
                    connection(stream, Peer::Unix, gateway, watcher).await;
                    drop(permit);
                });
            }
            Err(error) => {
                if warned.is_none_or(|at| at.elapsed() >= WARN_AGAIN) {
                    warned = Some(Instant::now());
                    tracing::warn!(%error, "a connection could not be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    if let Listener::Unix(_, path) = &listener {
        let _ = std::fs::remove_file(path);
    }
}

enum Accepted {
    Tcp(TcpStream, SocketAddr, Option<Arc<ServerConfig>>),
    Unix(tokio::net::UnixStream),
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
            socket.set_tcp_user_timeout(Some(KEEPALIVE * (KEEPALIVE_PROBES + 1)))?;
            Ok(Accepted::Tcp(stream, peer, tls.clone()))
        }
        Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
    }
}

async fn connection<I>(stream: I, peer: Peer, gateway: Arc<Gateway>, watcher: Watcher)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header_wait = gateway.limits.header_wait;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_wait).max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(64 << 10);
    let seen = Arc::new(AtomicBool::new(false));
    let saw = seen.clone();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        saw.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(peer.clone());
        let gateway = gateway.clone();
        async move { Ok::<_, Infallible>(gateway.answer(ClientBody::of(request)).await) }
    });
    let served = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    match until_silent(served, &seen, header_wait).await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "a client's connection ended"),
        None => tracing::debug!("a client sent no request in time"),
    }
}

/// Serves a connection; drops it, with `None`, when its first request's head has not come in time. The protocol's own
/// clocks do not see a client that says nothing at all: they start when the first bytes have told which protocol it is.
async fn until_silent<F: Future>(served: F, seen: &AtomicBool, wait: Duration) -> Option<F::Output> {
    let mut served = pin!(served);
    if let Ok(output) = tokio::time::timeout(wait, served.as_mut()).await {
        return Some(output);
    }
    if seen.load(Ordering::Relaxed) { Some(served.await) } else { None }
}
