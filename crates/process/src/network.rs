//! Parses the networks in settings and allow-lists.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

/// The number of bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2).
const MAPPED: u8 = 96;

/// Parses a single address or a network (CIDR).
///
/// `::ffff:10.0.0.0/104` becomes `10.0.0.0/8`, since addresses of peers are compared as IPv4
/// addresses.
pub fn network(text: &str) -> Option<IpNet> {
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().or_else(|_| alone()).ok()?;
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(MAPPED)) {
        (IpAddr::V4(inner), Some(bits)) => Some(Ipv4Net::new(inner, bits).ok()?.into()),
        _ => Some(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_either_form_are_read() {
        for (text, expected) in [
            ("10.0.0.1", "10.0.0.1/32"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("fd00::/8", "fd00::/8"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/95", "::ffff:0.0.0.0/95"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "10.0.0.0/33", "localhost", "10.0.0"] {
            assert_eq!(network(text), None, "{text}");
        }
    }
}
