//! An upstream that is called at an address.

use super::kind::Kind;
use crate::config::listen::is_loopback;
use crate::config::read::{Fields, Item};
use http::header::{HeaderName, HeaderValue};
use std::path::PathBuf;
use turnkeep_base::Secret;

/// Where an upstream is, and the way there.
#[derive(Clone, Debug)]
pub struct Remote {
    /// What the vendor's SDK takes: with `/v1` for OpenAI kinds, without a version for the others. No slash at its end.
    pub base_url: String,
    /// Sent with every call, beside the account's credential: valid names in lower case, and valid values.
    pub headers: Vec<(String, Secret)>,
    /// Roots trusted beside the system's, PEM.
    pub ca: Option<PathBuf>,
    /// An `http`, `socks5` or `socks5h` URL; a secret, as it may hold a password.
    pub proxy: Option<Secret>,
}

/// The keys of [`Remote`].
pub(super) const KEYS: [&str; 4] = ["base_url", "headers", "ca", "proxy"];

/// Reads them. Without a `default` the address must be there.
pub(super) fn read(fields: &Fields<'_>, kind: Kind, plain: bool, default: Option<&str>) -> Option<Remote> {
    let base_url = match (default, fields.get("base_url")) {
        (Some(default), None) => Some(default.to_owned()),
        (Some(_) | None, Some(item)) => read_base_url(&item, kind),
        (None, None) => fields.require("base_url", how(kind)).and_then(|item| read_base_url(&item, kind)),
    };
    let headers = fields.get("headers").map(|item| read_headers(&item)).unwrap_or_default();
    let ca = fields.get("ca").and_then(|item| item.path());
    let proxy = fields.get("proxy").and_then(|item| read_proxy(&item, plain));
    Some(Remote { base_url: base_url?, headers, ca, proxy })
}

/// How an address is given.
fn how(kind: Kind) -> &'static str {
    match kind {
        Kind::Openai | Kind::OpenaiResponses | Kind::Anthropic | Kind::Gemini | Kind::Devin => {
            r#"base_url = "https://…", the one the vendor's SDK takes"#
        }
        Kind::Connect => r#"base_url = "https://…", where the server has its services"#,
        Kind::Cascade | Kind::Acp => {
            r#"base_url = "https://…", where the server is, or command = ["PROGRAM"], a server that the gateway starts"#
        }
    }
}

fn read_base_url(item: &Item<'_>, kind: Kind) -> Option<String> {
    let text = item.filled_text()?.trim_end_matches('/');
    let uri = text.parse::<http::Uri>().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri, uri.scheme_str()?, uri.authority()?)));
    let Some((uri, scheme, authority)) = parts else {
        // The text may hold a password, so it is not repeated.
        return item.fail("is not a whole URL; it starts with https:// or http:// and a host");
    };
    if authority.as_str().contains('@') {
        return item.fail("must not hold a user or password; the account's secret is the credential");
    }
    if uri.query().is_some() || text.contains('#') {
        return item.fail("must not hold a query or fragment; it ends with its path");
    }
    match scheme {
        "https" => {}
        "http" => {
            if !is_loopback(authority.host().trim_matches(['[', ']'])) {
                item.warn("plain http to another machine: prompts and credentials cross the network readable");
            }
        }
        other => return item.fail(format!("{other:?} is not a scheme it can use; write https:// or http://")),
    }
    match kind {
        Kind::Openai | Kind::OpenaiResponses if uri.path().trim_matches('/').is_empty() => {
            let kind = kind.name();
            item.warn(format!("has no path; for kind {kind:?} it usually ends with /v1, as the vendor's SDK takes it"));
        }
        Kind::Anthropic | Kind::Gemini | Kind::Devin
            if ["/v1", "/v1beta", "/v3"].iter().any(|version| uri.path().ends_with(version)) =>
        {
            let kind = kind.name();
            item.warn(format!(
                "ends with a version; for kind {kind:?} it stands without one, as the vendor's SDK takes it"
            ));
        }
        Kind::Openai
        | Kind::OpenaiResponses
        | Kind::Anthropic
        | Kind::Gemini
        | Kind::Connect
        | Kind::Cascade
        | Kind::Acp
        | Kind::Devin => {}
    }
    Some(text.to_owned())
}

/// Headers that are the driver's or the account's to set.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "accept-encoding",
    "connect-protocol-version",
    "connect-timeout-ms",
    "connect-content-encoding",
    "connect-accept-encoding",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
];

fn read_headers(item: &Item<'_>) -> Vec<(String, Secret)> {
    let read_one = |(key, item): (&str, Item<'_>)| {
        let Ok(name) = HeaderName::try_from(key) else { return item.fail(format!("{key:?} is not a header name")) };
        if OWN_HEADERS.contains(&name.as_str()) {
            return item.fail(format!(
                "the gateway sets {name:?} itself; remove it (a credential is an account's secret)",
                name = name.as_str()
            ));
        }
        let value = item.text()?;
        match HeaderValue::from_str(value) {
            Ok(_) => Some((name.as_str().to_owned(), Secret::new(value.to_owned()))),
            Err(_) => item.fail("is not a header value: it holds a line break or another control character"),
        }
    };
    item.free_table().unwrap_or_default().into_iter().filter_map(read_one).collect()
}

fn read_proxy(item: &Item<'_>, plain: bool) -> Option<Secret> {
    let shape = r#"it takes "http://HOST:PORT", "socks5://HOST:PORT" or "socks5h://HOST:PORT""#;
    let text = item.filled_text()?.trim_end_matches('/');
    let uri = text.parse::<http::Uri>().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
    let Some((scheme, authority)) = parts else {
        // The text may hold a password, so it is not repeated.
        return item.fail(format!("is not the URL of a proxy; {shape}"));
    };
    if !["http", "socks5", "socks5h"].contains(&scheme) {
        return item.fail(format!("{scheme:?} is not a kind of proxy; {shape}"));
    }
    let ends = uri.as_ref().is_some_and(|uri| matches!(uri.path(), "" | "/") && uri.query().is_none());
    if !ends || authority.port_u16() == Some(0) || authority.port().is_none() && authority.as_str().ends_with(':') {
        return item.fail(format!("a proxy's URL ends after its host and port; {shape}"));
    }
    if authority.as_str().contains('@') && !plain && item.variable().is_none() {
        return item.fail(
            "a password must not stand in this file; give the URL by an environment variable, or set \
             allow_plain_secrets = true at the top",
        );
    }
    Some(Secret::new(text.to_owned()))
}
