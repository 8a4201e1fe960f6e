//! Assigns surfaces to addresses.
//!
//! One address serves all surfaces by default. A surface with its own address is served only there.
//! On other addresses its paths return 404, which lets a firewall separate the admin API.

use std::net::SocketAddr;

use authority_model::surfaces::Surfaces;

use super::Listen;

impl Listen {
    /// The addresses to listen on, each with its surfaces. `main` comes first and always exists,
    /// even if it serves only health checks.
    pub fn plan(&self) -> Vec<(SocketAddr, Surfaces)> {
        let own = [
            (self.admin, Surfaces::ADMIN),
            (self.app, Surfaces::APP),
            (self.gateway, Surfaces::GATEWAY),
            (self.site, Surfaces::SITE),
        ];
        let mut plan = vec![(self.main, Surfaces::NONE)];
        for (address, surface) in own {
            let address = address.unwrap_or(self.main);
            match plan.iter_mut().find(|(taken, _)| *taken == address) {
                Some((_, surfaces)) => *surfaces = surfaces.and(surface),
                None => plan.push((address, surface)),
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_share_what_is_not_split_off() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let listen = Listen { main: at(1), admin: Some(at(2)), ..Listen::default() };
        assert_eq!(
            listen.plan(),
            [(at(1), Surfaces::ALL.without(Surfaces::ADMIN)), (at(2), Surfaces::ADMIN)]
        );
        let same = Listen { admin: Some(at(1)), ..listen };
        assert_eq!(same.plan(), [(at(1), Surfaces::ALL)]);
    }
}
