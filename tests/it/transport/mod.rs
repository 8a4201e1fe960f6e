//! The transport on real sockets: limits on clients, and the headers of every response.

mod cancelled;
mod client_address;
mod connections;
mod descriptors;
mod drain;
mod heads;
mod http2;
mod response;
mod server;
mod tenant_streams;
mod tls;
mod unread;
