//! The repeated request to a server, encoded ahead, and the check of its responses.

use std::{borrow::Cow, net::SocketAddr};

/// A call and its destination.
pub(crate) struct Call {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) path: Cow<'static, str>,
    /// `authorization`, if the server needs one.
    pub(crate) credential: Option<String>,
    /// The message, or the JSON.
    pub(crate) body: Vec<u8>,
    /// Whether a response's message or JSON allows everything requested.
    pub(crate) allowed: fn(&[u8]) -> bool,
    /// Decisions in each call.
    pub(crate) decisions: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// JSON over HTTP/1.1 with keep-alive.
    Rest,
}

/// The number of concurrent calls.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) connections: usize,
    /// Concurrent calls on each connection; one for HTTP/1.1.
    pub(crate) streams: usize,
}

impl Shape {
    pub(crate) const fn new(connections: usize, streams: usize) -> Self {
        Self { connections, streams }
    }
}
