//! `[server]`: where clients come in.

use super::listen::{self, Listen};
use super::read::{Item, Known};
use std::path::PathBuf;
use std::time::Duration;

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
        }
    }
}

const SERVER: Known = Known {
    table: "[server]",
    keys: &["listen", "tls", "max_body", "shutdown_grace"],
    later: &["delivery", "trusted_proxies", "user_header", "admin_listen"],
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

fn read_tls(item: &Item<'_>) -> Option<Tls> {
    let fields = item.table(&TLS)?;
    let cert = fields.require("cert", r#"cert = "cert.pem""#).and_then(|item| item.path());
    let key = fields.require("key", r#"key = "key.pem""#).and_then(|item| item.path());
    Some(Tls { cert: cert?, key: key? })
}
