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
use serde_json::Value;

use crate::support::{Answered, Client, SEAL_DECISION, TENANT, TestApp, asking, only};

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
    let answer = client.evaluate(ask).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// Seals a decision; returns the pack exactly as sent.
pub(crate) async fn sealed(client: &Client, decision_id: &str) -> String {
    let (status, text) =
        client.text("POST", SEAL_DECISION, Some(only("decision_id", decision_id))).await;
    assert_eq!(status, 200, "{text}");
    text
}

async fn bundle(client: &Client, decision_id: &str) -> String {
    let (status, text) = client.evidence_text(decision_id, "bundle=true").await;
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
