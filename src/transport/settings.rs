//! The settings of a listener, from the configuration or from a test.

use std::{sync::Arc, time::Duration};

use axum::http::HeaderValue;
use ipnet::IpNet;

use authority_model::surfaces::Surfaces;

use super::{budget::Budget, tls::AddressTls};
use authority_config::Config;

/// A tenant's share is the number of connections divided by this.
const SHARES: usize = 4;

/// The surfaces of an address, and its limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The surfaces served here; paths of other surfaces return 404.
    pub surfaces: Surfaces,
    pub bounds: Bounds,
    /// The budget for the unread bytes of all connections; the node's addresses share it.
    pub budget: Arc<Budget>,
    /// Origins with pages that may call the service. If empty, responses have no CORS headers.
    pub origins: Arc<[HeaderValue]>,
    /// Networks of trusted peers; their `X-Forwarded-For` is used.
    pub trusted_proxies: Arc<[IpNet]>,
    /// Whether clients use https at a configured URL. If so, Strict-Transport-Security is sent.
    /// Without this URL, the host may be `localhost`, and the header would apply to all its ports.
    pub https: bool,
    /// TLS of the address; `None` without TLS.
    pub tls: Option<AddressTls>,
}

/// The limits of a connection.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub connections: usize,
    /// TLS handshakes in progress.
    pub handshakes: usize,
    /// Connections of one tenant; further connections are closed when they are idle.
    pub tenant_connections: usize,
    pub streams: u32,
    pub header_bytes: u32,
    pub body_bytes: u64,
    /// The unread response bytes at which an HTTP/2 peer's next requests wait. Except for a single
    /// large response, a connection never holds more than twice as many.
    pub unsent_bytes: u64,
    /// The longest time from accept to the detection of the protocol; with TLS, to the first byte
    /// after the handshake.
    pub first_byte: Duration,
    /// The longest time from the first byte of a request's head to its last byte.
    pub header: Duration,
    /// The longest time from a request's head to the end of its body.
    pub body: Duration,
    /// The longest time of a connection without a request.
    pub idle: Duration,
    /// The longest time without progress in reading a response.
    pub stalled: Duration,
    pub ping: Duration,
    pub pong: Duration,
    pub drain: Duration,
}

impl Settings {
    pub fn new(config: &Config, surfaces: Surfaces) -> Self {
        let origins =
            config.cors.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
        Self {
            surfaces,
            bounds: Bounds::new(config),
            budget: Budget::new(config.limits.node_unsent_bytes),
            origins: origins.collect(),
            trusted_proxies: config.trusted_proxies.as_slice().into(),
            https: config.listen.public_url.is_some() && config.https(),
            tls: None,
        }
    }
}

impl Bounds {
    fn new(config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            connections: limits.connections,
            handshakes: limits.handshakes,
            tenant_connections: limits.connections.div_ceil(SHARES),
            streams: limits.streams,
            header_bytes: limits.header_bytes,
            body_bytes: limits.body_bytes,
            unsent_bytes: limits.unsent_bytes,
            first_byte: Duration::from_secs(limits.first_byte_seconds),
            header: Duration::from_secs(limits.header_seconds),
            body: Duration::from_secs(limits.body_seconds),
            idle: Duration::from_secs(limits.idle_seconds),
            stalled: Duration::from_secs(limits.stalled_seconds),
            ping: Duration::from_secs(limits.ping_seconds),
            pong: Duration::from_secs(limits.pong_seconds),
            drain: Duration::from_secs(limits.drain_seconds),
        }
    }

    /// Sets the number of connections. At most half of them may be in a handshake: peers that never
    /// finish one could otherwise keep all others out.
    pub fn limit(&mut self, connections: usize) {
        self.connections = connections;
        self.handshakes = self.handshakes.min((connections / 2).max(1));
    }
}

impl Default for Settings {
    /// The limits of the default configuration, all surfaces.
    fn default() -> Self {
        Self::new(&Config::default(), Surfaces::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_leave_room_for_connections() {
        for (connections, handshakes) in [(1, 1), (2, 1), (16, 8), (100_000, 1000)] {
            let mut bounds = Settings::default().bounds;
            bounds.limit(connections);
            assert_eq!((bounds.connections, bounds.handshakes), (connections, handshakes));
        }
    }
}
