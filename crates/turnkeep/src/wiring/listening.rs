//! The listeners: TCP addresses and Unix sockets, bound before anything is served.

use crate::commands::Failure;
use crate::config::{Config, Listen};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};
use turnkeep_http::{Bound, Listener};

/// Binds every configured listener, unless there are `given` ones in their place.
pub(super) async fn listen(
    config: &Config,
    given: Option<Vec<Listener>>,
) -> Result<(Vec<Listener>, Vec<Bound>), Failure> {
    let listeners = match given {
        Some(listeners) => listeners,
        None => bind_all(config).await?,
    };
    let bound = listeners.iter().map(Listener::bound).collect::<Result<_, _>>().map_err(Failure::operation)?;
    Ok((listeners, bound))
}

async fn bind_all(config: &Config) -> Result<Vec<Listener>, Failure> {
    let tls = match &config.server.tls {
        Some(tls) => {
            let config = turnkeep_http::tls_config(&tls.cert, &tls.key);
            Some(config.map_err(|error| Failure::Usage(format!("server.tls: {error}")))?)
        }
        None => None,
    };
    let mut listeners = Vec::new();
    for place in &config.server.listen {
        let failed = |error: std::io::Error| Failure::Operation(format!("cannot listen on {place}: {error}"));
        match place {
            Listen::Tcp { host, port } => {
                let addresses: Vec<SocketAddr> =
                    tokio::net::lookup_host((host.as_str(), *port)).await.map_err(failed)?.collect();
                let listener = bind(&addresses).map_err(failed)?;
                listeners.push(Listener::Tcp(listener, tls.clone()));
            }
            Listen::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                listeners.push(Listener::Unix(listener, path.clone()));
            }
        }
    }
    Ok(listeners)
}

/// Listens on the first address that can be had, with room for many connections at once.
fn bind(addresses: &[SocketAddr]) -> std::io::Result<TcpListener> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        match socket.bind(*address).and_then(|()| socket.listen(4096)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A socket file that an earlier run left is replaced; one that somebody listens on is not.
fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                let why = "there is a file that is no socket; it is left as it is";
                return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_left_socket_is_replaced_and_a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("left.sock");
        drop(bind_unix(&socket).unwrap());
        let listening = bind_unix(&socket).unwrap();
        assert_eq!(bind_unix(&socket).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        drop(listening);

        let file = folder.path().join("precious");
        std::fs::write(&file, "words").unwrap();
        assert!(bind_unix(&file).unwrap_err().to_string().contains("no socket"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "words");
    }
}
