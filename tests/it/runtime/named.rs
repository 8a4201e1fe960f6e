//! An approval contains the tool and the purpose of its request. Approvers can't read other tools and
//! purposes, not even as entities.

use std::collections::BTreeSet;

use authority_model::proto::{
    registry::{GetPurposeRequest, GetToolRequest},
    runtime::{GetEntityRequest, GetEntityResponse},
};
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use super::{
    demo,
    questions::{TENANT, approver, held, read},
};
use crate::support::{
    Members, Plain, TestApp, asking, new_purpose, new_stop, new_tenant, wire::Caller,
};

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
    let id = held(&client, &asking(25_000.0, "DE").with("tool_id", &tool["id"])).await;
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
        let (_, list) = person.list_approvals("state=pending").await;
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

/// Reads a record as an entity, over REST and gRPC. Returns the names of the shown fields.
async fn shown(app: &TestApp, token: &str, id: &str) -> BTreeSet<String> {
    let (status, entity) = app.client(token).get_entity(id).await;
    assert_eq!((status, entity["entity_id"].text()), (200, id), "{entity:#}");
    assert_eq!(entity["record"]["id"], id, "{entity:#}");
    let over_rest: BTreeSet<_> = entity["record"].as_object().unwrap().keys().cloned().collect();
    let request = GetEntityRequest { entity_id: id.to_owned(), as_of: None }.encode_to_vec();
    let rpc = "/authority.runtime.v1.AuthorityService/GetEntity";
    let answer = Caller::owner(app).with(Some(token)).grpc(rpc, request).await.unwrap();
    let record = GetEntityResponse::decode(answer).unwrap().record.unwrap();
    assert_eq!(record.0.keys().cloned().collect::<BTreeSet<_>>(), over_rest, "{id}");
    over_rest
}

/// If a record's own operation refuses a person, they only see that the record exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entity_shows_a_person_no_more_than_the_records_own_operation() {
    let (app, _, delegation) = demo().await;
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let agent = "svc:agent:acme:support-bot";
    let stop = new_stop(agent, "test");
    let (_, stop) = app.owner().create_stop_signal(stop).await;
    let quarantine = json!({"tenant_id": TENANT, "action": "ledger.*", "reason": "test"});
    let (_, quarantine) = app.owner().create_quarantine(quarantine).await;
    let (_, policies) = app.owner().list_policies(&format!("tenant_id={TENANT}")).await;
    // A record of each kind that people of a tenant can read by id, and a field of it.
    let records = [
        ("tools", id(&record(&app, "tools", "name", "payments").await), "actions"),
        ("purposes", id(&record(&app, "purposes", "slug", "customer-care").await), "slug"),
        ("policies", id(&policies["policies"][0]), "regime"),
        ("principals", agent.to_owned(), "name"),
        ("delegations", delegation, "actions"),
        ("stop-signals", id(&stop["stop_signal"]), "actor_id"),
        ("quarantines", id(&quarantine["quarantine"]), "action"),
    ];
    let mut refused = BTreeSet::new();
    for role in ["admin", "auditor", "approver", "legal", "member", "viewer", "steward"] {
        let token = app.member_token(TENANT, role);
        for (kind, id, field) in &records {
            let path = format!("/api/v1/app/{kind}/{id}");
            let own = app.client(&token).get(&path).await.0;
            let shown = shown(&app, &token, id).await;
            if own == 200 {
                assert!(shown.contains(*field), "{role} {kind}: {shown:?}");
            } else {
                assert_eq!(own, 403, "{role} {kind}");
                let more = shown.iter().find(|field| !["id", "state"].contains(&field.as_str()));
                assert_eq!(more, None, "{role} {kind}");
                refused.insert((*kind, role));
            }
        }
    }
    for closed in [("tools", "approver"), ("purposes", "legal"), ("delegations", "viewer")] {
        assert!(refused.contains(&closed), "{closed:?}: {refused:?}");
    }
    // An API key reads the fields that its runtime needs for calls.
    let key = app.api_key(TENANT, &["runtime:read"]).await;
    for (kind, id, field) in &records {
        let shown = shown(&app, &key, id).await;
        assert!(shown.contains(*field) && !shown.contains("reason"), "{kind}: {shown:?}");
    }
}

/// A purpose's slug is unique only within its tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_names_the_purpose_of_its_own_tenant_as_it_is_now() {
    let (app, client, _) = demo().await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let foreign = new_purpose("invoice-settlement", "Of another tenant", &["payment.*"])
        .with("tenant_id", "svc:tenant:other");
    assert_eq!(app.owner().create_purpose(foreign).await.0, 201);
    let id = held(&client, &asking(25_000.0, "DE")).await;
    let purpose = record(&app, "purposes", "slug", "invoice-settlement").await;
    let change = json!({"name": "Settle invoices", "description": "Ordered goods only."});
    assert_eq!(app.owner().update_purpose(purpose["id"].as_str().unwrap(), change).await.0, 200);
    let (_, by_owner) = app.owner().get_approval(&id).await;
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
