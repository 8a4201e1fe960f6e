//! The transport on real sockets: what peers may do to it, and what every answer wears.

mod connections;
mod descriptors;
mod drain;
mod http2;
mod response;
mod server;
