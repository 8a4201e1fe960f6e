//! The addresses that the service listens on.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::transport::Surfaces;
use authority_config::{Config, Listen};

/// An address that the service cannot listen on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}; set another address with {setting}")]
pub struct ListenError {
    address: SocketAddr,
    error: io::Error,
    /// The setting of the address.
    setting: &'static str,
}

/// All addresses of the service, bound.
///
/// An address in use by another process is found before the service starts. Connections are refused
/// until [`Addresses::listen`].
pub(super) struct Addresses {
    surfaces: Vec<(Address, Surfaces)>,
    ops: Address,
}

impl Addresses {
    pub(super) fn take(config: &Config) -> Result<Self, ListenError> {
        let listen = &config.listen;
        let mut surfaces = Vec::new();
        for (address, served) in listen.plan() {
            surfaces.push((Address::take(address, setting(listen, address))?, served));
        }
        let ops = Address::take(listen.ops, OPS_SETTING)?;
        if surfaces.iter().any(|(surface, _)| surface.address == ops.address) {
            let error = io::ErrorKind::AddrInUse.into();
            return Err(ListenError { address: ops.address, error, setting: OPS_SETTING });
        }
        Ok(Self { surfaces, ops })
    }

    pub(super) fn listen(self) -> Result<Listening, ListenError> {
        let mut surfaces = Vec::new();
        for (address, served) in self.surfaces {
            surfaces.push((address.listen()?, served));
        }
        Ok(Listening { surfaces, ops: self.ops.listen()? })
    }
}

/// A bound address, and its setting.
struct Address {
    address: SocketAddr,
    setting: &'static str,
    socket: TcpSocket,
}

impl Address {
    fn take(address: SocketAddr, setting: &'static str) -> Result<Self, ListenError> {
        let failed = |error| ListenError { address, error, setting };
        let socket = bound(address).map_err(failed)?;
        // For port 0, the system chose a port for this socket.
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { address, setting, socket })
    }

    fn listen(self) -> Result<TcpListener, ListenError> {
        let Self { address, setting, socket } = self;
        socket.listen(BACKLOG).map_err(|error| ListenError { address, error, setting })
    }
}

/// The setting of the metrics address.
const OPS_SETTING: &str = "`listen.ops` (AGENT_AUTHORITY__LISTEN__OPS), for metrics";

/// Returns the setting of a surface's address.
fn setting(listen: &Listen, address: SocketAddr) -> &'static str {
    let own = [
        (listen.admin, "`listen.admin` (AGENT_AUTHORITY__LISTEN__ADMIN)"),
        (listen.app, "`listen.app` (AGENT_AUTHORITY__LISTEN__APP)"),
        (listen.gateway, "`listen.gateway` (AGENT_AUTHORITY__LISTEN__GATEWAY)"),
        (listen.site, "`listen.site` (AGENT_AUTHORITY__LISTEN__SITE)"),
    ];
    let own = own.iter().find(|(own, _)| address != listen.main && *own == Some(address));
    own.map_or("--listen", |(_, setting)| setting)
}

/// Every address that the service listens on.
pub(super) struct Listening {
    pub(super) surfaces: Vec<(TcpListener, Surfaces)>,
    pub(super) ops: TcpListener,
}

/// The backlog of connections that wait to be accepted. Beyond it the kernel drops a client's first
/// packet, and the client tries again a second later.
const BACKLOG: u32 = 1024;

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As in `TcpListener::bind`: a restart need not wait until old connections have timed out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{net::TcpStream, time::timeout};

    use super::*;

    /// Checks that more than 128 connections, the backlog of `TcpListener::bind`, can wait without
    /// a repeated packet.
    #[tokio::test]
    async fn many_may_wait_to_be_accepted() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Address::take(any, "").unwrap().listen().unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..300 {
            let connected = timeout(Duration::from_millis(900), TcpStream::connect(address)).await;
            waiting.push(connected.expect("the kernel takes it").unwrap());
        }
        assert_eq!(waiting.len(), 300);
    }
}
