//! What is asked of a server, again and again: bytes made ahead, and how an answer is judged.

use std::net::SocketAddr;

/// One call, and where to.
pub(crate) struct Call {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) path: &'static str,
    /// `authorization`, where the server wants one.
    pub(crate) credential: Option<String>,
    /// The message, or the JSON.
    pub(crate) body: Vec<u8>,
    /// Whether an answer's message or JSON says yes to everything asked.
    pub(crate) allowed: fn(&[u8]) -> bool,
    /// Decisions a call.
    pub(crate) decisions: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// JSON over HTTP/1.1, kept alive.
    Rest,
}

/// How many calls are under way at once.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) connections: usize,
    /// Calls a connection; one for HTTP/1.1.
    pub(crate) streams: usize,
}

impl Shape {
    pub(crate) const fn new(connections: usize, streams: usize) -> Self {
        Self { connections, streams }
    }
}
