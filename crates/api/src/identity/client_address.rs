//! The address of a call's client.

use std::net::IpAddr;

use tonic::Request;

/// In the extensions of every call that came through a listener: the socket's peer, or the client that a trusted
/// proxy reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The client's address; `None` for a call within the process.
pub fn client_address<T>(call: &Request<T>) -> Option<IpAddr> {
    call.extensions().get::<ClientAddress>().map(|client| client.0)
}
