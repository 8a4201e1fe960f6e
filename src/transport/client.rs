//! The client's address: the socket's, or the one that a trusted proxy reports.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// In the extensions of every request that came through a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The peer of the socket.
    pub address: SocketAddr,
    /// The client; it differs from `address` only behind a trusted proxy.
    pub client: IpAddr,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let direct = address.ip().to_canonical();
        let client = if trusted.is_empty() { direct } else { forwarded(direct, headers, trusted) };
        Self { address, client }
    }
}

/// Walks `X-Forwarded-For` from its end, which the nearest proxy wrote, to the first address that is not a
/// trusted proxy; what comes before it is unverified.
fn forwarded(direct: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let known = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = direct;
    let lines: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
    let hops = lines.iter().rev().filter_map(|line| line.to_str().ok());
    for hop in hops.flat_map(|line| line.rsplit(',')) {
        if !known(&client) {
            break;
        }
        let Some(address) = parsed(hop.trim()) else { break };
        client = address;
    }
    client
}

fn parsed(hop: &str) -> Option<IpAddr> {
    let address = hop.parse().or_else(|_| hop.parse().map(|with: SocketAddr| with.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(direct: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        Peer::new(direct.parse().unwrap(), &headers, &trusted).client.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(client("192.0.2.1:5", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1:5", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("[::ffff:10.0.0.1]:5", &["198.51.100.7:99"]), "198.51.100.7");
    }

    #[test]
    fn what_the_client_itself_wrote_is_not() {
        assert_eq!(client("10.0.0.1:5", &["1.1.1.1, 198.51.100.7, 10.2.2.2"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1:5", &["1.1.1.1", "198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1:5", &["1.1.1.1, nonsense"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1:5", &[]), "10.0.0.1");
    }
}
