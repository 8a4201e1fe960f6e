//! The migration that repairs empty texts which older versions stored.

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use crate::support::{TestApp, asking};

const MEND: &str = include_str!("../../../migrations/00000000000017_empty_texts/up.sql");

/// Table, the SQL assignment that an older version stored, the condition that selects the row, and
/// its fields after the repair. `$t` is the demonstration tenant, `id` the row that the test
/// created.
const STORED: [(&str, &str, &str, &str); 17] = [
    ("tenants", "idp_org_id = ''", "id = 'svc:tenant:blank'", r#"{"idp_org_id": null}"#),
    ("tenants", "owner_email = ''", "id = 'svc:tenant:blank'", r#"{"owner_email": null}"#),
    ("tenants", "state = ''", "id = 'svc:tenant:blank'", r#"{"state": "suspended"}"#),
    (
        "tenants",
        r#"gate = '{"tightenings": [{"risk_tier": "", "oversight": "none"}]}'"#,
        "id = 'svc:tenant:gated'",
        r#"{"state": "suspended", "gate": {"tightenings": [{"risk_tier": null,
            "effect_class": null, "undoing": null, "oversight": "none"}]}}"#,
    ),
    ("principals", "state = ''", "name = 'stateless'", r#"{"state": "suspended"}"#),
    (
        "principals",
        "email = '', external_subject = ''",
        "name = 'nobody'",
        r#"{"email": null, "external_subject": null, "state": "active"}"#,
    ),
    ("delegations", "max_amount = ''", "notes = 'amount'", r#"{"state": "suspended"}"#),
    ("delegations", "currency = ''", "notes = 'currency'", r#"{"state": "suspended"}"#),
    ("delegations", "max_risk_tier = ''", "notes = 'tier'", r#"{"state": "suspended"}"#),
    (
        "delegations",
        "max_amount = '', state = 'revoked'",
        "notes = 'revoked'",
        r#"{"state": "revoked", "max_amount": ""}"#,
    ),
    ("models", "risk_tier = ''", "version = 'm'", r#"{"risk_tier": "unacceptable"}"#),
    ("models", "endpoint = ''", "version = 'm'", r#"{"endpoint": null}"#),
    ("tools", "access_level = ''", "name = 't'", r#"{"access_level": "owner"}"#),
    (
        "tools",
        r#"action_declaration = '{"effect_class": "", "reversibility": null}'"#,
        "name = 't'",
        r#"{"action_declaration": {"effect_class": "safety_critical", "reversibility": null},
            "action_risk_classification": {"risk_tier": "unacceptable"}}"#,
    ),
    ("resources", "sensitivity = ''", "name = 'r'", r#"{"sensitivity": "restricted"}"#),
    ("audit_streams", "state = ''", "name = 'a'", r#"{"state": "active"}"#),
    (
        "billing_accounts",
        "state = '', currency = ''",
        "plan = 'b'",
        r#"{"state": "active", "currency": null}"#,
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_empty_texts_are_repaired_and_permit_no_more() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    records(&app).await;
    let (agent, ask) = (app.client(&demo.api_key), asking(1200.0, "DE"));
    let evaluate = "/api/v1/runtime/evaluate";
    assert_eq!(agent.post(evaluate, ask.clone()).await.1["decision"], "allow");

    // The demonstration's own delegation is repaired as well. It permits no action before or after
    // the repair.
    let bound = format!("id = '{}'", demo.delegation_id);
    let own = ("delegations", "currency = ''", bound.as_str(), r#"{"state": "suspended"}"#);
    let stored = || STORED.into_iter().chain([own]);
    let mut database = app.database.owner().await;
    for (table, change, row, _) in stored() {
        let sql = format!("UPDATE {table} SET {change} WHERE {row}");
        assert_eq!(diesel::sql_query(&sql).execute(&mut database).await.unwrap(), 1, "{sql}");
    }
    let before = agent.post(evaluate, ask.clone()).await.1;
    assert_eq!(before["decision"], "deny", "{before:#}");

    let mend = format!("BEGIN; {MEND} COMMIT;");
    database.batch_execute(&mend).await.unwrap();
    for (table, _, row, mended) in stored() {
        let (is_now, mended) = (body(&mut database, table, row).await, mended);
        let wanted: Value = serde_json::from_str(mended).unwrap();
        for (member, value) in wanted.as_object().unwrap() {
            assert!(includes(&is_now[member], value), "{table}.{member}: {is_now:#}");
        }
        // The repair is in the history with its actor. If authority depends on the record, it is in
        // the change log as well.
        let kept = version(&mut database, &is_now["id"]).await;
        assert!(includes(&kept["body"], &wanted), "{table}: {kept:#}");
        if wanted.get("max_amount").is_none() {
            assert_eq!(kept["actor"], "agent-authority: migration 22", "{table} {row}");
        }
        let followed = !["audit_streams", "billing_accounts"].contains(&table);
        assert_eq!(kept["changes"].as_i64().unwrap() > 0, followed, "{table}: {kept:#}");
    }
    let after = agent.post(evaluate, ask).await.1;
    assert_eq!(after["reason_code"], "delegation_suspended", "{after:#}");
    // Reinstating the delegation does not bring back the unreadable bound.
    let path = format!("/api/v1/delegations/{}/reinstate", demo.delegation_id);
    let (status, answer) = app.owner().post(&path, json!({})).await;
    assert_eq!(status, 409, "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("`currency` is empty"), "{answer:#}");

    // A second run makes no changes.
    let changes = "SELECT count(*) AS n FROM record_versions";
    let count = super::number(&mut database, changes).await;
    database.batch_execute(&mend).await.unwrap();
    assert_eq!(super::number(&mut database, changes).await, count);
}

/// Creates complete records, as a client would.
async fn records(app: &TestApp) {
    let tenant = "svc:tenant:acme";
    let make = async |path: &str, body: Value| {
        let (status, made) = app.owner().post(&format!("/api/v1/{path}"), body).await;
        assert_eq!(status, 201, "{made:#}");
    };
    make("tenants", json!({"name": "Blank"})).await;
    make("tenants", json!({"name": "Gated"})).await;
    for name in ["stateless", "nobody", "lender"] {
        let body = json!({"tenant_id": tenant, "principal_class": "agent", "display_name": name});
        make("principals", body).await;
    }
    for notes in ["amount", "currency", "tier", "revoked"] {
        let body = json!({
            "tenant_id": tenant, "delegator_id": "svc:agent:acme:lender", "notes": notes,
            "delegate_id": "svc:agent:acme:nobody", "actions": ["payment.*"],
        });
        make("delegations", body).await;
    }
    for (path, body) in [
        ("models", json!({"model_provider": "p", "model_family": "f", "version": "m"})),
        ("tools", json!({"name": "t", "function_signature": "t()"})),
        ("resources", json!({"kind": "ledger", "name": "r"})),
        ("audit-streams", json!({"name": "a"})),
        ("billing-accounts", json!({"billing_email": "b@example.org", "plan": "b"})),
    ] {
        let mut body = body;
        body["tenant_id"] = tenant.into();
        make(path, body).await;
    }
}

#[derive(QueryableByName)]
struct Json {
    #[diesel(sql_type = Text)]
    json: String,
}

async fn json_of(database: &mut authority_core::store::Db, sql: &str) -> Value {
    let found: Json = diesel::sql_query(sql).get_result(database).await.unwrap();
    serde_json::from_str(&found.json).unwrap()
}

async fn body(database: &mut authority_core::store::Db, table: &str, row: &str) -> Value {
    let sql = format!("SELECT to_jsonb(t)::text AS json FROM {table} t WHERE {row}");
    json_of(database, &sql).await
}

async fn version(database: &mut authority_core::store::Db, id: &Value) -> Value {
    let id = id.as_str().unwrap();
    let sql = format!(
        "SELECT jsonb_build_object('body', body, 'actor', actor, 'changes', (SELECT count(*)
             FROM authority_changes WHERE entity_id = '{id}' AND at >= v.valid_from))::text AS json
         FROM record_versions v WHERE entity_id = '{id}' AND valid_to IS NULL"
    );
    json_of(database, &sql).await
}

/// Returns whether `found` has all expected fields.
fn includes(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| includes(found.get(name).unwrap_or(&Value::Null), value)),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| includes(found, wanted))
        }
        _ => found == wanted,
    }
}
