//! Calls over Connect (HTTP/1.1 or HTTP/2) and gRPC (HTTP/2): unary ones and those whose answer is a stream of messages.
//! Messages are bytes here; who makes and reads them is the drivers' matter.
//!
//! Every error is named once, as a fault with its proof, and with it goes what is known of the call: see [`Told`]. Nothing
//! is sent compressed; answers may be, by gzip and zstd, each message for itself, and a message is at most 16 MiB before
//! inflation and after. No clock but the connect clock runs here: what is left of a turn's time is only told to the server.

mod answer;
mod coding;
mod ending;
pub(crate) mod fuzzed;
mod head;
mod status;
mod stream;

pub use stream::RpcStream;

use crate::answer::{Body, parts};
use crate::dial::Egress;
use crate::origin::{Care, Origin, OriginSpec};
use crate::pool::Pool;
use crate::request::configured;
use crate::spec::{CONNECT_TIMEOUT, EndpointError, MAX_CONNECTIONS};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Fault, FaultKind, Phase, Secret};
use turnkeep_engine::ports::SendFault;
use turnkeep_policy::conversations::RefusalProof;

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The Connect protocol, over HTTP/1.1 or, where TLS agrees to it, HTTP/2.
    #[default]
    Connect,
    /// gRPC, over HTTP/2: by TLS, or to an `http://` URL with prior knowledge.
    Grpc,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Protobuf's binary form.
    #[default]
    Proto,
    /// Protobuf's JSON.
    Json,
}

impl Codec {
    /// A message in this form.
    pub fn write<M: Message + Serialize>(self, message: &M) -> Result<Bytes, Fault> {
        match self {
            Codec::Proto => Ok(message.encode_to_vec().into()),
            Codec::Json => serde_json::to_vec(message).map(Bytes::from).map_err(|error| {
                // Only an enum's number that has no name can do that: the driver wrote it.
                crate::classify::unsent(FaultKind::GatewayBug, format!("a message has no JSON form: {error}"))
            }),
        }
    }

    /// Reads a message; unknown fields are skipped. The fault is `malformed_response`.
    pub fn read<M: Message + Default + DeserializeOwned>(self, bytes: &[u8]) -> Result<M, Fault> {
        let read = match self {
            Codec::Proto => M::decode(bytes).map_err(|error| format!("a message is not protobuf: {error}")),
            Codec::Json => serde_json::from_slice(bytes).map_err(|error| format!("a message is not JSON: {error}")),
        };
        read.map_err(ending::malformed)
    }
}

/// One server. `Debug` shows neither header values nor the proxy's password.
#[derive(Clone)]
pub struct RpcSpec {
    /// The upstream's name.
    pub name: Arc<str>,
    /// Where the services are: `/package.Service/Method` is put behind its path.
    pub base_url: String,
    /// What is spoken.
    pub protocol: Protocol,
    /// The form of messages.
    pub codec: Codec,
    /// Extra headers, the same on every call. They do not replace those of the protocol, nor `authorization`.
    pub headers: Vec<(String, String)>,
    /// Extra roots in PEM, beside the platform's.
    pub ca_pem: Option<Vec<u8>>,
    /// As [`crate::EndpointSpec::proxy`]. An HTTP proxy does not carry gRPC to an `http://` URL.
    pub proxy: Option<String>,
    /// Name, TCP, proxy and TLS handshake together.
    pub connect_timeout: Duration,
    /// Connections open at once, for each account; at least 1.
    pub max_connections: usize,
    /// Where connections may lead.
    pub egress: Egress,
}

impl RpcSpec {
    /// A spec with the defaults: Connect, binary messages, no extra headers or roots, no proxy, 10 s to connect, 1024
    /// connections an account, every address allowed.
    pub fn new(name: impl Into<Arc<str>>, base_url: impl Into<String>) -> Self {
        RpcSpec {
            name: name.into(),
            base_url: base_url.into(),
            protocol: Protocol::default(),
            codec: Codec::default(),
            headers: Vec::new(),
            ca_pem: None,
            proxy: None,
            connect_timeout: CONNECT_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            egress: Egress::Network,
        }
    }
}

impl fmt::Debug for RpcSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("RpcSpec")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("protocol", &self.protocol)
            .field("codec", &self.codec)
            .field("headers", &headers)
            .field("ca_pem", &self.ca_pem.as_ref().map(Vec::len))
            .field("proxy", &self.proxy.as_ref().map(|_| "[set]"))
            .field("connect_timeout", &self.connect_timeout)
            .field("max_connections", &self.max_connections)
            .field("egress", &self.egress)
            .finish()
    }
}

/// One call.
#[derive(Debug)]
pub struct RpcCall {
    /// `/package.Service/Method`.
    pub method: &'static str,
    /// The request's message, in the server's codec.
    pub message: Bytes,
    /// Whose connections are used.
    pub account: AccountId,
    /// Sent as `authorization: Bearer …`; an empty one is not sent.
    pub secret: Secret,
    /// What is left of the time, for the server to know.
    pub time_left: Option<Duration>,
    /// More headers, as a trace's. Those of the protocol are not replaced.
    pub metadata: HeaderMap,
    /// It may be sent once only: on a connection that is fresh or has waited less than 5 s, and again only if it certainly
    /// was not taken.
    pub stateful: bool,
    /// It goes on with a conversation that the server keeps: `not_found` may then mean that this is gone.
    pub continued: bool,
}

/// What is known of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It never left, or HTTP/2 says that the server has not looked at it.
    Unsent,
    /// A complete error reply, before any message, that says no.
    Refused,
    /// A complete error reply, before any message, that tells of a failure of the server's (5xx): it may have begun.
    Failed,
    /// Nothing.
    Unknown,
}

/// A call that failed.
#[derive(Debug)]
pub struct RpcFault {
    /// What went wrong.
    pub fault: Fault,
    /// What is known of the call.
    pub told: Told,
}

impl RpcFault {
    /// For a driver's answer. `readable`: the position of what was asked can be read, so that even a failure of the
    /// server's proves enough.
    pub fn into_send_fault(self, readable: bool) -> SendFault {
        let refused = match self.told {
            Told::Unsent => Some(RefusalProof::never_left()),
            Told::Refused => Some(RefusalProof::by_reply()),
            Told::Failed => readable.then(RefusalProof::by_failure),
            Told::Unknown => None,
        };
        SendFault { fault: self.fault, refused }
    }
}

impl From<Fault> for RpcFault {
    /// Of a fault of the transport's: what its phase tells.
    fn from(fault: Fault) -> Self {
        let told = if fault.phase == Phase::Unsent { Told::Unsent } else { Told::Unknown };
        RpcFault { fault, told }
    }
}

/// The answer of a unary call.
#[derive(Clone, Debug)]
pub struct RpcReply {
    /// Its message, in the server's codec.
    pub message: Bytes,
    /// Its trailers: the call's metadata, which the protocols promise and no driver reads.
    pub trailers: HeaderMap,
}

/// A client of one server, with its connections. Dropping it closes the idle ones; streams outlive it.
pub struct Rpc {
    protocol: Protocol,
    codec: Codec,
    extra: Vec<(HeaderName, HeaderValue)>,
    origin: Origin,
}

impl Rpc {
    /// Makes a client; opens no connection.
    pub fn new(spec: &RpcSpec) -> Result<Rpc, EndpointError> {
        let origin = Origin::new(&OriginSpec {
            name: &spec.name,
            base_url: &spec.base_url,
            ca_pem: spec.ca_pem.as_deref(),
            proxy: spec.proxy.as_deref(),
            connect_timeout: spec.connect_timeout,
            max_connections: spec.max_connections,
            egress: &spec.egress,
            http2_only: spec.protocol == Protocol::Grpc,
        })?;
        let extra = configured(&spec.headers, &head::is_ours).map_err(|what| EndpointError {
            upstream: Arc::clone(&spec.name),
            key: "headers",
            what,
        })?;
        Ok(Rpc { protocol: spec.protocol, codec: spec.codec, extra, origin })
    }

    /// The upstream's name.
    pub fn name(&self) -> &Arc<str> {
        &self.origin.name
    }

    /// By which way its calls leave: `direct`, or `proxy HOST:PORT`.
    pub fn egress(&self) -> &Arc<str> {
        &self.origin.egress
    }

    /// The form of messages.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Connections of all accounts that wait for work.
    pub fn idle_connections(&self) -> usize {
        self.origin.pools.sum(Pool::idle)
    }

    /// Connections of all accounts that are open, or being opened.
    pub fn open_connections(&self) -> usize {
        self.origin.pools.sum(Pool::open)
    }

    /// Forgets an account that was removed: its idle connections close now, those with a call when that ends.
    pub fn forget_account(&self, account: &AccountId) -> bool {
        self.origin.pools.forget(account)
    }

    /// Makes a call whose answer is one message. Dropping the future cancels it.
    pub async fn unary(&self, call: RpcCall) -> Result<RpcReply, RpcFault> {
        let continued = call.continued;
        match self.protocol {
            Protocol::Connect => {
                let (status, headers, body) = self.exchange(call, head::Form::Unary).await?;
                answer::unary(status, headers, body, self.codec, continued).await
            }
            Protocol::Grpc => answer::only_message(self.stream(call).await?).await,
        }
    }

    /// Makes a call whose answer is a stream of messages, and waits for the head of it. Dropping the future or the stream
    /// cancels the call: the connection is closed over HTTP/1.1, the stream reset over HTTP/2.
    pub async fn stream(&self, call: RpcCall) -> Result<RpcStream, RpcFault> {
        let continued = call.continued;
        let (status, headers, body) = self.exchange(call, head::Form::Stream).await?;
        answer::stream(status, headers, body, self.protocol, self.codec, continued).await
    }

    async fn exchange(&self, call: RpcCall, form: head::Form) -> Result<(StatusCode, HeaderMap, Body), Fault> {
        let care = if call.stateful { Care::Stateful } else { Care::ReplaySafe };
        let account = call.account.clone();
        let draft = head::head(call, self.protocol, self.codec, form, &self.extra, &self.origin.target)?;
        let (response, lease) = self.origin.exchange(&account, draft, care).await?;
        parts(response, lease)
    }
}

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rpc")
            .field("name", &self.origin.name)
            .field("protocol", &self.protocol)
            .field("codec", &self.codec)
            .field("host", &self.origin.target.host)
            .field("port", &self.origin.target.port)
            .finish_non_exhaustive()
    }
}
