//! The operator's proxy: its URL, and the `CONNECT` handshake of the HTTP kind. SOCKS is in its own file.

use crate::classify;
use crate::dial::Transport;
use crate::target::{self, Host};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnkeep_base::{Fault, FaultKind, Secret};

/// A proxy's answer to CONNECT longer than this is not one.
const MAX_HEAD: usize = 8 << 10;

/// How a proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP: CONNECT to `https` targets, absolute request targets to `http` ones.
    Http,
    /// SOCKS 5 with names resolved here.
    Socks5,
    /// SOCKS 5 with names resolved by the proxy.
    Socks5h,
}

/// A proxy.
pub(crate) struct Proxy {
    pub(crate) speech: Speech,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) login: Option<(String, Secret)>,
    /// What an HTTP proxy with a login is told.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Takes a proxy's URL apart. The error says what is wrong, without repeating the URL.
    pub(crate) fn parse(url: &str) -> Result<Proxy, String> {
        let uri: Uri = url.parse().map_err(|_| "not a URL")?;
        let (speech, default_port) = match uri.scheme_str() {
            Some("http") => (Speech::Http, 80),
            Some("socks5") => (Speech::Socks5, 1080),
            Some("socks5h") => (Speech::Socks5h, 1080),
            Some(_) | None => return Err("it starts with http://, socks5:// or socks5h://".into()),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err("a proxy's URL ends after its host and port".into());
        }
        let authority = uri.authority().ok_or("the host is missing")?;
        let port = target::port(authority)?.unwrap_or(default_port);
        let login = match authority.as_str().rsplit_once('@') {
            None => None,
            Some((login, _)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                let decode = |text| percent_decode(text).ok_or("user or password are not percent-encoded text");
                Some((decode(user)?, Secret::new(decode(password)?)))
            }
        };
        if let Some((user, password)) = &login
            && (user.is_empty() || user.len() > 255 || password.expose().len() > 255)
        {
            return Err("user and password are 1 and 0 to 255 bytes".into());
        }
        let authorization = match (&login, speech) {
            (Some((user, password)), Speech::Http) => {
                let basic = STANDARD.encode(format!("{user}:{}", password.expose()));
                let mut value = HeaderValue::try_from(format!("Basic {basic}")).map_err(|_| "not a login")?;
                value.set_sensitive(true);
                Some(value)
            }
            (Some(_) | None, Speech::Http | Speech::Socks5 | Speech::Socks5h) => None,
        };
        Ok(Proxy { speech, host: Host::parse(authority.host()), port, login, authorization })
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

/// Asks an HTTP proxy for a tunnel.
pub(crate) async fn tunnel(stream: &mut Transport, proxy: &Proxy, host: &Host, port: u16) -> Result<(), Fault> {
    let mut ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        ask.extend_from_slice(b"Proxy-Authorization: ");
        ask.extend_from_slice(authorization.as_bytes());
        ask.extend_from_slice(b"\r\n");
    }
    ask.extend_from_slice(b"\r\n");
    let head = exchange(stream, &ask).await.map_err(|error| classify::shaking_hands(&error, "the proxy's answer"))?;
    let status = head
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse::<u16>().ok());
    let refused = |kind, text: &str| Err(classify::unsent(kind, text));
    match status {
        Some(200..=299) => Ok(()),
        Some(407) => refused(FaultKind::UpstreamUnavailable, "the proxy does not accept our login (407)"),
        Some(status @ 100..=999) => {
            refused(FaultKind::UpstreamUnavailable, &format!("the proxy refuses the tunnel ({status})"))
        }
        Some(_) | None => refused(FaultKind::HttpProtocolError, "the proxy's answer to CONNECT is not HTTP"),
    }
}

/// Writes the question and reads a head: to the empty line, and nothing may follow, since the other side of a tunnel
/// waits for us.
async fn exchange(stream: &mut Transport, ask: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(ask).await?;
    let mut head = Vec::with_capacity(256);
    loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = head.windows(4).position(|window| window == b"\r\n\r\n");
        match end {
            Some(end) if end + 4 == head.len() => return Ok(head),
            Some(_) => {
                let accepted = head.get(9) == Some(&b'2');
                let text = "bytes follow the proxy's answer to CONNECT";
                // A refusal may have a body; nobody reads it.
                return if accepted { Err(io::Error::new(io::ErrorKind::InvalidData, text)) } else { Ok(head) };
            }
            None if head.len() > MAX_HEAD => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the proxy's answer to CONNECT has no end"));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_url_is_taken_apart() {
        let proxy = Proxy::parse("socks5h://me:p%40ss@[::1]:9050").unwrap();
        assert_eq!((proxy.speech, proxy.port), (Speech::Socks5h, 9050));
        assert_eq!(proxy.host, Host::Address("::1".parse().unwrap()));
        let (user, password) = proxy.login.unwrap();
        assert_eq!((user.as_str(), password.expose()), ("me", "p@ss"));
        let proxy = Proxy::parse("http://me:pw@proxy.test").unwrap();
        assert_eq!((proxy.speech, proxy.port), (Speech::Http, 80));
        assert_eq!(proxy.authorization.unwrap().as_bytes(), b"Basic bWU6cHc=");
        assert_eq!(Proxy::parse("socks5://127.0.0.1").unwrap().port, 1080);
    }

    #[test]
    fn a_proxys_url_that_cannot_be_used_is_refused_without_its_password() {
        for url in
            ["", "proxy:1", "https://me:hunter2@a", "http://me:hunter2@a/x", "http://me:hunter2%2@a", "socks5://a:0"]
        {
            let error = Proxy::parse(url).err().unwrap();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
