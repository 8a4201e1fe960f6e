//! Evidence: sealing, the log, bundles and replays, verified offline with the published keys.

pub(crate) mod acts_and_reports;
mod foreign_verifiers;
mod forged;
pub(crate) mod golden;
mod idempotency;
mod input_schemas;
pub(crate) mod log;
mod packs;
mod reality;
mod receipts;
mod replay;
mod seal;
mod tampering;

use authority_evidence::verify::{Fault, KeySet, Trust, Valid, key_set, verify};
use serde_json::{Value, json};

use crate::support::{Client, TestApp, asking};

const TENANT: &str = "svc:tenant:acme";

/// Starts the demonstration tenant. Returns a client with a key that decides and seals.
async fn sealing() -> (TestApp, Client) {
    let app = TestApp::seeded().await;
    app.demo().await;
    let scopes = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
    let client = app.client(&app.api_key(TENANT, &scopes).await);
    (app, client)
}

/// Makes a decision; returns its id.
async fn decided(client: &Client, ask: Value) -> String {
    let (status, answer) = client.post("/api/v1/runtime/evaluate", ask).await;
    assert_eq!(status, 200, "{answer:#}");
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// Seals a decision; returns the pack exactly as sent.
pub(crate) async fn sealed(client: &Client, decision_id: &str) -> String {
    let (status, text) =
        client.text("POST", "/v1/evidence/seal", Some(json!({"decision_id": decision_id}))).await;
    assert_eq!(status, 200, "{text}");
    text
}

async fn bundle(client: &Client, decision_id: &str) -> String {
    let (status, text) =
        client.text("GET", &format!("/v1/evidence/{decision_id}?bundle=true"), None).await;
    assert_eq!(status, 200, "{text}");
    text
}

/// The service's published keys.
pub(crate) async fn published(client: &Client) -> KeySet {
    let (_, jwks) = client.text("GET", "/.well-known/jwks.json", None).await;
    key_set(jwks.as_bytes()).unwrap()
}

fn check(file: &str, keys: Option<&KeySet>) -> Result<Valid, Fault> {
    verify(file.as_bytes(), &Trust { keys: keys.cloned(), log_key: None })
}
