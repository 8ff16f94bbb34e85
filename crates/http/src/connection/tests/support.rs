//! A server of one connection, the turns that it is asked for, and clients.

use crate::client_body::ClientBody;
use crate::connection::deliveries::Deliveries;
use crate::connection::{Answers, Socket, Terms, serve_tracked};
use crate::receipts::{Delivery, Receipts};
use crate::reply_body::ReplyBody;
use crate::tls::tls_config;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use turnkeep_base::receipt::{Level, Mint};
use turnkeep_base::{Receipt, TurnId};
use turnkeep_engine::pipe::{Gone, ReplyHead, ReplyWriter, reply_pipe};

/// After this a test has failed; nothing waits for it otherwise.
const TOO_LONG: Duration = Duration::from_secs(20);

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TOO_LONG, future).await.expect("it happens")
}

/// Until something that nobody tells of holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A turn, as its engine holds it.
#[derive(Debug)]
pub struct Turn {
    pub path: String,
    pub writer: ReplyWriter,
}

impl Turn {
    /// A stream.
    pub fn open(&mut self) {
        self.head(None);
    }

    pub fn head(&mut self, length: Option<u64>) {
        self.writer.head(ReplyHead { status: StatusCode::OK, headers: HeaderMap::new(), length });
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.writer.push(Bytes::copy_from_slice(bytes));
    }

    /// A whole streamed reply.
    pub fn reply(&mut self, bytes: &[u8]) {
        self.open();
        self.push(bytes);
        self.writer.end();
    }

    pub async fn outcome(&mut self) -> Result<Level, Gone> {
        let receipt: Result<Receipt, Gone> = soon(poll_fn(|cx| self.writer.poll_receipt(cx))).await;
        receipt.map(|receipt| receipt.level())
    }

    pub async fn gone(&mut self) {
        soon(poll_fn(|cx| self.writer.poll_gone(cx))).await;
    }

    pub async fn taken(&self) {
        until(|| self.writer.is_taken()).await;
    }
}

#[derive(Clone)]
struct Lab {
    turns: mpsc::Sender<Turn>,
    next: Arc<AtomicU64>,
    receipts: Receipts,
}

impl Answers for Lab {
    async fn answer(self, request: Request<ClientBody>) -> Response<ReplyBody> {
        let path = request.uri().path().to_owned();
        if path == "/whole" {
            return Response::new(ReplyBody::whole("whole"));
        }
        let id = TurnId::new(1, self.next.fetch_add(1, Ordering::Relaxed).into());
        let (writer, mut reader) = reply_pipe(id);
        self.turns.send(Turn { path, writer }).await.expect("the test lives");
        let head = poll_fn(|cx| reader.poll_head(cx)).await.expect("the turn has a head");
        let mut response =
            Response::new(ReplyBody::Turn { reader, left: head.length, receipts: self.receipts.clone() });
        *response.status_mut() = head.status;
        response
    }
}

/// What the kernel holds for the server's side and for the client's, in bytes; `None`: its own choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub send: Option<u32>,
    pub receive: Option<u32>,
}

/// The kernel takes whole replies, and the client's side only little of them.
pub const HELD: Buffers = Buffers { send: Some(4 << 20), receive: Some(4 << 10) };
/// Neither side takes much.
pub const SMALL: Buffers = Buffers { send: Some(4 << 10), receive: Some(4 << 10) };

pub struct Server {
    pub deliveries: Arc<Deliveries>,
    turns: mpsc::Receiver<Turn>,
    pub stop: watch::Sender<bool>,
    pub served: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn turn(&mut self) -> Turn {
        soon(self.turns.recv()).await.expect("the server lives")
    }

    /// Until the kernel has this many replies whole that the peer has not.
    pub async fn held(&self, replies: usize) {
        until(|| self.deliveries.waiting() == replies).await;
    }

    pub fn over(socket: Arc<Socket>, tls: Option<Arc<rustls::ServerConfig>>, delivery: Delivery) -> Server {
        let (sender, turns) = mpsc::channel(8);
        let receipts = Receipts::new(Mint::for_the_wiring());
        let lab = Lab { turns: sender, next: Arc::new(AtomicU64::new(1)), receipts };
        let (stop, stopped) = watch::channel(false);
        let terms = Terms { header_wait: Duration::from_secs(30), delivery, stop: stopped };
        let deliveries = Deliveries::new(socket.clone(), delivery);
        let served = tokio::spawn(serve_tracked(socket, deliveries.clone(), tls, lab, terms));
        Server { deliveries, turns, stop, served }
    }
}

/// Two ends of a TCP connection: the server's, the client's.
pub async fn pair(buffers: Buffers) -> (TcpStream, TcpStream) {
    let listening = TcpSocket::new_v4().unwrap();
    if let Some(send) = buffers.send {
        listening.set_send_buffer_size(send).unwrap();
    }
    listening.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener: TcpListener = listening.listen(1).unwrap();
    let connecting = TcpSocket::new_v4().unwrap();
    if let Some(receive) = buffers.receive {
        connecting.set_recv_buffer_size(receive).unwrap();
    }
    let client = connecting.connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    server.set_nodelay(true).unwrap();
    (server, client)
}

pub async fn plain_under(delivery: Delivery, buffers: Buffers) -> (Server, TcpStream) {
    let (server, client) = pair(buffers).await;
    (Server::over(Socket::tcp(server, None), None, delivery), client)
}

pub async fn plain(buffers: Buffers) -> (Server, TcpStream) {
    plain_under(Delivery::Acked, buffers).await
}

/// A server with a certificate, and a client that trusts it and offers one protocol.
pub async fn tls(buffers: Buffers, alpn: &[u8]) -> (Server, TlsStream<TcpStream>) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let own = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let name = format!("turnkeep-http-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let config = tls_config(&cert, &key).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut trusting = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    trusting.alpn_protocols = vec![alpn.to_vec()];

    let (server, client) = pair(buffers).await;
    let server = Server::over(Socket::tcp(server, None), Some(config), Delivery::Acked);
    let name = ServerName::try_from("localhost").unwrap();
    let client = soon(TlsConnector::from(Arc::new(trusting)).connect(name, client)).await.unwrap();
    (server, client)
}

/// Closes with a reset, at once.
pub fn reset(client: TcpStream) {
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
}

/// Reads up to and with some bytes.
pub async fn read_to(client: &mut (impl AsyncRead + Unpin), end: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    soon(async {
        while !read.ends_with(end) {
            read.push(client.read_u8().await.expect("more comes"));
        }
    })
    .await;
    read
}
