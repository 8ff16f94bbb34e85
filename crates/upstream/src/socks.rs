//! The SOCKS 5 handshake (RFC 1928, with the login of RFC 1929): enough to ask for one outgoing connection.

use crate::classify;
use crate::dial::Transport;
use crate::target::Host;
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnkeep_base::{Fault, FaultKind, Secret};

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;

/// Asks for a connection to the host. A name is sent as a name.
pub(crate) async fn handshake(
    stream: &mut Transport,
    login: Option<&(String, Secret)>,
    host: &Host,
    port: u16,
) -> Result<(), Fault> {
    let broken = |error: io::Error| classify::shaking_hands(&error, "the proxy's SOCKS handshake");
    let refused = |kind, text: String| Err(classify::unsent(kind, text));
    let hello: &[u8] = if login.is_some() { &[VERSION, 2, NO_LOGIN, LOGIN] } else { &[VERSION, 1, NO_LOGIN] };
    stream.write_all(hello).await.map_err(broken)?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await.map_err(broken)?;
    match (choice, login) {
        ([VERSION, NO_LOGIN], _) => {}
        ([VERSION, LOGIN], Some((user, password))) => {
            let answer = log_in(stream, user, password).await.map_err(broken)?;
            if answer != 0 {
                return refused(FaultKind::UpstreamUnavailable, "the proxy does not accept our login".into());
            }
        }
        ([VERSION, method], _) => {
            let text = format!("the proxy wants a login by method {method}, which it was not given");
            return refused(FaultKind::UpstreamUnavailable, text);
        }
        (_, _) => return refused(FaultKind::UpstreamUnavailable, "the proxy does not speak SOCKS 5".into()),
    }
    let ask = request(host, port).ok_or_else(|| {
        classify::unsent(FaultKind::DnsFailure, "the upstream's name is too long for the proxy (255 bytes)")
    })?;
    stream.write_all(&ask).await.map_err(broken)?;
    match answer(stream).await.map_err(broken)? {
        0 => Ok(()),
        code @ (3 | 4 | 6) => refused(FaultKind::Unreachable, format!("the proxy cannot reach the upstream ({code})")),
        5 => refused(FaultKind::ConnectRefused, "the proxy says that the upstream refuses connections (5)".into()),
        code => refused(FaultKind::UpstreamUnavailable, format!("the proxy refuses the connection ({code})")),
    }
}

async fn log_in(stream: &mut Transport, user: &str, password: &Secret) -> io::Result<u8> {
    let password = password.expose().as_bytes();
    let length = |text: &[u8]| u8::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let mut login = vec![1, length(user.as_bytes())?];
    login.extend_from_slice(user.as_bytes());
    login.push(length(password)?);
    login.extend_from_slice(password);
    stream.write_all(&login).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    Ok(answer[1])
}

fn request(host: &Host, port: u16) -> Option<Vec<u8>> {
    let mut ask = vec![VERSION, 1, 0];
    match host {
        Host::Address(IpAddr::V4(address)) => {
            ask.push(1);
            ask.extend_from_slice(&address.octets());
        }
        Host::Address(IpAddr::V6(address)) => {
            ask.push(4);
            ask.extend_from_slice(&address.octets());
        }
        Host::Name(name) => {
            ask.push(3);
            ask.push(u8::try_from(name.len()).ok()?);
            ask.extend_from_slice(name.as_bytes());
        }
    }
    ask.extend_from_slice(&port.to_be_bytes());
    Some(ask)
}

/// The reply's code; the address that the proxy bound is read and forgotten.
async fn answer(stream: &mut Transport) -> io::Result<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    if head[0] != VERSION {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the reply is not SOCKS 5"));
    }
    if head[1] != 0 {
        return Ok(head[1]);
    }
    let address = match head[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "the reply's address has no known type")),
    };
    let mut bound = vec![0; address + 2];
    stream.read_exact(&mut bound).await?;
    Ok(0)
}
