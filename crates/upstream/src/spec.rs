//! What an endpoint is built from, and what can be wrong with it.

use crate::dial::Egress;
use crate::kind::Kind;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One upstream of the configuration. `Debug` shows neither header values nor the proxy's password.
#[derive(Clone)]
pub struct EndpointSpec {
    /// The upstream's name.
    pub name: Arc<str>,
    /// Its wire protocol.
    pub kind: Kind,
    /// What the vendor's SDK takes: with `/v1` for OpenAI kinds, without a version for Anthropic.
    pub base_url: String,
    /// Extra headers, the same on every call. They do not replace the driver's own.
    pub headers: Vec<(String, String)>,
    /// Extra roots in PEM, beside the platform's. Nothing turns verification off.
    pub ca_pem: Option<Vec<u8>>,
    /// `http://`, `socks5://` (names resolved here) or `socks5h://` (names resolved by the proxy), with
    /// `user:password@` where the proxy wants it.
    pub proxy: Option<String>,
    /// Name, TCP, proxy and TLS handshake together.
    pub connect_timeout: Duration,
    /// Connections open at once, for each account; a call beyond it fails as `gateway_exhausted`. At least 1.
    pub max_connections: usize,
    /// Where connections may lead.
    pub egress: Egress,
}

/// The default of [`EndpointSpec::max_connections`].
pub const MAX_CONNECTIONS: usize = 1024;
/// The default of [`EndpointSpec::connect_timeout`].
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl EndpointSpec {
    /// A spec with the defaults: no extra headers or roots, no proxy, 10 s to connect, 1024 connections an account,
    /// every address allowed.
    pub fn new(name: impl Into<Arc<str>>, kind: Kind, base_url: impl Into<String>) -> Self {
        EndpointSpec {
            name: name.into(),
            kind,
            base_url: base_url.into(),
            headers: Vec::new(),
            ca_pem: None,
            proxy: None,
            connect_timeout: CONNECT_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            egress: Egress::Network,
        }
    }
}

impl fmt::Debug for EndpointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("EndpointSpec")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("headers", &headers)
            .field("ca_pem", &self.ca_pem.as_ref().map(Vec::len))
            .field("proxy", &self.proxy.as_ref().map(|_| "[set]"))
            .field("connect_timeout", &self.connect_timeout)
            .field("max_connections", &self.max_connections)
            .field("egress", &self.egress)
            .finish()
    }
}

/// A spec that no endpoint can be made of. The text holds no value that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("upstream {upstream}: {key}: {what}")]
pub struct EndpointError {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The key of the configuration that is wrong.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
}
