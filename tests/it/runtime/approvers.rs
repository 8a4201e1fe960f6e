//! Eligible approvers: people may not approve a request in which they have a part.

mod askers;
mod claims;
mod own_interest;
mod present;
mod readme;
mod registered;
mod same_person;

use serde_json::{Value, json};

use super::demo;
use crate::support::{Client, TestApp, asking};

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:invoice-bot";
const AMOUNT: f64 = 25_000.0;

/// Requests a payment that is held, with this client's credential. Returns the approval's id.
async fn held(asker: &Client) -> String {
    let (status, answer) = asker.post("/api/v1/runtime/evaluate", asking(AMOUNT, "DE")).await;
    assert_eq!((status, &answer["decision"]), (200, &json!("require_approval")), "{answer:#}");
    answer["approval_id"].as_str().unwrap().to_owned()
}

async fn claim(asker: &Client, id: &str) -> Value {
    let mut ask = asking(AMOUNT, "DE");
    ask["approval_id"] = json!(id);
    asker.post("/api/v1/runtime/evaluate", ask).await.1
}

async fn approve(person: &Client, id: &str) -> (u16, Value) {
    person.post(&format!("/api/v1/app/approvals/{id}/approve"), json!({})).await
}

/// Checks that the service refuses the person as not eligible, with this reason.
async fn refused(person: &Client, id: &str, why: &str) {
    let (status, answer) = approve(person, id).await;
    assert_eq!((status, &answer["error"]), (409, &json!("approver_not_eligible")), "{answer:#}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains(why), "`{why}` in: {message}");
    assert!(message.contains("role approver, legal or admin"), "no eligible roles: {message}");
}

async fn approved(person: &Client, id: &str) -> Value {
    let (status, answer) = approve(person, id).await;
    assert_eq!((status, &answer["approval"]["state"]), (200, &json!("approved")), "{answer:#}");
    answer["approval"].clone()
}

async fn shown(app: &TestApp, id: &str) -> Value {
    app.owner().get(&format!("/api/v1/approvals/{id}")).await.1["approval"].clone()
}

fn person(app: &TestApp, role: &str, name: &str) -> Client {
    app.person(TENANT, role, &format!("{name}@acme.example"))
}

/// Returns an identity in the form of the development provider's tokens.
fn identity(name: &str) -> String {
    format!("https://dev-idp.authority.localhost|dev|{name}@acme.example")
}

/// Creates a key as an admin of the tenant. Returns its id and a client with it.
async fn key_of(app: &TestApp, admin: &Client) -> (String, Client) {
    let body = json!({"label": "an agent's", "scopes": ["runtime:read", "runtime:write"]});
    let (status, made) = admin.post("/api/v1/app/api-keys", body).await;
    assert_eq!(status, 201, "{made:#}");
    let id = made["api_key"]["id"].as_str().unwrap().to_owned();
    (id, app.client(made["secret"].as_str().unwrap()))
}

async fn principal(app: &TestApp, mut body: Value) -> String {
    body["tenant_id"] = json!(TENANT);
    body["display_name"] = json!("Somebody");
    if body["principal_class"].is_null() {
        body["principal_class"] = json!("human");
    }
    let (status, made) = app.owner().post("/api/v1/principals", body).await;
    assert_eq!(status, 201, "{made:#}");
    made["principal"]["id"].as_str().unwrap().to_owned()
}

async fn change(app: &TestApp, id: &str, body: Value) {
    let (status, answer) = app.owner().patch(&format!("/api/v1/principals/{id}"), body).await;
    assert_eq!(status, 200, "{answer:#}");
}
