//! The request that a load repeats, encoded in advance, and the check of its responses.

use std::{borrow::Cow, net::SocketAddr};

/// A call and its destination.
pub(crate) struct Call {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) path: Cow<'static, str>,
    /// The `authorization` header, if the server requires a credential.
    pub(crate) credential: Option<String>,
    /// The protobuf message, or the JSON text.
    pub(crate) body: Vec<u8>,
    /// Returns whether a response allows all requested actions. Its body is a message or JSON.
    pub(crate) allowed: fn(&[u8]) -> bool,
    /// The number of decisions in each call.
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
