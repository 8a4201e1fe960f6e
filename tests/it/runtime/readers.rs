//! Reads by each type of credential. A key bound to agents can't read data of other agents.

use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{
    Answered, Client, EVALUATE, MINT_REPLAY_PROOF, Members, SEAL_DECISION, SIMULATE_DECISION,
    TENANT, TestApp, new_api_key, only,
};

const INVOICE: &str = "svc:agent:acme:invoice-bot";
const SUPPORT: &str = "svc:agent:acme:support-bot";

async fn bound(app: &TestApp, principal: &str, scopes: &[&str]) -> Client {
    let key = json!({"tenant_id": TENANT, "label": "bound", "scopes": scopes,
                     "principal_ids": [principal]});
    let made = app.owner().create_api_key(key).await.assert_status(201);
    app.client(made["secret"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_shown_as_the_credential_is_for() {
    let (app, _, delegation) = demo().await;
    let notes = json!({"notes": "pays late", "owner_email": "cfo@acme.example",
                       "metadata": {"margin": 3}, "tags": ["at-risk"]});
    assert_eq!(app.owner().update_tenant(TENANT, notes).await.0, 200);
    let person = json!({"tenant_id": TENANT, "principal_class": "human", "notes": "ill",
        "display_name": "Nora", "email": "nora@acme.example", "external_subject": "idp|nora"});
    let person = app.owner().create_principal(person).await.assert_made("principal");
    let bill = json!({"tenant_id": TENANT, "billing_email": "bills@acme.example"});
    let bill = app.owner().create_billing_account(bill).await.assert_made("billing_account");
    let key = new_api_key("k", &["runtime:read"]).with("ip_allowlist", ["127.0.0.1"]);
    let key = app.owner().create_api_key(key).await.assert_made("api_key");
    let viewer = app.client(&app.member_token(TENANT, "viewer"));
    let reader = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    let auditor = app.client(&app.member_token(TENANT, "auditor"));
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let owner = app.owner();
    let everybody = [
        ("viewer", &viewer),
        ("reader", &reader),
        ("auditor", &auditor),
        ("admin", &admin),
        ("owner", &owner),
    ];
    // Id of a record, a field, and the callers that can read the field.
    for (id, member, shown) in [
        (TENANT, "name", "viewer reader auditor admin owner"),
        (TENANT, "owner_email", "auditor admin owner"),
        (TENANT, "contract_status", "auditor admin owner"),
        (TENANT, "notes", "owner"),
        (TENANT, "metadata", "owner"),
        (TENANT, "tags", "owner"),
        (TENANT, "created_by", "owner"),
        (&person, "principal_class", "reader auditor admin owner"),
        (&person, "display_name", "auditor admin owner"),
        (&person, "email", "auditor admin owner"),
        (&person, "external_subject", "auditor admin owner"),
        (&person, "notes", "auditor admin owner"),
        (INVOICE, "display_name", "reader auditor admin owner"),
        (&bill, "state", "viewer reader auditor admin owner"),
        (&bill, "billing_email", "auditor admin owner"),
        (&key, "status", "viewer reader auditor admin owner"),
        (&key, "scopes", "admin owner"),
        (&key, "ip_allowlist", "admin owner"),
        (&key, "created_by", "admin owner"),
        (&delegation, "state", "viewer reader auditor admin owner"),
        (&delegation, "actions", "reader auditor admin owner"),
        (&delegation, "created_by", "auditor admin owner"),
    ] {
        for (name, client) in everybody {
            let (status, entity) = client.get_entity(id).await;
            assert_eq!(status, 200, "{id} by {name}: {entity:#}");
            let sees = entity["record"].as_object().unwrap().contains_key(member);
            let wanted = shown.split(' ').any(|who| who == name);
            assert_eq!(sees, wanted, "{member} of {id} by {name}: {entity:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_reads_nothing_of_other_agents() {
    let (app, client, delegation) = demo().await;
    let scopes = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
    let other = bound(&app, SUPPORT, &scopes).await;
    let own = bound(&app, INVOICE, &scopes).await;
    let (_, answer) = client.evaluate(asking(10.0, "DE")).await;
    let id = answer["decision_id"].as_str().unwrap().to_owned();
    own.seal_decision(&id).await.assert_status(200);
    // Uses an unknown id of the same length.
    let nothing = format!("svc:decision:{}", "0".repeat(id.len() - "svc:decision:".len()));
    let gone = "svc:agent:acme:nobody00000".to_owned();
    let same = |text: String, of: &str, by: &str| text.replace(of, by);
    let paths = [
        "/v1/decisions/{}",
        "/v1/decisions/{}:watch",
        "/v1/evidence/{}",
        "/v1/decisions/{}:watch-stop-conditions",
    ];
    for path in paths {
        let at = |id: &str| path.replace("{}", id);
        let (status, told) = other.text("GET", &at(&id), None).await;
        let (none, unknown) = other.text("GET", &at(&nothing), None).await;
        assert_eq!((status, none), (404, 404), "{path}: {told}");
        assert_eq!(kept(&same(told, &id, &nothing)), kept(&unknown), "{path}");
        if !path.contains("watch") {
            assert_eq!(own.get(&at(&id)).await.0, 200, "{path}");
        }
    }
    for (path, body) in [
        (SEAL_DECISION, only("decision_id", &id)),
        (MINT_REPLAY_PROOF, only("decision_id", &id)),
        (SIMULATE_DECISION, only("decision_id", &id)),
    ] {
        let (status, told) = other.text("POST", path, Some(body.clone())).await;
        let (none, unknown) = other.text("POST", path, Some(only("decision_id", &nothing))).await;
        assert_eq!((status, none), (404, 404), "{path}: {told}");
        assert_eq!(kept(&same(told, &id, &nothing)), kept(&unknown), "{path}");
        assert_eq!(own.post(path, body).await.0, 200, "{path}");
    }
    for path in ["/v1/authority/{}", "/v1/entities/{}"] {
        let at = |id: &str| path.replace("{}", id);
        let (status, told) = other.text("GET", &at(INVOICE), None).await;
        let (none, unknown) = other.text("GET", &at(&gone), None).await;
        assert_eq!((status, none), (404, 404), "{path}: {told}");
        assert_eq!(kept(&same(told, INVOICE, &gone)), kept(&unknown), "{path}");
        assert_eq!(own.get(&at(INVOICE)).await.0, 200, "{path}");
    }
    assert_eq!(
        (other.get_entity(&delegation).await.0, own.get_entity(&delegation).await.0),
        (404, 200)
    );
}

/// Returns an error without its request's id.
#[track_caller]
fn kept(text: &str) -> Value {
    let mut body: Value = serde_json::from_str(text).unwrap();
    body["request_id"] = Value::Null;
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_does_not_repeat_a_credential() {
    let (app, client, _) = demo().await;
    let key = app.api_key(TENANT, &["runtime:write"]).await;
    let token = app.owner_token().to_owned();
    for secret in [key.as_str(), token.as_str()] {
        let subject = asking(1.0, "DE").with("subject", secret);
        let mut member = asking(1.0, "DE");
        member[secret] = 1.into();
        for body in [subject, member] {
            let (status, told) = client.text("POST", EVALUATE, Some(body)).await;
            assert_eq!(status, 400, "{told}");
            assert!(!told.contains(secret), "{told}");
            assert!(told.contains("[withheld]") || secret.len() > 200, "{told}");
        }
        let path = format!("/api/v1/tools/{secret}");
        let (status, told) = app.owner().text("GET", &path, None).await;
        assert!(matches!(status, 400 | 404), "{told}");
        assert!(!told.contains(secret), "{told}");
    }
}
