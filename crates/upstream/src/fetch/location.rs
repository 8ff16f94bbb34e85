//! A URL that a client, or a redirect, names: taken apart strictly, so that what is checked is what is dialled.

use crate::target::Host;
use http::uri::PathAndQuery;
use std::net::{IpAddr, Ipv4Addr};

/// The longest URL that is followed, in bytes.
const MAX_URL: usize = 8 << 10;
/// The longest name of a host (RFC 1035).
const MAX_HOST: usize = 253;

/// Where one hop goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) tls: bool,
    /// In lower case, without a dot at its end; an IPv4 address in whatever spelling is an address.
    pub(super) host: Host,
    pub(super) port: u16,
    /// Path and query.
    pub(super) target: PathAndQuery,
}

impl Location {
    /// Takes a URL apart. The error never repeats it: its query may hold a signature.
    pub(super) fn parse(url: &str) -> Result<Location, &'static str> {
        if url.len() > MAX_URL {
            return Err("the URL is longer than 8192 bytes");
        }
        // URL parsers disagree about these, and what one checks another dials.
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err("the URL holds a blank, a backslash, a control character or one outside of ASCII");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err("it is no whole URL; it starts with https:// or http://");
        };
        let tls = match scheme {
            scheme if scheme.eq_ignore_ascii_case("https") => true,
            scheme if scheme.eq_ignore_ascii_case("http") => false,
            _ => return Err("only https and http URLs are fetched"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("the URL holds a user name or password");
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port,
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let target = PathAndQuery::try_from(target).map_err(|_| "the URL's path is not one")?;
        Ok(Location { tls, host: read_host(host)?, port, target })
    }

    /// Where a redirect's `location` leads from here.
    pub(super) fn follow(&self, location: &str) -> Result<Location, &'static str> {
        let scheme = if self.tls { "https" } else { "http" };
        if has_scheme(location) {
            return Location::parse(location);
        }
        if location.starts_with("//") {
            return Location::parse(&format!("{scheme}:{location}"));
        }
        let path = self.target.path();
        let target = match location.chars().next() {
            Some('/') => location.to_owned(),
            Some('?') => format!("{path}{location}"),
            Some('#') | None => self.target.as_str().to_owned(),
            Some(_) => {
                let folder = path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("/");
                format!("{folder}{location}")
            }
        };
        Location::parse(&format!("{scheme}://{}:{}{target}", self.host, self.port))
    }

    /// The `host` header: without a default port.
    pub(super) fn host_header(&self) -> String {
        if self.port == if self.tls { 443 } else { 80 } {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let colon = authority.get(after_bracket..).and_then(|rest| rest.find(':')).map(|at| at + after_bracket);
    let Some(colon) = colon else { return Ok((authority, None)) };
    let (host, port) = authority.split_at(colon);
    match port.strip_prefix(':').unwrap_or_default() {
        "" => Ok((host, None)),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
            Ok(0) | Err(_) => Err("the URL's port is not a port"),
            Ok(port) => Ok((host, Some(port))),
        },
        _ => Err("the URL's port is not a port"),
    }
}

fn read_host(text: &str) -> Result<Host, &'static str> {
    const WRONG: &str = "the URL's host is not a host";
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(WRONG)?;
        return inner.parse().map(|address| Host::Address(IpAddr::V6(address))).map_err(|_| WRONG);
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > MAX_HOST || !name.bytes().all(fits) || name.split('.').any(str::is_empty) {
        return Err(WRONG);
    }
    // As browsers and resolvers do: a name whose last label is a number is an address, or nothing.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_number {
        spelled(&name).map(|address| Host::Address(address.into())).ok_or(WRONG)
    } else {
        Ok(Host::Name(name))
    }
}

/// An IPv4 address in any spelling that a resolver takes: one to four numbers, each decimal, octal (`0`) or hexadecimal
/// (`0x`), the last of which fills the bytes that are left.
fn spelled(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut bits: u32 = 0;
    for part in first {
        bits = bits << 8 | u32::from(u8::try_from(*part).ok()?);
    }
    let left = 32 - 8 * u32::try_from(first.len()).ok()?;
    if left < 32 && *last >> left != 0 {
        return None;
    }
    Some(Ipv4Addr::from_bits(bits.checked_shl(left).unwrap_or(0) | last))
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign.
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(digits, radix).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> String {
        Location::parse(url).unwrap_or_else(|why| panic!("{url}: {why}")).host.to_string()
    }

    #[test]
    fn an_address_is_the_same_in_every_spelling() {
        for spelling in [
            "127.0.0.1",
            "127.0.0.1.",
            "2130706433",
            "0x7f000001",
            "0X7F000001",
            "017700000001",
            "127.1",
            "127.0.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7F.0.0x0.01",
            "127.0x000001",
        ] {
            assert_eq!(host(&format!("http://{spelling}/a.png")), "127.0.0.1", "{spelling}");
            assert!(Location::parse(&format!("http://{spelling}/")).unwrap().host != Host::Name(spelling.into()));
        }
        assert_eq!(host("https://[::ffff:7f00:1]:8443/"), "[::ffff:127.0.0.1]");
        assert_eq!(host("http://0/"), "0.0.0.0");
        assert_eq!(host("http://0x/"), "0.0.0.0");
        assert_eq!(host("http://4294967295/"), "255.255.255.255");
    }

    #[test]
    fn what_parsers_could_read_in_two_ways_is_refused() {
        for url in [
            "",
            "example.com/a.png",
            "//example.com/a.png",
            "ftp://example.com/a.png",
            "file:///etc/passwd",
            "gopher://example.com/",
            "data:image/png;base64,AA",
            "http:/example.com",
            "http://",
            "http:///etc",
            "http://?a",
            "http://user@example.com/",
            "http://user:pw@example.com/",
            "http://example.com@127.0.0.1/",
            "http://a@b@c/",
            "http://example.com\\@127.0.0.1/",
            "http://127.0.0.1\t/",
            "http://exam ple.com/",
            "http://ex\u{e4}mple.com/",
            "http://\u{ff11}27.0.0.1/",
            "http://127.0.0.1%2f@example.com/",
            "http://%31%32%37.0.0.1/",
            "http://example..com/",
            "http://.example.com/",
            "http://example.com../",
            "http://256.0.0.1/",
            "http://1.2.3.4.5/",
            "http://1.2.3.256/",
            "http://08.0.0.1/",
            "http://4294967296/",
            "http://0x1ffffffff/",
            "http://example.123/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[fe80::1%25eth0]/",
            "http://[127.0.0.1]/",
            "http://::1/",
            "http://example.com:0/",
            "http://example.com:65536/",
            "http://example.com:+80/",
            "http://example.com:80:80/",
            "http://example.com:x/",
        ] {
            assert!(Location::parse(url).is_err(), "{url}");
        }
        assert!(Location::parse(&format!("http://a.example/{}", "x".repeat(9000))).is_err());
        assert!(Location::parse(&format!("http://{}.example/", "x".repeat(260))).is_err());
    }

    #[test]
    fn a_url_keeps_its_path_and_query_and_loses_its_fragment() {
        let location = Location::parse("HTTPS://Img.Example.COM./a/b.png?w=1&h=2#top").unwrap();
        assert_eq!((location.tls, location.port, location.host.to_string().as_str()), (true, 443, "img.example.com"));
        assert_eq!(location.target, "/a/b.png?w=1&h=2");
        assert_eq!(location.host_header(), "img.example.com");
        let location = Location::parse("http://a.example:8080?q").unwrap();
        assert_eq!((location.target.as_str(), location.host_header().as_str()), ("/?q", "a.example:8080"));
        assert_eq!(Location::parse("http://a.example:/x").unwrap().port, 80);
    }

    #[test]
    fn a_redirect_leads_where_a_browser_would_go() {
        let here = Location::parse("https://a.example:8443/one/two?x=1").unwrap();
        let to = |location: &str| {
            let at = here.follow(location).unwrap();
            format!("{} {}:{} {}", at.tls, at.host, at.port, at.target)
        };
        assert_eq!(to("http://b.example/y"), "false b.example:80 /y");
        assert_eq!(to("//b.example/y"), "true b.example:443 /y");
        assert_eq!(to("/y?z"), "true a.example:8443 /y?z");
        assert_eq!(to("?z"), "true a.example:8443 /one/two?z");
        assert_eq!(to("three"), "true a.example:8443 /one/three");
        for bad in ["file:///etc/passwd", "javascript:x", "//u@b.example/", "http://b.example /"] {
            assert!(here.follow(bad).is_err(), "{bad}");
        }
    }
}
