//! Maps paths to surfaces. A gRPC method belongs to the surfaces of its HTTP bindings.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use percent_encoding::percent_decode_str;

use crate::access::{Binding, RULES};

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

    /// The surfaces of both sets.
    #[must_use]
    pub const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the surfaces of an HTTP path, a gRPC path or the template of a binding.
    pub fn of(path: &str) -> Self {
        if let Some(surfaces) = METHODS.get(path) {
            return *surfaces;
        }
        Self::of_http(path)
    }

    /// Whether an address with these surfaces serves `path`.
    pub fn serve(self, path: &str) -> bool {
        self == Self::ALL || is_everywhere(path) || self.meets(Self::of(path))
    }

    fn of_http(path: &str) -> Self {
        if is_everywhere(path) {
            return Self::ALL;
        }
        let path = &*decoded(path);
        let owner = OWNERS.iter().find(|(rule, _)| rule.covers(path));
        owner.map_or(UNLISTED, |(_, surfaces)| *surfaces)
    }
}

/// Percent-decodes each segment that a rule can depend on.
///
/// The gateway compares decoded segments with its routes. Without this, `/%76%31/decisions` would
/// belong to another surface than `/v1/decisions`, although both have the same route.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.split('/').take(DEEPEST + 1).any(|segment| segment.contains('%')) {
        return Cow::Borrowed(path);
    }
    let segments = path.split('/').enumerate().map(|(place, segment)| {
        let decoded = percent_decode_str(segment).decode_utf8().ok();
        // A decoded `/` is a part of the segment: such a segment is not in any rule.
        let decoded = decoded.filter(|text| place <= DEEPEST && !text.contains('/'));
        decoded.unwrap_or(Cow::Borrowed(segment))
    });
    Cow::Owned(segments.collect::<Vec<_>>().join("/"))
}

/// Whether a path is a health check.
pub fn is_health(path: &str) -> bool {
    HEALTH.iter().any(|rule| rule.covers(path))
}

/// Maps each of our methods to the surfaces of all its bindings.
static METHODS: LazyLock<HashMap<&'static str, Surfaces>> = LazyLock::new(|| {
    let of = |(rpc, bindings): &(&'static str, &[Binding])| {
        let surfaces = bindings.iter().map(|binding| Surfaces::of_http(binding.path));
        (*rpc, surfaces.fold(Surfaces::NONE, Surfaces::and))
    };
    RULES.iter().map(of).collect()
});

enum Rule {
    /// Exactly this path.
    Path(&'static str),
    /// This path and all paths below it.
    Under(&'static str),
    /// Every service of a gRPC package outside this project.
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

/// The surface of a path without a rule, and of a method without an HTTP binding.
///
/// It is the surface with the fewest callers.
const UNLISTED: Surfaces = Surfaces::ADMIN;

/// Paths that every address serves, besides [`HEALTH`].
const EVERYWHERE: &[Rule] = &[Path("/"), Package("grpc.reflection")];

/// The health checks.
const HEALTH: &[Rule] = &[Under("/health"), Package("grpc.health.v1")];

fn is_everywhere(path: &str) -> bool {
    is_health(path) || EVERYWHERE.iter().any(|rule| rule.covers(path))
}

/// The most segments in a rule's path.
const DEEPEST: usize = 3;

/// The surfaces of each path. The first rule that covers a path applies: narrow rules come before
/// wide rules.
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
    (Under("/docs"), Surfaces::GATEWAY),
    (Path("/openapi.json"), Surfaces::GATEWAY),
    // Pages for people. They call the API at the address that serves the page.
    (Under("/console"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/dev-idp"), Surfaces::ADMIN.and(Surfaces::APP)),
    (Under("/receipts"), Surfaces::GATEWAY),
    (Under("/widgets"), Surfaces::GATEWAY.and(Surfaces::SITE)),
    (Under("/schemas"), Surfaces::GATEWAY),
    (Under("/.well-known"), Surfaces::GATEWAY),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_is_deeper_than_decoded() {
        for (rule, _) in OWNERS {
            let (Path(path) | Under(path) | Package(path)) = rule;
            assert!(path.split('/').count() <= DEEPEST + 1, "{path}");
        }
    }

    #[test]
    fn a_path_is_served_by_its_surface_alone() {
        let two = Surfaces::APP.and(Surfaces::GATEWAY);
        let three = two.and(Surfaces::ADMIN);
        for (path, surfaces) in [
            ("/api/v1/tenants", Surfaces::ADMIN),
            ("/api/v1/application", Surfaces::ADMIN),
            ("/api/v1/app/consultants", Surfaces::APP),
            ("/api/v1/runtime/evaluate", Surfaces::APP),
            ("/v1/decisions:batchEvaluate", Surfaces::GATEWAY),
            ("/v1beta", Surfaces::ADMIN),
            ("/console/approvals", Surfaces::ADMIN.and(Surfaces::APP)),
            ("/consoles", Surfaces::ADMIN),
            ("/authority.registry.v1.TenantService/CreateTenant", Surfaces::ADMIN),
            ("/authority.runtime.v1.RuntimeService/Evaluate", Surfaces::APP),
            ("/authority.runtime.v1.RuntimeService/Authorize", Surfaces::GATEWAY),
            ("/authority.runtime.v1.DecisionService/SimulateDecision", three),
            ("/authority.runtime.v1.RuntimeService/NoSuch", Surfaces::ADMIN),
            ("/authority.delegation.v1.DelegationService/NarrowDelegation", Surfaces::ADMIN),
            ("/authority.delegation.v1.DelegationService/CreateDelegation", three),
            ("/authority.registry.v1.StopSignalService/CreateStopSignal", three),
            ("/authority.directory.v1.DirectoryService/CheckHealth", Surfaces::ALL),
            ("/never/heard/of", Surfaces::ADMIN),
            // The gateway decodes the segments of a path.
            ("/%76%31/decisions/a%2Fb", Surfaces::GATEWAY),
            ("/v1/decisions/svc%3Adecision%3A1", Surfaces::GATEWAY),
            ("/api/v1/%61pp/consultants", Surfaces::APP),
            ("/api/v1/%72untime/evaluate", Surfaces::APP),
            ("/api/v1/app%2Fconsultants", Surfaces::ADMIN),
            ("/api/v1/%ff", Surfaces::ADMIN),
            ("/api/v1/runtime%3Ax", Surfaces::APP),
            ("//console", Surfaces::ADMIN),
            ("/console%2f..", Surfaces::ADMIN),
            ("", Surfaces::ADMIN),
            ("/health/ready", Surfaces::ALL),
            ("/", Surfaces::ALL),
        ] {
            for one in [Surfaces::ADMIN, Surfaces::APP, Surfaces::GATEWAY, Surfaces::SITE] {
                assert_eq!(one.serve(path), surfaces.meets(one), "{path} on {one:?}");
            }
            assert!(Surfaces::ALL.serve(path));
        }
        assert!(Surfaces::NONE.serve("/health"));
        for (path, expected) in [
            ("/health", true),
            ("/health/ready", true),
            ("/grpc.health.v1.Health/Check", true),
            ("/healthy", false),
            ("/%68ealth", false),
            ("/", false),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false),
        ] {
            assert_eq!(is_health(path), expected, "{path}");
        }
        assert!(!Surfaces::NONE.serve("/authority.registry.v1.TenantService/CreateTenant"));
    }
}
