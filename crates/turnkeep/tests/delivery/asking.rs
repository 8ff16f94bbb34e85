//! One request on a connection of its own, over each transport, whose socket the test holds: it can stop reading, close,
//! reset the connection, or on HTTP/2 reset the stream alone.

use crate::support::client::Client;
use crate::support::dialects::body_of;
use crate::support::listen::Served;
use crate::support::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

/// How a client's bytes reach the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Http1,
    Http1Tls,
    /// HTTP/2 by prior knowledge.
    H2c,
    /// HTTP/2 by ALPN.
    H2Tls,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Http1, Way::Http1Tls, Way::H2c, Way::H2Tls];

    pub fn is_tls(self) -> bool {
        matches!(self, Way::Http1Tls | Way::H2Tls)
    }

    pub fn is_http2(self) -> bool {
        matches!(self, Way::H2c | Way::H2Tls)
    }

    /// Every way out that it knows.
    pub fn exits(self) -> Vec<Exit> {
        let all = [Exit::Close, Exit::Reset, Exit::Stream];
        all.into_iter().filter(|exit| self.is_http2() || *exit != Exit::Stream).collect()
    }
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It closes its socket. With bytes that it has not read, the system makes that a reset.
    Close,
    /// A TCP reset.
    Reset,
    /// HTTP/2: the stream alone is reset.
    Stream,
}

/// What a client takes of the reply before it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Everything,
    /// Only what its small socket holds.
    Little,
}

/// Bytes that the socket of a client takes that reads nothing; the kernel makes of it what it will, less than 256 KiB.
const LITTLE: u32 = 32 << 10;

/// A request, and its connection.
pub struct Asking {
    kind: Kind,
    /// A second handle on the connection's socket.
    socket: socket2::Socket,
}

enum Kind {
    One(Client),
    Two(Two),
}

struct Two {
    sender: SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
    valve: Valve,
    coming: Option<JoinHandle<http::Response<Incoming>>>,
}

impl Asking {
    /// A connection.
    pub async fn connect(served: &Served, way: Way, takes: Takes) -> Asking {
        let connecting = TcpSocket::new_v4().unwrap();
        if takes == Takes::Little {
            connecting.set_recv_buffer_size(LITTLE).unwrap();
        }
        let tcp = connecting.connect(served.world.addr()).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let socket = socket2::SockRef::from(&tcp).try_clone().unwrap();
        let valve = Valve::default();
        if takes == Takes::Little {
            valve.shut();
        }
        let kind = match (way, &served.certificate) {
            (Way::Http1, _) => Kind::One(Client::plain(tcp)),
            (Way::Http1Tls, Some(certificate)) => Kind::One(Client::tls(certificate.over(tcp, &[b"http/1.1"]).await)),
            (Way::H2c, _) => Kind::Two(Two::over(TokioIo::new(tcp), valve).await),
            (Way::H2Tls, Some(certificate)) => {
                let stream = certificate.over(tcp, &[b"h2"]).await;
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                Kind::Two(Two::over(TokioIo::new(stream), valve).await)
            }
            (Way::Http1Tls | Way::H2Tls, None) => panic!("the gateway speaks no TLS"),
        };
        Asking { kind, socket }
    }

    /// Sends a turn.
    pub async fn ask(&mut self, pair: Pair, headers: &[(&str, &str)], body: &str) {
        match &mut self.kind {
            Kind::One(client) => client.ask_with(pair, headers, body.as_bytes()).await,
            Kind::Two(two) => two.ask(pair, headers, body),
        }
    }

    /// Reads the whole reply.
    pub async fn reply(&mut self) -> Reply {
        match &mut self.kind {
            Kind::One(client) => client.reply().await,
            Kind::Two(two) => {
                two.valve.open();
                soon(two.reply()).await
            }
        }
    }

    /// HTTP/2: puts the reply that comes aside, its head read and its body not. Dropped, its stream is reset.
    pub async fn aside(&mut self) -> http::Response<Incoming> {
        match &mut self.kind {
            Kind::One(_) => panic!("HTTP/1.1"),
            Kind::Two(two) => soon(two.coming.take().expect("it was asked")).await.unwrap(),
        }
    }

    /// HTTP/1.1: its client.
    pub fn client(&mut self) -> &mut Client {
        match &mut self.kind {
            Kind::One(client) => client,
            Kind::Two(_) => panic!("HTTP/2"),
        }
    }

    /// Closes this side of the TCP connection and goes on holding it.
    pub fn fin(&self) {
        self.socket.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Leaves. What is given back keeps the connection, where only the stream is reset.
    pub async fn leave(self, exit: Exit) -> Option<Asking> {
        let Asking { kind, socket } = self;
        if exit == Exit::Reset {
            socket.set_linger(Some(Duration::ZERO)).unwrap();
        }
        match kind {
            Kind::One(client) => drop(client),
            Kind::Two(mut two) => {
                if let Some(coming) = two.coming.take() {
                    coming.abort();
                    drop(coming.await);
                }
                if exit == Exit::Stream {
                    return Some(Asking { kind: Kind::Two(two), socket });
                }
                two.connection.abort();
                let _ = two.connection.await;
            }
        }
        None
    }
}

impl Two {
    async fn over<I>(io: TokioIo<I>, valve: Valve) -> Two
    where
        I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let io = Valved { io, valve: valve.clone() };
        let mut builder = Builder::new(TokioExecutor::new());
        // More than the answers that are meant to leave the gateway whole, less than those that are not.
        builder.initial_stream_window_size(2 << 20).initial_connection_window_size(5 << 20);
        let (sender, connection) = builder.handshake(io).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Two { sender, connection, valve, coming: None }
    }

    fn ask(&mut self, pair: Pair, headers: &[(&str, &str)], body: &str) {
        let body = match pair.client {
            Dialect::Gemini => body_of(pair, serde_json::from_str(body).unwrap()),
            Dialect::Chat | Dialect::Responses | Dialect::Messages => body.to_owned(),
        };
        let mut request = http::Request::post(format!("http://gateway{}", pair.path()))
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", format!("Bearer {KEY}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = self.sender.send_request(request.body(Full::from(body)).unwrap());
        self.coming = Some(tokio::spawn(async move { reply.await.unwrap() }));
    }

    async fn reply(&mut self) -> Reply {
        let (head, body) = self.coming.take().expect("it was asked").await.unwrap().into_parts();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let headers = headers.collect();
        Reply { status: head.status.as_u16(), headers, body: body.collect().await.unwrap().to_bytes().to_vec() }
    }
}

/// Stops a connection's reading, so that what comes stays in the socket.
#[derive(Clone, Default)]
struct Valve(Arc<Mutex<(bool, Option<Waker>)>>);

impl Valve {
    fn shut(&self) {
        self.0.lock().0 = true;
    }

    fn open(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.0 = false;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct Valved<I> {
    io: TokioIo<I>,
    valve: Valve,
}

impl<I: tokio::io::AsyncRead + Unpin> Read for Valved<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut state = self.valve.0.lock();
        if state.0 {
            state.1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<I: tokio::io::AsyncWrite + Unpin> Write for Valved<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
