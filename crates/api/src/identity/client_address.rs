//! The address of a call's client.

use std::net::IpAddr;

use tonic::Request;

/// In the extensions of a call that came through a listener, if its client's address is known: the socket's peer, or
/// the client that a trusted proxy reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The client's address; `None` if a trusted proxy's report of it cannot be read, and for a call within the process.
pub fn client_address<T>(call: &Request<T>) -> Option<IpAddr> {
    call.extensions().get::<ClientAddress>().map(|client| client.0)
}
