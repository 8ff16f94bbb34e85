//! `[server]`: where clients come in.

use super::listen::{self, Listen};
use super::read::{Item, Known};
use http::header::HeaderName;
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_http::Delivery;
use turnkeep_http::proxies::{Net, TrustedPeer};

/// The port and address of a gateway nobody configured.
pub const DEFAULT_PORT: u16 = 4141;

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// At least one.
    pub listen: Vec<Listen>,
    /// Certificate and key of every TCP listener; plain without.
    pub tls: Option<Tls>,
    /// The largest request body, in bytes.
    pub max_body: u64,
    /// How long running turns may take to end after a request to stop.
    pub shutdown_grace: Duration,
    /// How much proof a reply's arrival needs.
    pub delivery: Delivery,
    /// Peers whose word on a shared key's user is taken.
    pub trusted_proxies: Vec<TrustedPeer>,
    /// The header in which they give it, in lower case.
    pub user_header: Option<String>,
}

/// The server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM, leaf first.
    pub cert: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: vec![Listen::Tcp { host: "127.0.0.1".into(), port: DEFAULT_PORT }],
            tls: None,
            max_body: 32 << 20,
            shutdown_grace: Duration::from_secs(30),
            delivery: Delivery::Acked,
            trusted_proxies: Vec::new(),
            user_header: None,
        }
    }
}

const SERVER: Known = Known {
    table: "[server]",
    keys: &["listen", "tls", "max_body", "shutdown_grace", "delivery", "trusted_proxies", "user_header"],
    later: &["admin_listen"],
};
const TLS: Known = Known { table: "server.tls", keys: &["cert", "key"], later: &[] };

pub(super) fn read(item: Item<'_>) -> Option<Server> {
    let fields = item.table(&SERVER)?;
    let mut server = Server::default();
    if let Some(item) = fields.get("listen") {
        server.listen = read_listen(&item);
    }
    server.tls = fields.get("tls").and_then(|item| read_tls(&item));
    if let Some(size) = fields.get("max_body").and_then(|item| item.size(1 << 10, 1 << 30)) {
        server.max_body = size;
    }
    let grace = fields.get("shutdown_grace");
    if let Some(grace) = grace.and_then(|item| item.duration(Duration::ZERO, Duration::from_secs(86_400))) {
        server.shutdown_grace = grace;
    }
    let words = [("acked", Delivery::Acked), ("flushed", Delivery::Flushed)];
    if let Some(delivery) = fields.get("delivery").and_then(|item| item.word(&words, &[])) {
        server.delivery = delivery;
    }
    let proxies = fields.get("trusted_proxies").map(|item| item.one_or_list()).unwrap_or_default();
    server.trusted_proxies = proxies.iter().filter_map(read_proxy).collect();
    server.user_header = fields.get("user_header").and_then(|item| read_user_header(&item));
    if let (Some(item), true) = (fields.get("user_header"), proxies.is_empty()) {
        item.warn(
            "without trusted_proxies nobody's word is taken, so it changes nothing; name the proxy that sends it",
        );
    }
    if let (Some(item), None) = (fields.get("trusted_proxies"), &server.user_header) {
        item.warn("without user_header it changes nothing; name the header in which a proxy gives the user");
    }
    Some(server)
}

fn read_listen(item: &Item<'_>) -> Vec<Listen> {
    let items = item.one_or_list();
    if items.is_empty() {
        item.fail::<()>(r#"names no address; write one, as in "127.0.0.1:4141""#);
    }
    let mut addresses: Vec<Listen> = Vec::new();
    for item in items {
        let Some(address) = listen::read(&item) else { continue };
        let free_port = matches!(address, Listen::Tcp { port: 0, .. });
        if !free_port && addresses.contains(&address) {
            item.fail::<()>(format!("{address} is listed twice; remove one"));
            continue;
        }
        addresses.push(address);
    }
    addresses
}

fn read_proxy(item: &Item<'_>) -> Option<TrustedPeer> {
    let text = item.filled_text()?;
    if text == "unix" {
        return Some(TrustedPeer::Unix);
    }
    let net = item.told(Net::parse(text))?;
    if net.is_everyone() {
        item.warn("is everybody: whoever can connect may speak for any user of a shared key");
    }
    Some(TrustedPeer::Net(net))
}

/// Headers that hold a secret, or are the connection's own.
const NO_USER_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "cookie",
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "idempotency-key",
];

fn read_user_header(item: &Item<'_>) -> Option<String> {
    let text = item.filled_text()?;
    let Ok(name) = HeaderName::try_from(text) else { return item.fail(format!("{text:?} is not a header name")) };
    if NO_USER_HEADERS.contains(&name.as_str()) {
        return item
            .fail(format!("{:?} has another meaning; take a header of its own, as in \"x-user\"", name.as_str()));
    }
    Some(name.as_str().to_owned())
}

fn read_tls(item: &Item<'_>) -> Option<Tls> {
    let fields = item.table(&TLS)?;
    let cert = fields.require("cert", r#"cert = "cert.pem""#).and_then(|item| item.path());
    let key = fields.require("key", r#"key = "key.pem""#).and_then(|item| item.path());
    Some(Tls { cert: cert?, key: key? })
}
