//! The address of a call's client.

use std::net::IpAddr;

use tonic::Request;

/// The address of a call's client. Calls that came through a listener have it in their extensions.
///
/// It is the socket's peer, or the client that a trusted proxy reports. It is absent if the address
/// is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// Returns the client's address. `None` if a trusted proxy's report is unreadable, and for a call
/// within the process.
pub fn client_address<T>(call: &Request<T>) -> Option<IpAddr> {
    call.extensions().get::<ClientAddress>().map(|client| client.0)
}
