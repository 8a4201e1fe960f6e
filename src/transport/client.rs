//! The client's address: from the socket, or from a trusted proxy's report.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The peer of a request, in the extensions of every request that came through a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The peer of the socket.
    pub address: SocketAddr,
    /// The client; it differs from `address` only behind a trusted proxy. `None` if a trusted proxy
    /// reports an invalid address: the client is then unknown, and is never assumed to be the
    /// proxy.
    pub client: Option<IpAddr>,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let direct = address.ip().to_canonical();
        let client =
            if trusted.is_empty() { Some(direct) } else { forwarded(direct, headers, trusted) };
        Self { address, client }
    }
}

/// Finds the last address in `X-Forwarded-For` that isn't a trusted proxy.
///
/// It walks back from the end, which the nearest proxy wrote; earlier entries are unverified. Hops
/// are parsed as bytes: a proxy may append the client's address to a header line that the client
/// sent, and that line can contain arbitrary bytes.
fn forwarded(direct: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = direct;
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    for hop in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        if !is_trusted(&client) {
            break;
        }
        client = parsed(hop)?;
    }
    Some(client)
}

/// Parses an address, with or without a port (`192.0.2.1:80`, `[2001:db8::1]:80`).
///
/// An address with a zone is refused: a zone has no meaning beyond its own link.
fn parsed(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop.trim_ascii()).ok().filter(|hop| !hop.contains('%'))?;
    let address = hop.parse().or_else(|_| hop.parse().map(|with: SocketAddr| with.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(direct: &str, forwarded: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let client = Peer::new(direct.parse().unwrap(), &headers, &trusted).client;
        client.map_or_else(|| "none".to_owned(), |client| client.to_string())
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(client("192.0.2.1:5", &[b"198.51.100.7"]), "192.0.2.1");
        assert_eq!(client("192.0.2.1:5", &[b"\xff"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1:5", &[b"198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("[::ffff:10.0.0.1]:5", &[b"198.51.100.7:99"]), "198.51.100.7");
        assert_eq!(client("[fd00::1]:5", &[b"[2001:db8::7]:99"]), "2001:db8::7");
    }

    #[test]
    fn what_the_client_itself_wrote_is_not() {
        let twice: [&[u8]; 2] = [b"1.1.1.1", b"198.51.100.7"];
        assert_eq!(client("10.0.0.1:5", &twice), "198.51.100.7");
        let inner: [&[u8]; 1] = [b"1.1.1.1, 198.51.100.7, 10.2.2.2"];
        assert_eq!(client("10.0.0.1:5", &inner), "198.51.100.7");
        assert_eq!(client("10.0.0.1:5", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1:5", &[b"10.0.0.2"]), "10.0.0.2");
    }

    /// nginx appends the client's address to the line that the client sent.
    #[test]
    fn any_bytes_before_the_proxys_own_entry_are_passed_over() {
        for said in [&b"\xff"[..], b"\xc3\xa9", b"zz", b"", b"10.0.0.1", b"fe80::1%lo"] {
            let line = [said, b", 203.0.113.9"].concat();
            assert_eq!(client("10.0.0.1:5", &[&line]), "203.0.113.9", "{said:?}");
            let lines: [&[u8]; 2] = [said, b"203.0.113.9"];
            assert_eq!(client("10.0.0.1:5", &lines), "203.0.113.9", "{said:?}");
        }
    }

    #[test]
    fn a_proxys_entry_that_is_no_address_leaves_none() {
        for hop in [
            &b"\xff"[..],
            b"\xc3\xa9",
            b"203.0.113.9\xff",
            b"zz",
            b"",
            b" \t ",
            b"unknown",
            b"_hidden",
            b"fe80::1%lo",
            b"fe80::1%1",
            b"[fe80::1%1]:80",
            b"[2001:db8::7]",
            b"203.0.113.9:",
            b"203.0.113.9:http",
            b"203.0.113.9:65536",
            b"203.0.113.09",
            b"203.0.113",
            b"3405803785",
            b"203.0.113.9/32",
            b"\"203.0.113.9\"",
            b"for=203.0.113.9",
            b"203.0.113.9;203.0.113.8",
        ] {
            assert_eq!(client("10.0.0.1:5", &[hop]), "none", "{hop:?}");
            let line = [b"203.0.113.9, ", hop].concat();
            assert_eq!(client("10.0.0.1:5", &[&line]), "none", "{hop:?}");
            let lines: [&[u8]; 2] = [b"203.0.113.9", hop];
            assert_eq!(client("10.0.0.1:5", &lines), "none", "{hop:?}");
            // Behind two trusted proxies.
            let line = [hop, b", 10.0.0.2"].concat();
            assert_eq!(client("10.0.0.1:5", &[&line]), "none", "{hop:?}");
        }
    }
}
