//! The connections of one account at one endpoint, and how one of them is lent for one exchange.
//!
//! HTTP/1: a connection serves one exchange and comes back when the answer was read to its end; a lease that is dropped
//! before closes it at once. HTTP/2: connections are shared up to a number of streams. Nothing here knows what is sent.

use crate::line::{Line, LineState};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

/// Idle HTTP/1 connections kept for one account.
const MAX_IDLE: usize = 256;
/// An idle connection older than this is not used again: the other side, or a middlebox, has likely forgotten it.
pub(crate) const MAX_IDLE_AGE: Duration = Duration::from_secs(60);
/// Streams of one HTTP/2 connection; the peer may allow fewer.
const MAX_STREAMS: usize = 100;
/// How long a connection that came back may take to finish its last exchange (its task runs beside us) before another
/// one is opened instead.
const SETTLE: Duration = Duration::from_millis(20);
/// Headers of one answer over HTTP/1, and the bytes of its head (one read more may be taken before it is found too long).
const MAX_HEADERS: usize = 128;
const MAX_HEAD: usize = 256 << 10;
/// Bytes of the headers of one answer over HTTP/2.
const MAX_HEADER_LIST: u32 = 64 << 10;
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WAIT: Duration = Duration::from_secs(10);

/// A request, whole.
pub(crate) type Outgoing = Request<Full<Bytes>>;

/// A place among an account's connections; given up when the connection's task ends.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which HTTP version the endpoint was last seen to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

/// The pool of one account.
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Held while a connection is opened that others may want to share.
    pub(crate) opening: tokio::sync::Mutex<()>,
    open: Arc<AtomicUsize>,
    limit: usize,
}

#[derive(Default)]
struct State {
    idle: VecDeque<Http1>,
    shared: Vec<Http2>,
    next_id: u64,
    speaks: Option<Speaks>,
}

struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    task: AbortHandle,
    line: Arc<LineState>,
    idle_since: Instant,
}

struct Http2 {
    id: u64,
    sender: http2::SendRequest<Full<Bytes>>,
    line: Arc<LineState>,
    streams: usize,
    /// Streams that the peer allows.
    allowed: Arc<AtomicUsize>,
    idle_since: Instant,
}

/// A connection lent for one exchange.
pub(crate) enum Lease {
    Http1(Http1Lease),
    Http2(Http2Lease),
}

/// Dropped before [`Lease::finish`], it closes its connection at once.
pub(crate) struct Http1Lease {
    connection: Option<Http1>,
    pool: Arc<Pool>,
}

/// One stream of a shared connection. The stream itself ends with its response.
pub(crate) struct Http2Lease {
    id: u64,
    sender: http2::SendRequest<Full<Bytes>>,
    line: Arc<LineState>,
    pool: Arc<Pool>,
}

/// An exchange that failed before its answer's head.
pub(crate) struct SendFailure {
    pub(crate) error: Option<hyper::Error>,
    /// The request, if it certainly was not sent.
    pub(crate) returned: Option<Box<Outgoing>>,
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Arc<Pool> {
        Arc::new(Pool {
            state: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            open: Arc::default(),
            limit: limit.max(1),
        })
    }

    /// Connections that wait for work: HTTP/1 ones, and HTTP/2 ones without a stream.
    pub(crate) fn idle(&self) -> usize {
        let state = self.state.lock();
        let http1 = state.idle.iter().filter(|connection| !connection.sender.is_closed()).count();
        let http2 = state.shared.iter().filter(|c| c.streams == 0 && !c.sender.is_closed()).count();
        http1 + http2
    }

    /// Connections open or being opened.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Closes what is idle.
    pub(crate) fn close_idle(&self) {
        let mut state = self.state.lock();
        let idle = std::mem::take(&mut state.idle);
        state.shared.retain(|connection| connection.streams > 0);
        drop(state);
        drop(idle);
    }

    pub(crate) fn speaks(&self) -> Option<Speaks> {
        self.state.lock().speaks
    }

    /// A place for one more connection; `None` when the account has as many as it may.
    pub(crate) fn place(&self) -> Option<Place> {
        let more = |open| (open < self.limit).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Place(Arc::clone(&self.open)))
    }

    /// Lends a connection that stands already and has not waited for work longer than `idle`.
    pub(crate) async fn reuse(self: &Arc<Self>, idle: Duration) -> Option<Lease> {
        loop {
            let mut lease = match self.take(idle)? {
                lease @ Lease::Http2(_) => return Some(lease),
                Lease::Http1(lease) => lease,
            };
            let Some(connection) = &mut lease.connection else { continue };
            if connection.sender.is_ready() {
                return Some(Lease::Http1(lease));
            }
            // The task that drives it has not come round to its end yet, or never will (it still writes a request that
            // was answered early).
            if let Ok(Ok(())) = timeout(SETTLE, connection.sender.ready()).await {
                return Some(Lease::Http1(lease));
            }
        }
    }

    fn take(self: &Arc<Self>, idle: Duration) -> Option<Lease> {
        let mut state = self.state.lock();
        while let Some(last) = state.idle.back() {
            let (waited, closed) = (last.idle_since.elapsed(), last.sender.is_closed());
            if !closed && waited < MAX_IDLE_AGE && waited >= idle {
                // Too old for this exchange and not for others; those before it are older.
                break;
            }
            let connection = state.idle.pop_back();
            if !closed && waited < MAX_IDLE_AGE && connection.is_some() {
                return Some(Lease::Http1(Http1Lease { connection, pool: Arc::clone(self) }));
            }
        }
        if state.shared.is_empty() {
            return None;
        }
        state.shared.retain(|connection| {
            !connection.sender.is_closed() && (connection.streams > 0 || connection.idle_since.elapsed() < MAX_IDLE_AGE)
        });
        let free = |connection: &&mut Http2| {
            connection.streams < MAX_STREAMS.min(connection.allowed.load(Ordering::Relaxed))
                && (connection.streams > 0 || connection.idle_since.elapsed() < idle)
        };
        let connection = state.shared.iter_mut().find(free)?;
        connection.streams += 1;
        Some(Lease::Http2(connection.lease(self)))
    }

    /// Starts HTTP/1 on a transport and lends the connection.
    pub(crate) async fn open_http1<T>(
        self: &Arc<Self>,
        io: T,
        place: Place,
        line: Arc<LineState>,
    ) -> hyper::Result<Lease>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let io = TokioIo::new(Line::new(io, Arc::clone(&line)));
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
        let (sender, connection) = builder.handshake(io).await?;
        let task = run(connection, place);
        self.state.lock().speaks = Some(Speaks::Http1);
        let connection = Http1 { sender, task, line, idle_since: Instant::now() };
        Ok(Lease::Http1(Http1Lease { connection: Some(connection), pool: Arc::clone(self) }))
    }

    /// Starts HTTP/2 on a transport, lends one stream of it and shares the rest.
    pub(crate) async fn open_http2<T>(
        self: &Arc<Self>,
        io: T,
        place: Place,
        line: Arc<LineState>,
    ) -> hyper::Result<Lease>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let io = TokioIo::new(Line::new(io, Arc::clone(&line)));
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .max_header_list_size(MAX_HEADER_LIST)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WAIT)
            .keep_alive_while_idle(false);
        let (sender, connection) = builder.handshake(io).await?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let told = Arc::clone(&allowed);
        let mut connection = Box::pin(connection);
        // The peer's limit comes with its settings, and may change.
        let watched = std::future::poll_fn(move |cx| {
            let polled = connection.as_mut().poll(cx);
            told.store(connection.current_max_send_streams(), Ordering::Relaxed);
            polled
        });
        run(watched, place);
        let mut state = self.state.lock();
        state.speaks = Some(Speaks::Http2);
        state.next_id += 1;
        let connection = Http2 { id: state.next_id, sender, line, streams: 1, allowed, idle_since: Instant::now() };
        let lease = connection.lease(self);
        state.shared.push(connection);
        Ok(Lease::Http2(lease))
    }

    fn give_back(&self, mut connection: Http1) {
        if connection.sender.is_closed() {
            return;
        }
        connection.idle_since = Instant::now();
        let mut dropped = Vec::new();
        let mut state = self.state.lock();
        state.idle.push_back(connection);
        while state.idle.len() > MAX_IDLE
            || state.idle.front().is_some_and(|old| old.idle_since.elapsed() > MAX_IDLE_AGE)
        {
            dropped.extend(state.idle.pop_front());
        }
        // Dropped after the lock: it wakes their tasks.
        drop(state);
    }
}

impl Http2 {
    fn lease(&self, pool: &Arc<Pool>) -> Http2Lease {
        Http2Lease { id: self.id, sender: self.sender.clone(), line: Arc::clone(&self.line), pool: Arc::clone(pool) }
    }
}

impl Drop for Http1Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.task.abort();
        }
    }
}

impl Drop for Http2Lease {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if let Some(connection) = state.shared.iter_mut().find(|connection| connection.id == self.id) {
            connection.streams -= 1;
            connection.idle_since = Instant::now();
        }
    }
}

impl Lease {
    /// Sends a request and waits for the answer's head.
    pub(crate) async fn send(&mut self, request: Outgoing) -> Result<Response<Incoming>, SendFailure> {
        let sent = match self {
            Lease::Http1(lease) => match &mut lease.connection {
                Some(connection) => {
                    connection.line.begin();
                    connection.sender.try_send_request(request).await
                }
                None => return Err(SendFailure { error: None, returned: Some(Box::new(request)) }),
            },
            Lease::Http2(lease) => lease.sender.try_send_request(request).await,
        };
        sent.map_err(|mut failed| {
            let returned = failed.take_message().map(Box::new);
            SendFailure { error: Some(failed.into_error()), returned }
        })
    }

    /// What was seen on the wire.
    pub(crate) fn line(&self) -> Option<&Arc<LineState>> {
        match self {
            Lease::Http1(lease) => lease.connection.as_ref().map(|connection| &connection.line),
            Lease::Http2(lease) => Some(&lease.line),
        }
    }

    /// Whether a byte of an answer may have come. On HTTP/2 the bytes belong to many: there an answer's head is the
    /// first of it.
    pub(crate) fn heard(&self) -> bool {
        match self {
            Lease::Http1(lease) => lease.connection.as_ref().is_some_and(|connection| connection.line.heard()),
            Lease::Http2(_) => false,
        }
    }

    /// The HTTP version that is spoken.
    pub(crate) fn speaks(&self) -> Speaks {
        match self {
            Lease::Http1(_) => Speaks::Http1,
            Lease::Http2(_) => Speaks::Http2,
        }
    }

    /// The answer was read to its end: the connection may serve the next.
    pub(crate) fn finish(self) {
        match self {
            Lease::Http1(mut lease) => {
                if let Some(connection) = lease.connection.take() {
                    lease.pool.give_back(connection);
                }
            }
            Lease::Http2(_) => {}
        }
    }
}

fn run(connection: impl Future<Output = hyper::Result<()>> + Send + 'static, place: Place) -> AbortHandle {
    let task = tokio::spawn(async move {
        let _place = place;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an upstream connection ended");
        }
    });
    task.abort_handle()
}
