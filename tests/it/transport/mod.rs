//! The transport on real sockets: limits on peers, and the headers of every response.

mod connections;
mod descriptors;
mod drain;
mod http2;
mod response;
mod server;
mod tenant_streams;
