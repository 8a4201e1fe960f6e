//! Rows that are inserted with the service's login, but without its keys, do not become evidence.

use diesel_async::SimpleAsyncConnection;

use super::{asking, check, decided, published, sealed, sealing};
use crate::support::{CHECKPOINT, Client, SEAL_DECISION, TestApp, only};

/// Runs SQL in the workers' role, which the service's login can take.
async fn add(app: &TestApp, sql: &str) {
    let role = "SELECT set_config('role', authority_role('system'), false)";
    app.database.owner().await.batch_execute(&format!("{role}; {sql}")).await.unwrap();
}

async fn no_pack_of(client: &Client, id: &str) {
    let answers = [
        client.evidence_text(id, "").await,
        client.text("POST", SEAL_DECISION, Some(only("decision_id", id))).await,
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
    let (_, before) = client.text("GET", CHECKPOINT, None).await;
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
    let (status, answer) = client.seal_decision(&next).await;
    assert_eq!(status, 500, "{answer}");
    let (_, after) = client.text("GET", CHECKPOINT, None).await;
    assert_eq!(after, before);
    // Packs that were sealed earlier are unchanged.
    check(&sealed(&client, &first).await, Some(&published(&client).await)).unwrap();
    assert_eq!(sealed(&client, &first).await, pack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pack_is_of_its_own_decision_and_log() {
    let (app, client) = sealing().await;
    let first = decided(&client, asking(1.0, "DE")).await;
    let pack = sealed(&client, &first).await;
    // Adds rows for decisions that are not sealed: at the place of another pack, and at a place
    // beyond the end of the log.
    for index in [0, 1] {
        let id = decided(&client, asking(f64::from(index) + 2.0, "DE")).await;
        let row = format!(
            "INSERT INTO evidence_packs (log_index, tree_size, sealed_at, epoch, decision_id, tenant_id)
             VALUES ({index}, 1, now(), 1, '{id}', 'svc:tenant:acme')"
        );
        add(&app, &row).await;
        no_pack_of(&client, &id).await;
    }
    assert_eq!(sealed(&client, &first).await, pack);
}
