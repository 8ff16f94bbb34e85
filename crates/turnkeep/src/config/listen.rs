//! Addresses to listen on.

use super::read::Item;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A name or an IP address (without brackets), and a port; port 0 takes a free one.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket file.
    Unix(PathBuf),
}

impl Listen {
    /// Only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Listen::Unix(_) => true,
            Listen::Tcp { host, .. } => is_loopback(host),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Listen::Tcp { host, port } => write!(f, "{host}:{port}"),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A host, without brackets, that only this machine can reach.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Reads `"host:port"`, `"[v6]:port"` or `"unix:/path"`.
pub(super) fn read(item: &Item<'_>) -> Option<Listen> {
    let shape = r#"must be an address, as in "127.0.0.1:4141", "[::1]:4141" or "unix:/run/turnkeep.sock""#;
    let text = item.filled_text()?;
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() { item.fail(shape) } else { Some(Listen::Unix(item.in_folder(path))) };
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return item.fail(format!("{text:?} has no port; it {shape}"));
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let v6 = |host: &str| host.parse::<std::net::Ipv6Addr>().is_ok();
    let named = |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let host = match bare {
        Some(host) if v6(host) => host,
        None if named(host) => host,
        Some(_) | None => return item.fail(format!("{host:?} is not a host; it {shape}")),
    };
    match port.parse::<u16>() {
        Ok(port) => Some(Listen::Tcp { host: host.to_owned(), port }),
        Err(_) => item.fail(format!("{port:?} is not a port from 0 to 65535; it {shape}")),
    }
}
