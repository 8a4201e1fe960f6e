//! Each kind of record: created, changed and read by an admin of the tenant, over REST and gRPC.

use authority_model::proto::registry::{CreatePurposeRequest, Purpose};
use prost::Message as _;
use serde_json::{Value, json};
use tonic::Code;

use super::{ANN, Acme, OTHER, TENANT, id, refused};
use crate::support::wire::{Caller, named};
use crate::support::{Answered, Plain, only};

const ROLES: [&str; 5] = ["approver", "legal", "auditor", "member", "viewer"];
const FORBID: &str = "forbid (principal, action, resource) unless { context has amount };";

/// The kinds with a sample, and a permitted change.
fn samples() -> [(&'static str, Value, Value); 6] {
    [
        (
            "principals",
            json!({"principal_class": "agent", "display_name": "Pays", "name": "pay-bot"}),
            only("display_name", "Pays invoices"),
        ),
        (
            "purposes",
            json!({"slug": "travel", "name": "Travel", "allowed_actions": ["travel.*"]}),
            only("description", "Journeys"),
        ),
        ("teams", only("name", "Payments"), only("description", "Pays suppliers")),
        (
            "resources",
            json!({"kind": "ledger", "name": "Ledger", "sensitivity": "internal"}),
            only("uri", "https://ledger.example"),
        ),
        (
            "tools",
            json!({"name": "reports", "function_signature": "read(day)", "actions": ["report.read"]}),
            only("requires", ["day"]),
        ),
        (
            "policies",
            json!({"regime": "internal", "name": "Amounts", "cedar": FORBID}),
            only("description", "Requires an amount"),
        ),
    ]
}

fn within(mut body: Value, tenant: &str) -> Value {
    body["tenant_id"] = json!(tenant);
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_is_made_changed_and_recorded_by_an_admin() {
    let acme = Acme::start().await;
    for (path, body, change) in samples() {
        let collection = format!("/api/v1/app/{path}");
        for role in ROLES {
            let other = acme.app.person(TENANT, role, "other@acme.example");
            let made = other.post(&collection, within(body.clone(), TENANT)).await;
            refused(made, 403, "forbidden", "it is open to a tenant's admin");
        }
        // The tenant of the token counts: a request for another tenant is refused.
        let made = acme.stranger.post(&collection, within(body.clone(), TENANT)).await;
        refused(made, 400, "invalid_request", "tenant_id");
        let made = acme.by_ann(path, within(body, TENANT)).await;
        assert_eq!((made["tenant_id"].text(), made["created_by"].text()), (TENANT, ANN));
        let one = format!("{collection}/{}", id(&made));
        for client in [&acme.ann, &acme.app.person(TENANT, "auditor", "a@acme.example")] {
            client.get(&one).await.assert_status(200);
            let listed = client.get(&collection).await.assert_status(200);
            assert!(listed.to_string().contains(&id(&made)), "{listed:#}");
        }
        assert_eq!(acme.stranger.get(&one).await.0, 404, "{path}");
        assert_eq!(acme.stranger.patch(&one, change.clone()).await.0, 404, "{path}");
        let auditor = acme.app.person(TENANT, "auditor", "a@acme.example");
        assert_eq!(auditor.patch(&one, change.clone()).await.0, 403, "{path}");
        let (status, changed) = acme.bob.patch(&one, change).await;
        assert_eq!(status, 200, "{path}: {changed:#}");
        let history = format!("/api/v1/app/entities/{}/history", id(&made));
        let history = acme.ann.get(&history).await.assert_status(200);
        let by: Vec<_> =
            history["versions"].as_array().unwrap().iter().map(|one| &one["actor"]).collect();
        assert!(by.contains(&&json!(ANN)) && by.contains(&&json!(super::BOB)), "{history:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_grpc_the_same_callers_may_create() {
    let acme = Acme::start().await;
    let rpc = "/authority.registry.v1.PurposeService/CreatePurpose";
    let request = |slug: &str, tenant: &str| {
        let purpose = Purpose {
            tenant_id: tenant.to_owned(),
            slug: slug.to_owned(),
            name: slug.to_owned(),
            allowed_actions: vec!["travel.*".to_owned()],
            ..Purpose::default()
        };
        CreatePurposeRequest { purpose: Some(purpose) }.encode_to_vec()
    };
    let with = |client: &crate::support::Client| Caller::owner(&acme.app).with(Some(&client.token));
    let made = with(&acme.ann).grpc(rpc, request("travel", TENANT)).await.unwrap();
    let made = Purpose::decode(made).unwrap();
    assert_eq!((made.tenant_id.as_str(), made.created_by.as_str()), (TENANT, ANN));
    let foreign = with(&acme.ann).grpc(rpc, request("theirs", OTHER)).await.unwrap_err();
    assert_eq!(
        (foreign.code(), named(&foreign)),
        (Code::InvalidArgument, vec!["tenant_id".into()])
    );
    for role in ROLES {
        let other = acme.app.person(TENANT, role, "other@acme.example");
        let status = with(&other).grpc(rpc, request("no", TENANT)).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{role}: {status:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_creates_once_and_a_stale_change_is_refused() {
    let acme = Acme::start().await;
    let body = json!({"tenant_id": TENANT, "name": "Payments"});
    let key = [("idempotency-key", "one")];
    let path = "/api/v1/app/teams";
    let first = acme.ann.call("POST", path, Some(body.clone()), &key).await;
    assert_eq!(first.0, 201, "{:#}", first.1);
    assert_eq!(acme.ann.call("POST", path, Some(body.clone()), &key).await, first);
    let other = acme.bob.call("POST", path, Some(body), &key).await;
    assert_ne!(other.1["team"]["id"], first.1["team"]["id"]);
    let one = format!("{path}/{}", id(&first.1["team"]));
    let stale = [("if-match", "\"stale\"")];
    let change = Some(only("description", "x"));
    let answer = acme.ann.call("PATCH", &one, change, &stale).await;
    refused(answer, 412, "precondition_failed", "If-Match");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_ends_purposes_and_no_other_record() {
    let acme = Acme::start().await;
    for (path, body, _) in samples() {
        let made = acme.by_ann(path, within(body, TENANT)).await;
        let one = format!("/api/v1/app/{path}/{}", id(&made));
        let (status, answer) = acme.bob.call("DELETE", &one, None, &[]).await;
        let expected = if path == "purposes" { 200 } else { 405 };
        assert_eq!(status, expected, "{path}: {answer:#}");
    }
}
