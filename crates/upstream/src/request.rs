//! From a call to an HTTP request: the headers that are the driver's, once per call, and the target in the form that the
//! connection wants.

use crate::classify;
use crate::kind::{ANTHROPIC_VERSION, ANTHROPIC_VERSION_DEFAULT, Kind, X_API_KEY, X_GOOG_API_KEY};
use crate::pool::{Outgoing, Speaks};
use crate::target::{Forms, Target};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use turnkeep_base::{Fault, FaultKind};
use turnkeep_engine::ports::Call;

pub(crate) const AGENT: HeaderValue = HeaderValue::from_static(concat!("turnkeep/", env!("CARGO_PKG_VERSION")));
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Headers that belong to the driver or to the connection: a configured one is refused, a given one is dropped.
static OURS: [HeaderName; 15] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    header::ACCEPT_ENCODING,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
    X_API_KEY,
    X_GOOG_API_KEY,
];

/// What every request of an endpoint has in common.
pub(crate) struct Template {
    kind: Kind,
    extra: Vec<(HeaderName, HeaderValue)>,
}

/// A request that does not know its connection yet.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) forms: Forms,
}

impl Template {
    /// Checks the configured headers; the error names the one that is wrong, without its value.
    pub(crate) fn new(kind: Kind, extra: &[(String, String)]) -> Result<Template, String> {
        Ok(Template { kind, extra: configured(extra, &|name| OURS.contains(name))? })
    }

    /// The request of a call.
    pub(crate) fn draft(&self, target: &Target, call: Call) -> Result<Draft, Fault> {
        let Some(forms) = target.forms(&call.path) else {
            return Err(classify::unsent(FaultKind::GatewayBug, format!("{:?} is not a path", call.path)));
        };
        let Some((name, credential)) = self.kind.credential(&call.secret) else {
            let text = "the account's secret is empty, or holds bytes that cannot stand in a header";
            return Err(classify::unsent(FaultKind::NoCredential, text));
        };
        let mut headers = call.headers;
        for ours in &OURS {
            headers.remove(ours);
        }
        headers.insert(name, credential);
        if !call.body.is_empty() {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        headers.insert(header::ACCEPT_ENCODING, ENCODINGS);
        headers.insert(header::USER_AGENT, AGENT);
        headers.entry(header::ACCEPT).or_insert(ACCEPT);
        match self.kind {
            Kind::Anthropic => {
                headers.entry(ANTHROPIC_VERSION).or_insert(ANTHROPIC_VERSION_DEFAULT);
            }
            Kind::OpenAi | Kind::OpenAiResponses | Kind::Gemini => {}
        }
        for (name, value) in &self.extra {
            headers.insert(name, value.clone());
        }
        Ok(Draft { method: call.method, headers, body: call.body, forms })
    }
}

/// The headers that an operator has configured, marked so that no log shows their values. `ours` are those that the
/// gateway sets itself.
pub(crate) fn configured(
    extra: &[(String, String)],
    ours: &dyn Fn(&HeaderName) -> bool,
) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mut checked = Vec::with_capacity(extra.len());
    for (name, value) in extra {
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| format!("{name:?} is not a header's name"))?;
        if ours(&parsed) {
            return Err(format!("{name:?} is set by the gateway itself"));
        }
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of {name:?} cannot stand in a header"))?;
        value.set_sensitive(true);
        checked.push((parsed, value));
    }
    Ok(checked)
}

impl Draft {
    /// The request for a connection. `via_proxy` is set when requests go to an HTTP proxy as they are: targets are absolute,
    /// and in it is the proxy's login.
    pub(crate) fn finish(self, target: &Target, via_proxy: Option<&Option<HeaderValue>>, speaks: Speaks) -> Outgoing {
        let Draft { method, mut headers, body, forms } = self;
        if let Some(Some(login)) = via_proxy {
            headers.insert(header::PROXY_AUTHORIZATION, login.clone());
        }
        let uri = match speaks {
            Speaks::Http1 => {
                headers.insert(header::HOST, target.host_header.clone());
                if via_proxy.is_some() { forms.absolute } else { forms.origin }
            }
            Speaks::Http2 => forms.absolute,
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
    }
}
