//! The permitted calls of a connection's peer. They depend on the peer's certificate alone. This
//! check comes before every other.

use authority_api::error::{ApiError, ErrorCode};
use authority_model::surfaces::{Surfaces, is_health};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) struct Admission {
    /// The surfaces that the peer may call.
    pub(in crate::transport) surfaces: Surfaces,
    /// Whether the peer may call the health checks even without a surface.
    pub(super) has_health: bool,
    pub(super) has_certificate: bool,
}

impl Admission {
    /// Of every peer if the settings have no certificate authority for clients.
    pub(in crate::transport) const EVERYTHING: Self =
        Self { surfaces: Surfaces::ALL, has_health: true, has_certificate: false };

    /// Returns why the peer may not call a path, if it may not.
    pub(in crate::transport) fn refusal(self, path: &str) -> Option<ApiError> {
        let may = if self.surfaces == Surfaces::NONE {
            self.has_health && is_health(path)
        } else {
            self.surfaces.serve(path)
        };
        if may {
            return None;
        }
        let text = if self.has_certificate {
            "no name in the client certificate may call this path; the operator lists the names \
             of clients in `tls`"
        } else {
            "this path needs a client certificate with a name that the operator has listed"
        };
        Some(ApiError::new(ErrorCode::Forbidden, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_needs_its_surface() {
        let of = |surfaces, has_health| Admission { surfaces, has_health, has_certificate: true };
        let app = of(Surfaces::APP, false);
        let none = of(Surfaces::NONE, false);
        let health = of(Surfaces::NONE, true);
        for (path, by_app, by_none, by_health) in [
            ("/api/v1/runtime/evaluate", true, false, false),
            ("/authority.runtime.v1.RuntimeService/Evaluate", true, false, false),
            ("/console/approvals", true, false, false),
            ("/api/v1/tenants", false, false, false),
            ("/api/v1/app%2F../tenants", false, false, false),
            ("/authority.registry.v1.TenantService/CreateTenant", false, false, false),
            ("//console", false, false, false),
            ("/console%2f..%2fapi", false, false, false),
            ("/%76%31/decisions", false, false, false),
            ("", false, false, false),
            ("*", false, false, false),
            ("/", true, false, false),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true, false, false),
            ("/health/ready", true, false, true),
            ("/grpc.health.v1.Health/Check", true, false, true),
        ] {
            let may = |admission: Admission| admission.refusal(path).is_none();
            assert_eq!((may(app), may(none), may(health)), (by_app, by_none, by_health), "{path}");
            assert!(may(Admission::EVERYTHING), "{path}");
        }
    }
}
