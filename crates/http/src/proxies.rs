//! Who may say which user stands behind a shared key: peers by their address, and nobody else.

use crate::accept::Peer;
use http::{HeaderMap, HeaderName};
use std::net::IpAddr;

/// A peer whose word is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedPeer {
    /// Whoever has an address of this network.
    Net(Net),
    /// Whoever connects to a Unix socket of the gateway.
    Unix,
}

/// A network: the addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    /// `10.0.0.0/8`, `2001:db8::/32`, or one address.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Net, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let wrong =
            || format!("{text:?} is no network; it takes \"10.0.0.0/8\", \"2001:db8::/32\", one address or \"unix\"");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
            None => most,
        };
        let first = masked(address, bits);
        if first != address {
            return Err(format!("{text:?} has bits beyond its network; it is {first}/{bits}, or one address"));
        }
        Ok(Net { address, bits })
    }

    /// Every address of its kind.
    pub fn is_everyone(&self) -> bool {
        self.bits == 0
    }

    /// The address is in it. An IPv4 address that a peer has as an IPv6 one counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

/// The address with all but its first bits cleared.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

/// Whose word is taken, and where it is found.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// The peers.
    pub trusted: Vec<TrustedPeer>,
    /// The header that holds the user.
    pub user_header: Option<HeaderName>,
}

/// The longest name of a user, in bytes.
const USER_BYTES: usize = 256;

impl Proxies {
    /// The user that a trusted peer names; `None` if it names none, or more than one, or nobody trusts it. A peer that is
    /// not known is not trusted.
    pub fn user<'a>(&self, peer: Option<&Peer>, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.user_header.as_ref()?;
        let trusts = |trusted: &TrustedPeer| match (trusted, peer) {
            (TrustedPeer::Net(net), Some(Peer::Tcp(address))) => net.contains(address.ip()),
            (TrustedPeer::Unix, Some(Peer::Unix)) => true,
            (TrustedPeer::Net(_), Some(Peer::Unix) | None) | (TrustedPeer::Unix, Some(Peer::Tcp(_)) | None) => false,
        };
        if !self.trusted.iter().any(trusts) {
            return None;
        }
        let mut values = headers.get_all(name).iter();
        // Two values are no user: the first may be the client's own, which the proxy has only added to.
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let user = value.to_str().ok()?.trim();
        (!user.is_empty() && user.len() <= USER_BYTES).then_some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn proxies(trusted: &[&str]) -> Proxies {
        let peer = |text: &&str| match *text {
            "unix" => TrustedPeer::Unix,
            text => TrustedPeer::Net(Net::parse(text).unwrap()),
        };
        let user_header = Some(HeaderName::from_static("x-user"));
        Proxies { trusted: trusted.iter().map(peer).collect(), user_header }
    }

    fn user(trusted: &[&str], peer: Option<Peer>) -> bool {
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-user"), HeaderValue::from_static("ann"))]);
        proxies(trusted).user(peer.as_ref(), &headers) == Some("ann")
    }

    fn tcp(address: &str) -> Option<Peer> {
        Some(Peer::Tcp((address.parse::<IpAddr>().unwrap(), 1).into()))
    }

    #[test]
    fn a_network_is_told_by_its_first_bits() {
        for (net, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.0"),
            ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
            ("0.0.0.0/0", "255.1.2.3", "2001:db8::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let net_of = Net::parse(net).unwrap();
            assert!(net_of.contains(inside.parse().unwrap()), "{net} {inside}");
            assert!(!net_of.contains(outside.parse().unwrap()), "{net} {outside}");
        }
        for wrong in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.1/8", "example.org", "::/129", "10.0.0.0/-1", ""] {
            assert!(Net::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_trusted_peer_names_a_user() {
        assert!(user(&["10.0.0.0/8", "unix"], tcp("10.1.1.1")));
        assert!(!user(&["10.0.0.0/8", "unix"], tcp("127.0.0.1")));
        assert!(user(&["unix"], Some(Peer::Unix)));
        assert!(!user(&["0.0.0.0/0", "::/0"], Some(Peer::Unix)));
        assert!(!user(&["unix", "0.0.0.0/0", "::/0"], None));
        assert!(!user(&[], tcp("127.0.0.1")));
    }

    #[test]
    fn a_user_is_one_value_and_not_empty() {
        let peer = tcp("10.1.1.1");
        let named = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-user", HeaderValue::from_str(value).unwrap());
            }
            proxies(&["10.0.0.0/8"]).user(peer.as_ref(), &headers).map(str::to_owned)
        };
        assert_eq!(named(&[" ann "]), Some("ann".to_owned()));
        let long = "u".repeat(257);
        for none in [&[][..], &[""], &["  "], &["ann", "bob"], &[long.as_str()]] {
            assert_eq!(named(none), None, "{none:?}");
        }
    }
}
