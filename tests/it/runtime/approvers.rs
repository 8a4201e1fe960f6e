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
use crate::support::{AGENT, Answered, Client, Members, Plain, TENANT, TestApp, asking};

const AMOUNT: f64 = 25_000.0;

/// Requests a payment that is held, with this client's credential. Returns the approval's id.
async fn held(asker: &Client) -> String {
    let (status, answer) = asker.evaluate(asking(AMOUNT, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
    answer["approval_id"].as_str().unwrap().to_owned()
}

async fn claim(asker: &Client, id: &str) -> Value {
    let ask = asking(AMOUNT, "DE").with("approval_id", id);
    asker.evaluate(ask).await.1
}

async fn approve(person: &Client, id: &str) -> (u16, Value) {
    person.approve_approval(id).await
}

/// Checks that the service refuses the person as not eligible, with this reason.
async fn refused(person: &Client, id: &str, why: &str) {
    let (status, answer) = approve(person, id).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains(why), "`{why}` in: {message}");
    assert!(message.contains("role approver, legal or admin"), "no eligible roles: {message}");
}

async fn approved(person: &Client, id: &str) -> Value {
    let (status, answer) = approve(person, id).await;
    assert_eq!((status, answer["approval"]["state"].text()), (200, "approved"), "{answer:#}");
    answer["approval"].clone()
}

async fn shown(app: &TestApp, id: &str) -> Value {
    app.owner().get_approval(id).await.1["approval"].clone()
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
    let made = admin.create_api_key(body).await.assert_status(201);
    let id = made["api_key"]["id"].as_str().unwrap().to_owned();
    (id, app.client(made["secret"].as_str().unwrap()))
}

async fn principal(app: &TestApp, mut body: Value) -> String {
    body["tenant_id"] = TENANT.into();
    body["display_name"] = "Somebody".into();
    if body["principal_class"].is_null() {
        body["principal_class"] = "human".into();
    }
    let made = app.owner().create_principal(body).await.assert_status(201);
    made["principal"]["id"].as_str().unwrap().to_owned()
}

async fn change(app: &TestApp, id: &str, body: Value) {
    app.owner().update_principal(id, body).await.assert_status(200);
}
