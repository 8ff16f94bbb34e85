//! The base URL, taken apart once, and the request targets made from it.

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use parking_lot::RwLock;
use std::net::IpAddr;

/// Paths are static texts of the dialects: there are a handful.
const MAX_PATHS: usize = 32;

/// Where an endpoint's calls go.
pub(crate) struct Target {
    pub(crate) tls: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The `host` header, without a default port.
    pub(crate) host_header: HeaderValue,
    authority: Authority,
    prefix: String,
    paths: RwLock<Vec<(String, Forms)>>,
}

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// From a URL's host, with or without the brackets of IPv6.
    pub(crate) fn parse(text: &str) -> Host {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        bare.parse().map_or_else(|_| Host::Name(bare.to_owned()), Host::Address)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The port of a URL's authority, if it names one.
pub(crate) fn port(authority: &Authority) -> Result<Option<u16>, String> {
    let text = authority.as_str();
    let named =
        text.rsplit_once(']').map_or(text, |(_, rest)| rest).rsplit('@').next().is_some_and(|rest| rest.contains(':'));
    match (authority.port_u16(), named) {
        (None, false) => Ok(None),
        (None, true) | (Some(0), _) => Err("the port is not a port".into()),
        (Some(port), _) => Ok(Some(port)),
    }
}

/// One path in the two forms of a request target.
#[derive(Clone)]
pub(crate) struct Forms {
    /// Path and query only: to an origin over HTTP/1.
    pub(crate) origin: Uri,
    /// With scheme and authority: over HTTP/2, and to a proxy.
    pub(crate) absolute: Uri,
}

impl Target {
    /// Takes a base URL apart. The error says what is wrong with it.
    pub(crate) fn parse(base_url: &str) -> Result<Target, String> {
        if base_url.contains('#') {
            return Err("a base URL has no fragment".into());
        }
        let uri: Uri = base_url.parse().map_err(|error| format!("not a URL: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(other) => return Err(format!("the scheme is http or https, not {other:?}")),
            None => return Err("it starts with https:// or http://".into()),
        };
        let given = uri.authority().ok_or("the host is missing")?;
        if given.as_str().contains('@') {
            return Err("credentials do not belong into the URL".into());
        }
        if uri.query().is_some() {
            return Err("a base URL has no query".into());
        }
        let default_port = if tls { 443 } else { 80 };
        let port = port(given)?.unwrap_or(default_port);
        let host = Host::parse(given.host());
        let shown = if port == default_port { host.to_string() } else { format!("{host}:{port}") };
        Ok(Target {
            tls,
            port,
            host_header: HeaderValue::try_from(&shown).map_err(|_| "the host is not a host")?,
            authority: Authority::try_from(shown).map_err(|_| "the host is not a host")?,
            host,
            prefix: uri.path().trim_end_matches('/').to_owned(),
            paths: RwLock::new(Vec::new()),
        })
    }

    /// The request target of a path below the base URL; `None` if the path is not one.
    pub(crate) fn forms(&self, path: &str) -> Option<Forms> {
        if let Some((_, forms)) = self.paths.read().iter().find(|(known, _)| *known == path) {
            return Some(forms.clone());
        }
        let whole = PathAndQuery::try_from(format!("{}{path}", self.prefix)).ok()?;
        let scheme = if self.tls { Scheme::HTTPS } else { Scheme::HTTP };
        let absolute = Uri::builder().scheme(scheme).authority(self.authority.clone()).path_and_query(whole.clone());
        let forms = Forms { origin: Uri::from(whole), absolute: absolute.build().ok()? };
        let mut paths = self.paths.write();
        if paths.len() < MAX_PATHS {
            paths.push((path.to_owned(), forms.clone()));
        }
        Some(forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_behind_the_base_urls_own_path() {
        for base in ["https://api.example.com/v1", "https://api.example.com:443/v1/"] {
            let target = Target::parse(base).unwrap();
            let forms = target.forms("/chat/completions?a=b").unwrap();
            assert_eq!(forms.origin.to_string(), "/v1/chat/completions?a=b");
            assert_eq!(forms.absolute.to_string(), "https://api.example.com/v1/chat/completions?a=b");
            assert_eq!(target.host_header, "api.example.com");
        }
        let target = Target::parse("http://[::1]:8080").unwrap();
        assert_eq!(target.forms("/v1/messages").unwrap().origin.to_string(), "/v1/messages");
        assert_eq!(target.host_header, "[::1]:8080");
        assert_eq!(target.host, Host::Address("::1".parse().unwrap()));
    }

    #[test]
    fn a_base_url_that_cannot_be_used_is_refused() {
        for base in [
            "",
            "api.example.com/v1",
            "ftp://a/",
            "https://user:pw@a/",
            "https://a/?x=1",
            "https://a/#x",
            "https://a:0/",
            "https://a:99999/",
            "/v1",
        ] {
            assert!(Target::parse(base).is_err(), "{base}");
        }
    }
}
