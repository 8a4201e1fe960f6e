//! Rows that are inserted with the service's login, but without its keys, do not become evidence.

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{asking, check, decided, published, sealed, sealing};
use crate::support::{Client, TestApp};

/// Runs SQL in the workers' role, which the service's login can take.
async fn add(app: &TestApp, sql: &str) {
    let role = "SELECT set_config('role', authority_role('system'), false)";
    app.database.owner().await.batch_execute(&format!("{role}; {sql}")).await.unwrap();
}

async fn no_pack_of(client: &Client, id: &str) {
    let answers = [
        client.text("GET", &format!("/v1/evidence/{id}"), None).await,
        client.text("POST", "/v1/evidence/seal", Some(json!({"decision_id": id}))).await,
    ];
    for (status, answer) in answers {
        assert_eq!(status, 500, "{answer}");
        assert!(!answer.contains("c2sp.org"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaf_that_was_added_to_the_tree_is_not_signed() {
    let (app, client) = sealing().await;
    let first = decided(&client, asking(1.0, "DE")).await;
    let pack = sealed(&client, &first).await;
    let (_, before) = client.text("GET", "/v1/log/acme/checkpoint", None).await;
    // Adds a second leaf, and the root over both leaves (RFC 9162, 2.1.1).
    add(
        &app,
        "INSERT INTO log_nodes SELECT tenant_id, epoch, 0, 1, sha256('forged') FROM log_nodes;
         INSERT INTO log_nodes SELECT tenant_id, epoch, 1, 0, sha256('\\x01' || hashes || sha256('forged'))
           FROM log_nodes WHERE first = 0;
         UPDATE log_heads h SET size = 2, root = (SELECT hashes FROM log_nodes WHERE level = 1)",
    )
    .await;
    let next = decided(&client, asking(2.0, "DE")).await;
    let (status, answer) = client.post("/v1/evidence/seal", json!({"decision_id": next})).await;
    assert_eq!(status, 500, "{answer}");
    let (_, after) = client.text("GET", "/v1/log/acme/checkpoint", None).await;
    assert_eq!(after, before);
    // Packs that were sealed earlier are unchanged.
    check(&sealed(&client, &first).await, Some(&published(&client).await)).unwrap();
    assert_eq!(sealed(&client, &first).await, pack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pack_is_of_its_own_decision_and_log() {
    let (app, client) = sealing().await;
    let first = decided(&client, asking(1.0, "DE")).await;
    let pack: Value = serde_json::from_str(&sealed(&client, &first).await).unwrap();
    let proof = pack["log"]["proof"].as_str().unwrap();
    let origin = pack["log"]["origin"].as_str().unwrap();
    // Adds rows in the format before migration 49: the pack of another decision, and a pack that is
    // not in any log.
    let other = decided(&client, asking(2.0, "DE")).await;
    let invented = decided(&client, asking(3.0, "DE")).await;
    let mut leaf = pack.clone();
    leaf.as_object_mut().unwrap().remove("log");
    let others = leaf.to_string();
    leaf["decision_id"] = json!(invented);
    for (id, body) in [(&other, others), (&invented, leaf.to_string())] {
        let row = format!(
            "INSERT INTO evidence_packs (log_index, sealed_at, epoch, decision_id, tenant_id, origin, body, proof)
             VALUES (0, now(), 1, '{id}', 'svc:tenant:acme', '{origin}', $body${body}$body$::text::bytea, '{proof}')"
        );
        add(&app, &row).await;
        no_pack_of(&client, id).await;
    }
}
