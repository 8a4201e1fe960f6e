//! The settings of a listener; made from the configuration, or by hand in a test.

use std::{sync::Arc, time::Duration};

use axum::http::HeaderValue;
use ipnet::IpNet;

use super::{budget::Budget, surfaces::Surfaces};
use authority_core::config::Config;

/// A tenant's share of the connections is this part.
const SHARES: usize = 4;

/// What an address serves, and its limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The surfaces served here; the paths of others are a 404.
    pub surfaces: Surfaces,
    pub bounds: Bounds,
    /// The budget for the unread bytes of all connections; the node's addresses share it.
    pub budget: Arc<Budget>,
    /// Origins whose pages may call; if empty, there are no CORS headers.
    pub origins: Arc<[HeaderValue]>,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Arc<[IpNet]>,
    /// Whether clients use https: then Strict-Transport-Security is sent.
    pub https: bool,
}

/// The limits of a connection.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub connections: usize,
    /// Connections of one tenant; further ones are closed when they are idle.
    pub tenant_connections: usize,
    pub streams: u32,
    pub header_bytes: u32,
    pub body_bytes: u64,
    /// The unread response bytes at which an HTTP/2 peer's next requests wait; twice as many are never
    /// held.
    pub unsent_bytes: u64,
    /// From accept to the detection of the protocol.
    pub first_byte: Duration,
    /// From the first byte of a request's head to its last.
    pub header: Duration,
    /// From a request's head to the end of its body.
    pub body: Duration,
    /// A connection without a request.
    pub idle: Duration,
    /// A peer that reads nothing of a response.
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
            https: config.https(),
        }
    }
}

impl Bounds {
    fn new(config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            connections: limits.connections,
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
}

impl Default for Settings {
    /// The limits of the default configuration, all surfaces.
    fn default() -> Self {
        Self::new(&Config::default(), Surfaces::ALL)
    }
}
