//! What the driver is built from.

use crate::dial::Egress;
use crate::kind::Kind;
use crate::spec::{CONNECT_TIMEOUT, EndpointError, EndpointSpec, MAX_CONNECTIONS};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where Devin's API is.
const BASE_URL: &str = "https://api.devin.ai";
/// The longest id of an organisation, in bytes.
const MAX_ORGANIZATION: usize = 128;

/// One upstream of the kind `devin`. `Debug` shows neither header values nor the proxy's password.
#[derive(Clone)]
pub struct DevinSpec {
    /// The upstream's name.
    pub name: Arc<str>,
    /// Without a version. By default `https://api.devin.ai`.
    pub base_url: String,
    /// Each account's organisation (`org-…`), by the account's name. An account without one serves nothing
    /// (`no_credential`).
    pub organizations: BTreeMap<Arc<str>, Arc<str>>,
    /// After a message of Devin's, how long nothing may happen until the turn counts as over. By default 20 s. A rule of
    /// thumb: too short cuts an answer in two, of which the next turn has the rest; too long lets a client wait.
    pub quiet: Duration,
    /// Between two looks at a session that changes. By default 1 s; it grows to `poll_longest` while nothing happens.
    pub poll_first: Duration,
    /// Between two looks at a session that does not change. By default 5 s.
    pub poll_longest: Duration,
    /// How long one call may take, its connection included. By default 30 s. A look that takes longer has failed; of a call
    /// that says something to Devin nothing is known then.
    pub call_timeout: Duration,
    /// Extra headers, the same on every call. They do not replace the driver's own.
    pub headers: Vec<(String, String)>,
    /// Extra roots in PEM, beside the platform's.
    pub ca_pem: Option<Vec<u8>>,
    /// As [`EndpointSpec::proxy`].
    pub proxy: Option<String>,
    /// As [`EndpointSpec::connect_timeout`]; by default 10 s.
    pub connect_timeout: Duration,
    /// As [`EndpointSpec::max_connections`]; by default 1024.
    pub max_connections: usize,
    /// Where connections may lead.
    pub egress: Egress,
}

/// Organisations by the name of their account.
pub(super) type Organizations = BTreeMap<Arc<str>, Arc<str>>;

/// The driver's own times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) quiet: Duration,
    pub(super) poll_first: Duration,
    pub(super) poll_longest: Duration,
    pub(super) call: Duration,
}

impl DevinSpec {
    /// A spec with the defaults, and no account's organisation.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        DevinSpec {
            name: name.into(),
            base_url: BASE_URL.to_owned(),
            organizations: BTreeMap::new(),
            quiet: Duration::from_secs(20),
            poll_first: Duration::from_secs(1),
            poll_longest: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            headers: Vec::new(),
            ca_pem: None,
            proxy: None,
            connect_timeout: CONNECT_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            egress: Egress::Network,
        }
    }

    /// The parts of it, checked.
    pub(super) fn take_apart(self) -> Result<(EndpointSpec, Organizations, Times), EndpointError> {
        let wrong = |key: &'static str, what: String| EndpointError { upstream: self.name.clone(), key, what };
        for (key, time) in [("quiet", self.quiet), ("poll_first", self.poll_first), ("call_timeout", self.call_timeout)]
        {
            if time.is_zero() {
                return Err(wrong(key, "it is zero".into()));
            }
        }
        if self.poll_longest < self.poll_first {
            return Err(wrong("poll_longest", "it is shorter than `poll_first`".into()));
        }
        for (account, organization) in &self.organizations {
            if !is_organization(organization) {
                let what = format!(
                    "account {account}: expected an organisation's id (as org-abc123) of letters, digits, `-` and `_`, \
                     1 to {MAX_ORGANIZATION} of them"
                );
                return Err(wrong("accounts.organization", what));
            }
        }
        let times = Times {
            quiet: self.quiet,
            poll_first: self.poll_first,
            poll_longest: self.poll_longest,
            call: self.call_timeout,
        };
        // Its credential is a bearer token, as OpenAI's is; nothing else of a kind matters to an endpoint here.
        let mut endpoint = EndpointSpec::new(self.name, Kind::OpenAi, self.base_url);
        endpoint.headers = self.headers;
        endpoint.ca_pem = self.ca_pem;
        endpoint.proxy = self.proxy;
        endpoint.connect_timeout = self.connect_timeout;
        endpoint.max_connections = self.max_connections;
        endpoint.egress = self.egress.clone();
        Ok((endpoint, self.organizations, times))
    }
}

fn is_organization(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_ORGANIZATION).contains(&text.len()) && text.bytes().all(legal)
}

impl fmt::Debug for DevinSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("DevinSpec")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("organizations", &self.organizations)
            .field("quiet", &self.quiet)
            .field("poll_first", &self.poll_first)
            .field("poll_longest", &self.poll_longest)
            .field("call_timeout", &self.call_timeout)
            .field("headers", &headers)
            .field("ca_pem", &self.ca_pem.as_ref().map(Vec::len))
            .field("proxy", &self.proxy.as_ref().map(|_| "[set]"))
            .field("connect_timeout", &self.connect_timeout)
            .field("max_connections", &self.max_connections)
            .field("egress", &self.egress)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devin::Devin;

    fn key(spec: DevinSpec) -> &'static str {
        Devin::new(spec).unwrap_err().key
    }

    #[test]
    fn a_spec_that_no_driver_can_be_made_of_is_refused_by_its_key() {
        let good = || DevinSpec::new("devin");
        assert!(Devin::new(good()).is_ok());
        assert_eq!(key(DevinSpec { quiet: Duration::ZERO, ..good() }), "quiet");
        assert_eq!(key(DevinSpec { poll_first: Duration::ZERO, ..good() }), "poll_first");
        assert_eq!(key(DevinSpec { poll_longest: Duration::from_millis(1), ..good() }), "poll_longest");
        assert_eq!(key(DevinSpec { base_url: "devin".into(), ..good() }), "base_url");
        for bad in ["", "org/1", "org 1", "org-\u{e4}"] {
            let organizations = BTreeMap::from([("a".into(), bad.into())]);
            assert_eq!(key(DevinSpec { organizations, ..good() }), "accounts.organization", "{bad:?}");
        }
    }

    #[test]
    fn a_spec_shows_no_secret_when_printed() {
        let headers = vec![("x-gate".to_owned(), "hunter2".to_owned())];
        let spec = DevinSpec { headers, proxy: Some("http://me:hunter2@p:1".into()), ..DevinSpec::new("devin") };
        let printed = format!("{spec:?}");
        assert!(printed.contains("x-gate") && !printed.contains("hunter2"), "{printed}");
    }
}
