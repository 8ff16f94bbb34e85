//! Making one connection: name, TCP, proxy, TLS, all on one clock. What is spoken on it is not known here, only which
//! HTTP version both sides agreed to.

use crate::classify;
use crate::dial::{Egress, Transport};
use crate::proxy::{self, Proxy, Speech};
use crate::socks;
use crate::target::{Host, Target};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use turnkeep_base::{Evidence, Fault, FaultKind};

/// A peer that vanished is noticed within about this time.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Makes connections to one target.
pub(crate) struct Connector {
    pub(crate) proxy: Option<Proxy>,
    /// The configuration and the name to verify, for `https` targets.
    pub(crate) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(crate) timeout: Duration,
    pub(crate) egress: Egress,
}

/// A connection, ready for HTTP.
pub(crate) enum Connected {
    Plain(Transport),
    /// And whether HTTP/2 was agreed.
    Tls(Box<TlsStream<Transport>>, bool),
}

/// Where the connecting stands, for the evidence when the clock fires.
#[derive(Default)]
struct Stage(AtomicU8);

const STAGES: [&str; 4] = ["resolving", "connecting to", "waiting for the proxy towards", "in the TLS handshake with"];

impl Stage {
    fn at(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    fn name(&self) -> &'static str {
        STAGES.get(usize::from(self.0.load(Ordering::Relaxed))).copied().unwrap_or("connecting to")
    }
}

impl Connector {
    /// For an `https` target, from its configuration; the error is about the host's name.
    pub(crate) fn tls_to(
        target: &Target,
        config: Arc<ClientConfig>,
    ) -> Result<(TlsConnector, ServerName<'static>), String> {
        let name = match &target.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| "the host is not a host".to_owned())?,
            Host::Address(address) => ServerName::from(*address),
        };
        Ok((TlsConnector::from(config), name))
    }

    /// Connects, within the connect clock that ends at `deadline`.
    pub(crate) async fn connect(&self, target: &Target, deadline: Instant) -> Result<Connected, Fault> {
        let stage = Stage::default();
        match timeout_at(deadline, self.steps(target, deadline, &stage)).await {
            Ok(connected) => connected,
            Err(_) => Err(classify::connect_clock(&target.host.to_string(), stage.name())),
        }
    }

    async fn steps(&self, target: &Target, deadline: Instant, stage: &Stage) -> Result<Connected, Fault> {
        let mut stream = match &self.proxy {
            None => self.dial(&target.host, target.port, deadline, stage).await?,
            Some(proxy) => self.dial(&proxy.host, proxy.port, deadline, stage).await.map_err(|mut fault| {
                fault.evidence = Evidence::text(format!("the proxy: {}", fault.evidence.detail));
                fault
            })?,
        };
        if let Some(proxy) = &self.proxy {
            stage.at(2);
            match proxy.speech {
                Speech::Http if target.tls => proxy::tunnel(&mut stream, proxy, &target.host, target.port).await?,
                Speech::Http => {}
                Speech::Socks5h => {
                    socks::handshake(&mut stream, proxy.login.as_ref(), &target.host, target.port).await?;
                }
                Speech::Socks5 => {
                    let address = self.resolve(&target.host, target.port, stage).await?;
                    // One try: which of several addresses the proxy can reach is the proxy's to know (`socks5h`).
                    let Some(address) = address.first() else {
                        return Err(classify::unsent(FaultKind::DnsFailure, "the name has no address"));
                    };
                    stage.at(2);
                    let host = Host::Address(address.ip());
                    socks::handshake(&mut stream, proxy.login.as_ref(), &host, target.port).await?;
                }
            }
        }
        let Some((connector, name)) = &self.tls else { return Ok(Connected::Plain(stream)) };
        stage.at(3);
        let stream = connector
            .connect(name.clone(), stream)
            .await
            .map_err(|error| classify::shaking_hands(&error, "the TLS handshake"))?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Connected::Tls(Box::new(stream), http2))
    }

    /// Every address of a host, at least one, all of them allowed.
    async fn resolve(&self, host: &Host, port: u16, stage: &Stage) -> Result<Vec<SocketAddr>, Fault> {
        stage.at(0);
        let addresses: Vec<SocketAddr> = match host {
            Host::Address(address) => vec![SocketAddr::new(*address, port)],
            Host::Name(name) => tokio::net::lookup_host((name.as_str(), port))
                .await
                .map_err(|error| classify::resolving(&error, name))?
                .collect(),
        };
        if addresses.is_empty() {
            return Err(classify::unsent(FaultKind::DnsFailure, format!("{host} has no address")));
        }
        match addresses.iter().find(|address| matches!(self.egress, Egress::Loopback) && !is_loopback(address.ip())) {
            Some(address) => Err(classify::unsent(
                FaultKind::Unreachable,
                format!("only loopback addresses are allowed here, and {host} is {}", address.ip()),
            )),
            None => Ok(addresses),
        }
    }

    /// Tries one address after the other. One that is silent may use up its share of the clock only.
    async fn dial(&self, host: &Host, port: u16, deadline: Instant, stage: &Stage) -> Result<Transport, Fault> {
        if let Egress::Dialled(dial) = &self.egress {
            stage.at(1);
            let dialled = dial.dial(&host.to_string(), port).await;
            return dialled.map(Transport::Dialled).map_err(|error| classify::connecting(&error, &host.to_string()));
        }
        let addresses = self.resolve(host, port, stage).await?;
        stage.at(1);
        let mut last = None;
        for (at, address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    prepare(&stream).map_err(|error| classify::connecting(&error, &address.to_string()))?;
                    return Ok(Transport::Tcp(stream));
                }
                Ok(Err(error)) => last = Some(classify::connecting(&error, &address.to_string())),
                Err(_) => last = Some(classify::connect_clock(&address.to_string(), stage.name())),
            }
        }
        Err(last.unwrap_or_else(|| classify::unsent(FaultKind::DnsFailure, format!("{host} has no address"))))
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_EVERY).with_retries(KEEPALIVE_PROBES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
