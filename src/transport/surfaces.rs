//! Assigns surfaces to addresses.
//!
//! One address serves all surfaces by default. A surface with its own address is served only there.
//! On other addresses its paths return 404, which lets a firewall separate the admin API.

use std::net::SocketAddr;

pub use authority_model::access::Surfaces;

use authority_core::config::Listen;

/// The addresses to listen on, each with its surfaces. `main` comes first and always exists, if
/// only for health checks.
pub fn plan(listen: &Listen) -> Vec<(SocketAddr, Surfaces)> {
    let own = [
        (listen.admin, Surfaces::ADMIN),
        (listen.app, Surfaces::APP),
        (listen.gateway, Surfaces::GATEWAY),
        (listen.site, Surfaces::SITE),
    ];
    let mut plan = vec![(listen.main, Surfaces::NONE)];
    for (address, surface) in own {
        let address = address.unwrap_or(listen.main);
        match plan.iter_mut().find(|(taken, _)| *taken == address) {
            Some((_, surfaces)) => *surfaces = surfaces.and(surface),
            None => plan.push((address, surface)),
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_share_what_is_not_split_off() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let listen = Listen { main: at(1), admin: Some(at(2)), ..Listen::default() };
        assert_eq!(
            plan(&listen),
            [(at(1), Surfaces::ALL.without(Surfaces::ADMIN)), (at(2), Surfaces::ADMIN)]
        );
        let same = Listen { admin: Some(at(1)), ..listen };
        assert_eq!(plan(&same), [(at(1), Surfaces::ALL)]);
    }
}
