//! Which addresses a client's URL may never lead to: whatever is not an ordinary host of the public network.
//!
//! From IANA's registries of special-purpose addresses (IPv4 and IPv6), with the clouds' own metadata services. IPv6 is
//! judged the other way round: only global unicast (`2000::/3`) is ordinary, less what is special in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address, bits, what it is.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address of \"this network\""),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's shared address"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's metadata service"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "an address of the IETF's protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a documentation address"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "an anycast address of AS112"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "an anycast address of AMT"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "an anycast address of AS112"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a benchmarking address"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "a documentation address"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a documentation address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// The same for IPv6. `::ffff:0:0/96` (an IPv4 address in another form) and `64:ff9b::/96` (one behind NAT64) are not
/// here: what they hold is judged instead.
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "the unspecified address"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    (Ipv6Addr::UNSPECIFIED, 96, "an IPv4-compatible address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "a translated IPv4 address"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "an address of local NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "a discarding address"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "a Teredo address"),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, "a benchmarking address"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "a documentation address"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "an address of the IETF's protocols"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a 6to4 address"),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, "an anycast address of AS112"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "a documentation address"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "an address of segment routing"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a unique local address"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local address"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a site-local address"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "a multicast address"),
];

const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// What is special about an address; `None` for an ordinary one of the public network.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let within = |first: Ipv4Addr, bits: u32| (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits;
    V4.iter().find(|(first, bits, _)| within(*first, *bits)).map(|(_, _, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let within = |first: Ipv6Addr, bits: u32| (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits;
    let [.., a, b, c, d] = address.octets();
    let last = Ipv4Addr::new(a, b, c, d);
    if within(NAT64.0, NAT64.1) {
        return special_v4(last);
    }
    if let Some((_, _, what)) = V6.iter().find(|(first, bits, _)| within(*first, *bits)) {
        return Some(what);
    }
    if !within(GLOBAL_UNICAST.0, GLOBAL_UNICAST.1) {
        return Some("an address outside of the public network");
    }
    // ISATAP hides an IPv4 address behind any prefix.
    let [_, _, _, _, flags, mark, _, _] = address.segments();
    if mark == 0x5efe && flags & !0x0300 == 0 { special_v4(last) } else { None }
}

/// Names that stand for something inside: of this machine, of the local network, of a cloud's own services.
pub(crate) fn inner_name(name: &str) -> bool {
    const ENDS: [&str; 8] = ["localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa"];
    let ends = |end: &&str| name == *end || name.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
    // A name without a dot is looked up below the machine's own domains.
    !name.contains('.') || ENDS.iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(text: &str) -> Option<&'static str> {
        special(text.parse().unwrap())
    }

    #[test]
    fn the_first_and_the_last_address_of_every_range_are_special_and_their_neighbours_are_not() {
        for (first, last, before, after) in [
            ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
            ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
            ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
            ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
            ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
            ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
            ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
            ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
            ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
            ("192.31.196.0", "192.31.196.255", Some("192.31.195.255"), Some("192.31.197.0")),
            ("192.52.193.0", "192.52.193.255", Some("192.52.192.255"), Some("192.52.194.0")),
            ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
            ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
            ("192.175.48.0", "192.175.48.255", Some("192.175.47.255"), Some("192.175.49.0")),
            ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
            ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
            ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
            ("224.0.0.0", "239.255.255.255", Some("223.255.255.255"), None),
            ("240.0.0.0", "255.255.255.255", None, None),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", None, None),
            ("100::", "100::ffff:ffff:ffff:ffff", None, None),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2001:200::")),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:db7:ffff::1"), Some("2001:db9::")),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:ffff::1"), Some("2003::")),
            ("2620:4f:8000::", "2620:4f:8000:ffff::1", Some("2620:4f:7fff::1"), Some("2620:4f:8001::")),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3ffe:ffff::1"), Some("3fff:1000::")),
            ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ] {
            assert!(what(first).is_some() && what(last).is_some(), "{first} to {last}");
            for neighbour in before.iter().chain(&after) {
                assert_eq!(what(neighbour), None, "{neighbour}");
            }
        }
    }

    #[test]
    fn what_is_in_no_range_of_ipv6_is_ordinary_only_as_global_unicast() {
        for outside in ["::", "::1", "::2", "1::1", "200::1", "1fff::1", "4000::1", "8000::1", "e000::1", "fe00::1"] {
            assert!(what(outside).is_some(), "{outside}");
        }
        for ordinary in ["2606:4700:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888", "3000::1"] {
            assert_eq!(what(ordinary), None, "{ordinary}");
        }
    }

    #[test]
    fn an_ipv4_address_in_another_form_counts_as_what_it_is() {
        for (inner, outer) in [("127.0.0.1", "8.8.8.8"), ("169.254.169.254", "1.1.1.1"), ("10.1.2.3", "93.184.216.34")]
        {
            for form in ["::ffff:", "64:ff9b::", "2a00:1450:4001:1::5efe:", "2a00:1450:4001:1:200:5efe:"] {
                assert!(what(&format!("{form}{inner}")).is_some(), "{form}{inner}");
                assert_eq!(what(&format!("{form}{outer}")), None, "{form}{outer}");
            }
            // These forms belong to no host that serves pictures, whatever they hold.
            for form in ["::", "::ffff:0:"] {
                assert!(what(&format!("{form}{outer}")).is_some(), "{form}{outer}");
            }
        }
    }

    #[test]
    fn names_of_something_inside_are_told_from_public_ones() {
        for name in [
            "localhost",
            "a.localhost",
            "metadata",
            "metadata.google.internal",
            "instance-data.ec2.internal",
            "printer.local",
            "nas.home.arpa",
            "intranet",
            "wiki.corp",
        ] {
            assert!(inner_name(name), "{name}");
        }
        for name in ["example.com", "localhost.example.com", "internal.example.com", "mylocal.example"] {
            assert!(!inner_name(name), "{name}");
        }
    }
}
