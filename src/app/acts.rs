//! The log of admin acts: each line has the user, the operation and the changed record.
//!
//! Decisions, evidence and observations are stored as records, and are far too many for a log.

use axum::{extract::Request, middleware::Next, response::Response};
use gateway_rest::Route;
use tonic::Status;

use crate::{routes::ROUTES, transport::Peer};
use authority_api::identity::{Caller, CallerKind};
use authority_model::service::WrittenRecord;

/// Services that already store every write as a record.
const RECORDED: [&str; 3] = [
    "/authority.runtime.v1.",
    "/authority.evidence.v1.",
    "/authority.reality.v1.RealitySnapshotService/",
];

/// Whether a successful call of the method is logged.
pub(super) fn is_act(rpc: &str) -> bool {
    let writes = |route: &&Route| route.rpc == rpc && route.method != "GET";
    ROUTES.iter().any(|route| writes(&route))
        && !RECORDED.iter().any(|service| rpc.starts_with(service))
}

/// Logs the call if it succeeds. The line has no value of the request: a record's id is enough.
pub(super) async fn log(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller.filter(|caller| !matches!(caller.kind, CallerKind::Anonymous));
    // Calls of the service itself are not logged: they have no peer.
    let (Some(caller), Some(_)) = (caller, request.extensions().get::<Peer>()) else {
        return next.run(request).await;
    };
    let operation = request.uri().path().to_owned();
    let response = next.run(request).await;
    let failed = Status::from_header_map(response.headers());
    if failed.is_none_or(|status| status.code() == tonic::Code::Ok) {
        let record = response.extensions().get::<WrittenRecord>().map(|record| record.0.as_str());
        let tenant = caller.tenant().map(ToString::to_string);
        tracing::info!(
            operation,
            actor.id = caller.actor,
            tenant.id = tenant,
            record.id = record,
            "completed an admin operation"
        );
    }
    response
}

#[cfg(test)]
mod tests {
    use authority_model::service::WITHOUT_RECORD;

    use super::*;

    /// Operations without a record in their log line, and the reason. A stream, such as an export,
    /// writes no data.
    const NAMELESS: [(&str, &str); 6] = [
        ("/authority.events.v1.NotificationService/ReadAllNotifications", "the caller's own, all"),
        ("/authority.programme.v1.PersonalDataService/WithdrawConsent", "would name the person"),
        ("/authority.programme.v1.PublicLeadService/CaptureLead", "one response for all"),
        ("/authority.registry.v1.McpServerService/ObserveMcpServer", "several tools"),
        ("/authority.registry.v1.PolicyService/ValidatePolicy", "writes nothing"),
        ("/authority.states.v1.StateLibraryService/SeedStateLibrary", "the whole library"),
    ];

    /// Checks that each operation that changes data reports the id of its record or is listed
    /// above.
    #[test]
    fn every_act_names_its_record() {
        let without: Vec<_> = WITHOUT_RECORD.iter().filter(|rpc| is_act(rpc)).collect();
        assert_eq!(without, NAMELESS.iter().map(|(rpc, _)| rpc).collect::<Vec<_>>());
        let acts = ROUTES.iter().filter(|route| is_act(route.rpc)).count();
        assert!(acts > 100, "{acts}");
    }

    #[test]
    fn acts_change_records_and_are_no_decisions() {
        for (rpc, is) in [
            ("/authority.registry.v1.TenantService/CreateTenant", true),
            ("/authority.registry.v1.TenantService/ListTenants", false),
            ("/authority.runtime.v1.RuntimeService/Evaluate", false),
            ("/authority.nowhere.v1.NoService/CreateNothing", false),
        ] {
            assert_eq!(is_act(rpc), is, "{rpc}");
        }
        let services = RECORDED.iter();
        let unknown = services.filter(|name| !ROUTES.iter().any(|r| r.rpc.starts_with(*name)));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
