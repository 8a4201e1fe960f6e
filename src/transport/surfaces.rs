//! Which paths belong to which surface, and which address serves which surfaces.
//!
//! One address serves all by default. A surface with an address of its own is served there alone:
//! its paths are a 404 elsewhere, so that a firewall can keep the admin API apart.

use std::net::SocketAddr;

use crate::config::Listen;

/// A set of surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surfaces(u8);

impl Surfaces {
    pub const NONE: Self = Self(0);
    pub const ADMIN: Self = Self(1);
    pub const APP: Self = Self(2);
    pub const GATEWAY: Self = Self(4);
    pub const SITE: Self = Self(8);
    pub const ALL: Self = Self(15);

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether an address of these surfaces answers `path`.
    pub fn serve(self, path: &str) -> bool {
        self == Self::ALL || EVERYWHERE.iter().any(|rule| rule.covers(path)) || {
            let owner = OWNERS.iter().find(|(rule, _)| rule.covers(path));
            self.meets(owner.map_or(UNLISTED, |(_, surfaces)| *surfaces))
        }
    }
}

/// The addresses to listen on, each with what it serves. `main` comes first and always exists,
/// if only for health.
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

enum Rule {
    /// This path alone.
    Path(&'static str),
    /// This path and all under it.
    Under(&'static str),
    /// Every service of a gRPC package.
    Package(&'static str),
}
use Rule::{Package, Path, Under};

impl Rule {
    fn covers(&self, path: &str) -> bool {
        match self {
            Path(exact) => path == *exact,
            Under(prefix) => path
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':'])),
            Package(package) => path
                .strip_prefix('/')
                .and_then(|path| path.strip_prefix(package))
                .is_some_and(|rest| rest.starts_with('.')),
        }
    }
}

/// A path that no rule names is kept where the fewest can reach it.
const UNLISTED: Surfaces = Surfaces::ADMIN;

const EVERYWHERE: &[Rule] =
    &[Path("/"), Under("/health"), Package("grpc.health.v1"), Package("grpc.reflection")];

/// The first that covers a path counts: the narrow before the wide.
const OWNERS: &[(Rule, Surfaces)] = &[
    (Under("/api/v1/app"), Surfaces::APP),
    (Under("/api/v1/runtime"), Surfaces::APP),
    (Under("/api/v1/reality-anchors"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/api/v1/reality-snapshots"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/api/v1/reality-coupling-checks"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/api/v1/stable-drift-events"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/api/v1"), Surfaces::ADMIN),
    (Under("/api/consultant-lead"), Surfaces::SITE),
    (Under("/v1/directory"), Surfaces::GATEWAY.and(Surfaces::SITE)),
    (Under("/v1"), Surfaces::GATEWAY),
    (Under("/openapi"), Surfaces::GATEWAY),
    (Path("/openapi.json"), Surfaces::GATEWAY),
    (Under("/receipts"), Surfaces::GATEWAY),
    (Under("/schemas"), Surfaces::GATEWAY),
    (Under("/.well-known"), Surfaces::GATEWAY),
    (Package("authority.runtime.v1"), Surfaces::APP.and(Surfaces::GATEWAY)),
    (Package("authority.directory.v1"), Surfaces::GATEWAY.and(Surfaces::SITE)),
    (Package("authority.delegation.v1"), Surfaces::ADMIN.and(Surfaces::GATEWAY)),
    (Package("authority.evidence.v1"), Surfaces::ADMIN.and(Surfaces::GATEWAY)),
    (Package("authority.events.v1"), Surfaces::ADMIN.and(Surfaces::GATEWAY)),
    (Package("authority.approval.v1"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Package("authority.programme.v1"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Package("authority.reality.v1"), Surfaces::ADMIN.and(Surfaces::APP)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_served_by_its_surface_alone() {
        for (path, surfaces) in [
            ("/api/v1/tenants", Surfaces::ADMIN),
            ("/api/v1/application", Surfaces::ADMIN),
            ("/api/v1/app/consultants", Surfaces::APP),
            ("/api/v1/runtime/evaluate", Surfaces::APP),
            ("/v1/decisions:batchEvaluate", Surfaces::GATEWAY),
            ("/v1beta", Surfaces::ADMIN),
            ("/authority.registry.v1.TenantService/Create", Surfaces::ADMIN),
            ("/authority.runtime.v1.RuntimeService/Evaluate", Surfaces::APP.and(Surfaces::GATEWAY)),
            ("/never/heard/of", Surfaces::ADMIN),
            ("/health/ready", Surfaces::ALL),
            ("/", Surfaces::ALL),
        ] {
            for one in [Surfaces::ADMIN, Surfaces::APP, Surfaces::GATEWAY, Surfaces::SITE] {
                assert_eq!(one.serve(path), surfaces.meets(one), "{path} on {one:?}");
            }
            assert!(Surfaces::ALL.serve(path));
        }
        assert!(Surfaces::NONE.serve("/health"));
    }

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
