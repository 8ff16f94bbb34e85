//! Ways into the gateway beside plain HTTP/1.1: TLS with a certificate made for the test, and HTTP/2.

use super::client::Client;
use super::world::{Plan, World};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate for the gateway, in files.
pub struct Certificate {
    folder: TempDir,
    config: rustls::ClientConfig,
}

impl Certificate {
    pub fn new() -> Certificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        Certificate { folder, config }
    }

    /// The line for `[server]`.
    pub fn server_line(&self) -> String {
        let at = self.folder.path().display();
        format!("tls = {{ cert = \"{at}/cert.pem\", key = \"{at}/key.pem\" }}")
    }

    /// Connects and speaks TLS, offering these protocols.
    pub async fn connect(&self, addr: SocketAddr, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        self.over(TcpStream::connect(addr).await.unwrap(), protocols).await
    }

    /// Speaks TLS over a connection, offering these protocols.
    pub async fn over(&self, tcp: TcpStream, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut config = self.config.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }
}

/// A gateway and how its clients reach it. With TLS on its TCP listener, its counters are read over a Unix socket.
pub struct Served {
    pub world: World,
    pub certificate: Option<Certificate>,
}

/// Starts a gateway whose clients speak TLS, or do not.
pub async fn served(mut plan: Plan, tls: bool) -> Served {
    let certificate = tls.then(Certificate::new);
    if let Some(certificate) = &certificate {
        plan.server += &certificate.server_line();
        plan.unix_too = true;
    }
    Served { world: World::of(&plan).await, certificate }
}

impl Served {
    pub async fn client(&self) -> Client {
        match &self.certificate {
            None => self.world.client().await,
            Some(certificate) => {
                let stream = certificate.connect(self.world.addr(), &[b"http/1.1"]).await;
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
                Client::tls(stream)
            }
        }
    }
}

/// An HTTP/2 client by prior knowledge.
pub async fn h2_client(addr: SocketAddr) -> SendRequest<Full<Bytes>> {
    h2_over(TcpStream::connect(addr).await.unwrap()).await
}

/// An HTTP/2 client over a stream.
pub async fn h2_over<S>(stream: S) -> SendRequest<Full<Bytes>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}
