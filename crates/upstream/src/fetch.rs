//! Fetching what a client's URL names, for an upstream that takes bytes only, without ever becoming the client's way into
//! the network around us.
//!
//! Each hop is taken apart strictly, its name is resolved once, every address of it is judged, and one of those very
//! addresses is dialled: there is no second look-up that could answer otherwise. A redirect is a hop like the first. No
//! cookie, credential or proxy takes part.

mod address;
mod location;
mod media;
mod places;
#[cfg(test)]
mod tests;

use crate::target::Host;
use crate::{classify, tls};
use address::{inner_name, special};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use location::Location;
use places::Places;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use turnkeep_engine::ports::{Fetch, FetchError, Fetched};

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 3;
/// Addresses of one name that are looked at; a name with more is refused.
const MAX_ADDRESSES: usize = 32;
/// Headers of one answer, and the bytes of its head.
const MAX_HEADERS: usize = 100;
const MAX_HEAD: usize = 64 << 10;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("turnkeep/", env!("CARGO_PKG_VERSION")));
const ACCEPT: HeaderValue = HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp, application/pdf");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// What bounds the fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSpec {
    /// Places that may be fetched from though they are not public, or not on port 80 or 443.
    pub allow: Vec<Allowed>,
    /// Bytes of one content, at most.
    pub max_bytes: usize,
    /// All hops of one fetch together, waiting for its turn included.
    pub timeout: Duration,
    /// Fetches at once; at least 1. One caller has half of them at most.
    pub at_once: usize,
    /// Extra roots in PEM, beside the platform's.
    pub ca_pem: Option<Vec<u8>>,
    /// Refuse every other address, allowed or not: for tests and for a machine that must stay silent.
    pub loopback_only: bool,
}

impl Default for FetchSpec {
    /// Nothing allowed beside public hosts, 20 MiB, 10 s, 16 at once.
    fn default() -> Self {
        FetchSpec {
            allow: Vec::new(),
            max_bytes: 20 << 20,
            timeout: Duration::from_secs(10),
            at_once: 16,
            ca_pem: None,
            loopback_only: false,
        }
    }
}

/// A place that the operator allows: a host, by name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    host: Host,
    port: u16,
}

impl Allowed {
    /// `HOST:PORT`, as in `127.0.0.1:8080`, `[::1]:8080` or `files.example.com:8443`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Allowed, String> {
        let wrong = || format!("{text:?} is no place; write HOST:PORT, as in \"127.0.0.1:8080\" or \"[::1]:8080\"");
        // Only what is nothing but a host and a port.
        let named = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if !named || text.contains(['/', '?', '#', '@']) {
            return Err(wrong());
        }
        let location = Location::parse(&format!("http://{text}")).map_err(|_| wrong())?;
        Ok(Allowed { host: location.host, port: location.port })
    }
}

/// Finds the addresses of a name. Asked once for each hop.
trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The system's own.
struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // The dot keeps the machine's search domains out.
            let found = tokio::net::lookup_host((format!("{name}."), 0)).await?;
            Ok(found.map(|address| address.ip()).take(MAX_ADDRESSES + 1).collect())
        })
    }
}

/// Fetches over the network.
pub struct Fetcher {
    spec: FetchSpec,
    /// Made for the first `https` URL: a machine without roots may serve all the same. Or what is wrong with the roots.
    tls: OnceLock<Result<TlsConnector, String>>,
    resolver: Box<dyn Resolve>,
    places: Places,
}

/// What one hop came to.
enum Hop {
    Done(Fetched),
    Redirect(Location),
}

impl Fetcher {
    /// A fetcher; opens nothing.
    pub fn new(spec: FetchSpec) -> Fetcher {
        Fetcher::over(spec, Box::new(System))
    }

    fn over(spec: FetchSpec, resolver: Box<dyn Resolve>) -> Fetcher {
        let places = Places::new(spec.at_once);
        Fetcher { tls: OnceLock::new(), resolver, places, spec }
    }

    fn tls(&self) -> Result<&TlsConnector, FetchError> {
        let made = self.tls.get_or_init(|| {
            let mut config = ClientConfig::clone(&*tls::config(self.spec.ca_pem.as_deref(), false)?);
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(TlsConnector::from(Arc::new(config)))
        });
        made.as_ref().map_err(|why| failed(format!("this gateway has no roots to trust: {why}")))
    }

    async fn hops(&self, url: &str, deadline: Instant) -> Result<Fetched, FetchError> {
        let mut location = Location::parse(url).map_err(refused)?;
        for _ in 0..=MAX_REDIRECTS {
            match self.hop(&location, deadline).await.map_err(|error| at(&location.host, error))? {
                Hop::Done(fetched) => return Ok(fetched),
                Hop::Redirect(next) => location = next,
            }
        }
        Err(at(&location.host, failed(format!("more than {MAX_REDIRECTS} redirects"))))
    }

    async fn hop(&self, location: &Location, deadline: Instant) -> Result<Hop, FetchError> {
        let addresses = self.addresses(location).await?;
        let stream = dial(&addresses, deadline).await?;
        if !location.tls {
            return self.exchange(stream, location).await;
        }
        let name = match &location.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| refused("the host is not a host"))?,
            Host::Address(address) => ServerName::from(*address),
        };
        let connecting = self.tls()?.connect(name, stream).await;
        let stream =
            connecting.map_err(|error| failed(format!("the TLS handshake: {}", classify::describe(&error))))?;
        self.exchange(stream, location).await
    }

    /// The addresses that may be dialled: all that the host has, each of them judged.
    async fn addresses(&self, location: &Location) -> Result<Vec<SocketAddr>, FetchError> {
        let Location { host, port, .. } = location;
        let allowed = self.spec.allow.iter().any(|place| place.host == *host && place.port == *port);
        if !allowed && !matches!(port, 80 | 443) {
            return Err(refused(format!("port {port}: only 80 and 443 are fetched from")));
        }
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) if !allowed && inner_name(name) => {
                return Err(refused("the name is one of a private network"));
            }
            Host::Name(name) => {
                let found = self.resolver.resolve(name).await;
                found.map_err(|error| failed(format!("the name was not found: {}", classify::describe(&error))))?
            }
        };
        if found.is_empty() || found.len() > MAX_ADDRESSES {
            return Err(failed(format!("the name has {} addresses", found.len())));
        }
        for address in &found {
            if self.spec.loopback_only && !address.to_canonical().is_loopback() {
                return Err(refused(format!("{address}: only loopback addresses are allowed here")));
            }
            if let (false, Some(what)) = (allowed, special(*address)) {
                return Err(refused(format!("it is {what}, and only public hosts are fetched from")));
            }
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, *port)).collect())
    }

    async fn exchange<T>(&self, stream: T, location: &Location) -> Result<Hop, FetchError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let broke = |error: hyper::Error| failed(format!("the connection: {}", classify::describe(&error)));
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broke)?;
        let _running = Running(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a fetch's connection ended");
            }
        }));
        let response = sender.send_request(request(location)?).await.map_err(broke)?;
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::OK => self.content(&head.headers, body).await.map(Hop::Done),
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                let to = head.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
                let next = location.follow(to.ok_or_else(|| failed("a redirect to nowhere"))?);
                let next = next.map_err(|why| refused(format!("a redirect: {why}")))?;
                if location.tls && !next.tls {
                    return Err(refused("a redirect from https to http"));
                }
                Ok(Hop::Redirect(next))
            }
            status => Err(failed(format!("it answered {}", status.as_u16()))),
        }
    }

    /// Reads the content to its end, within its bound, and holds it to what it is said to be.
    async fn content(&self, headers: &HeaderMap, mut body: Incoming) -> Result<Fetched, FetchError> {
        let coded = headers.get_all(header::CONTENT_ENCODING).iter();
        if coded.into_iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(failed("it came compressed, which was not asked for"));
        }
        let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some(declared) = media::declared(kind) else {
            let shown: String = kind.chars().take(60).collect();
            let takes = "PNG, JPEG, GIF, WebP and PDF are taken";
            return Err(failed(format!("its content-type is {shown:?}; {takes}")));
        };
        let most = self.spec.max_bytes;
        let too_long = || failed(format!("it is longer than {most} bytes"));
        if body.size_hint().lower() > most as u64 {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failed(format!("it broke off: {}", classify::describe(&error))))?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > most.saturating_sub(bytes.len()) {
                return Err(too_long());
            }
            bytes.extend_from_slice(&data);
        }
        match media::sniffed(&bytes) {
            Some(kind) if kind == declared => {}
            Some(kind) => return Err(failed(format!("it is called {declared} and is {kind}"))),
            None => return Err(failed(format!("it is called {declared} and does not begin as one"))),
        }
        Ok(Fetched { media_type: declared, bytes: bytes.len() as u64, base64: STANDARD.encode(&bytes).into() })
    }
}

impl Fetch for Fetcher {
    fn fetch<'a>(&'a self, caller: &'a str, url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(async move {
            let deadline = Instant::now() + self.spec.timeout;
            let whole = async {
                let _place = self.places.take(caller).await.ok_or_else(|| failed("the gateway is stopping"))?;
                self.hops(url, deadline).await
            };
            let late = || Err(failed(format!("it took longer than {} s", self.spec.timeout.as_secs_f32())));
            timeout(self.spec.timeout, whole).await.unwrap_or_else(|_| late())
        })
    }
}

/// A connection's task, which ends with the exchange.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tries one address after the other, each for its share of the time.
async fn dial(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, FetchError> {
    let mut last = failed("it has no address");
    for (at, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = failed(format!("connecting: {}", classify::describe(&error))),
            Err(_) => last = failed("connecting took too long"),
        }
    }
    Err(last)
}

fn request(location: &Location) -> Result<Request<Empty<Bytes>>, FetchError> {
    let host = HeaderValue::try_from(location.host_header()).map_err(|_| refused("the host is not a host"))?;
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = http::Uri::from(location.target.clone());
    let headers = request.headers_mut();
    headers.insert(header::HOST, host);
    headers.insert(header::USER_AGENT, AGENT);
    headers.insert(header::ACCEPT, ACCEPT);
    headers.insert(header::ACCEPT_ENCODING, IDENTITY);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

fn failed(why: impl Into<String>) -> FetchError {
    FetchError { why: why.into(), refused: false }
}

fn refused(why: impl Into<String>) -> FetchError {
    FetchError { why: why.into(), refused: true }
}

/// Names the host, and nothing else of the URL.
fn at(host: &Host, error: FetchError) -> FetchError {
    FetchError { why: format!("{host}: {}", error.why), ..error }
}
