//! An approval contains the tool and the purpose of its request. Approvers read no other ones.

use authority_model::proto::registry::{GetPurposeRequest, GetToolRequest};
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use super::{
    demo,
    questions::{TENANT, approver, held, read},
};
use crate::support::{TestApp, asking, wire::Caller};

/// Returns the demonstration's record with this value of a member.
async fn record(app: &TestApp, kind: &str, member: &str, value: &str) -> Value {
    let (_, found) = app.owner().get(&format!("/api/v1/{kind}?tenant_id={TENANT}")).await;
    let mut records = found[kind].as_array().unwrap().iter();
    records.find(|one| one[member] == value).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_read_a_tool_and_a_purpose_only_with_the_approval() {
    let (app, client, _) = demo().await;
    let tool = record(&app, "tools", "name", "payments").await;
    let purpose = record(&app, "purposes", "slug", "invoice-settlement").await;
    let mut ask = asking(25_000.0, "DE");
    ask["tool_id"] = tool["id"].clone();
    let id = held(&client, &ask).await;
    let owner = Caller::owner(&app);
    for (role, reads) in [("approver", false), ("legal", false), ("admin", true), ("auditor", true)]
    {
        let person = app.person(TENANT, role, "ann@example.org");
        let shown = read(&person, &id).await;
        let named = json!({"id": tool["id"], "name": "payments",
                           "description": tool["description"]});
        assert_eq!(shown["tool"], named, "{role}: {shown:#}");
        let declared = json!({"id": purpose["id"], "slug": "invoice-settlement",
                              "name": purpose["name"], "description": purpose["description"]});
        assert_eq!(shown["purpose"], declared, "{role}: {shown:#}");
        let (_, list) = person.get("/api/v1/app/approvals?state=pending").await;
        assert_eq!(list["approvals"][0]["tool"], named, "{role}: {list:#}");
        let caller = owner.with(Some(&app.member_token(TENANT, role)));
        for (kind, service, record) in [
            ("tools", "ToolService/GetTool", &tool),
            ("purposes", "PurposeService/GetPurpose", &purpose),
        ] {
            let id = record["id"].as_str().unwrap().to_owned();
            let (status, found) = person.get(&format!("/api/v1/app/{kind}/{id}")).await;
            assert_eq!(status, if reads { 200 } else { 403 }, "{role} {kind}: {found:#}");
            let request = match kind {
                "tools" => GetToolRequest { id }.encode_to_vec(),
                _ => GetPurposeRequest { id }.encode_to_vec(),
            };
            let rpc = format!("/authority.registry.v1.{service}");
            let code = caller
                .grpc(&rpc, request)
                .await
                .map_or_else(|refused| refused.code(), |_| Code::Ok);
            assert_eq!(
                code,
                if reads { Code::Ok } else { Code::PermissionDenied },
                "{role} {kind}"
            );
        }
    }
}

/// A purpose's slug is unique only within its tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_names_the_purpose_of_its_own_tenant_as_it_is_now() {
    let (app, client, _) = demo().await;
    let other = json!({"name": "Other", "slug": "other"});
    assert_eq!(app.owner().post("/api/v1/tenants", other).await.0, 201);
    let foreign = json!({"tenant_id": "svc:tenant:other", "slug": "invoice-settlement",
                         "name": "Of another tenant", "allowed_actions": ["payment.*"]});
    assert_eq!(app.owner().post("/api/v1/purposes", foreign).await.0, 201);
    let id = held(&client, &asking(25_000.0, "DE")).await;
    let purpose = record(&app, "purposes", "slug", "invoice-settlement").await;
    let path = format!("/api/v1/purposes/{}", purpose["id"].as_str().unwrap());
    let change = json!({"name": "Settle invoices", "description": "Ordered goods only."});
    assert_eq!(app.owner().patch(&path, change).await.0, 200);
    let (_, by_owner) = app.owner().get(&format!("/api/v1/approvals/{id}")).await;
    let by_approver = read(&approver(&app), &id).await;
    for shown in [&by_owner["approval"], &by_approver] {
        let named = json!({"id": purpose["id"], "slug": "invoice-settlement",
                           "name": "Settle invoices", "description": "Ordered goods only."});
        assert_eq!(shown["purpose"], named, "{shown:#}");
        assert_eq!(shown["tool"], Value::Null, "the request names no tool: {shown:#}");
    }
    // An erased request no longer names a purpose.
    let erase = format!(
        "SET session_replication_role = replica; UPDATE decisions SET context = ''
         WHERE approval_id = '{id}'; RESET session_replication_role"
    );
    app.database.run(&erase).await;
    let erased = read(&approver(&app), &id).await;
    assert_eq!(
        (&erased["request"], &erased["purpose"]),
        (&Value::Null, &Value::Null),
        "{erased:#}"
    );
}
