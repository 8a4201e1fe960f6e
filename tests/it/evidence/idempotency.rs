//! Sealing and replaying with an idempotency key: the effect happens once, and repeats return the
//! same response.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{TENANT, asking, check, decided, published, sealed, sealing};
use crate::support::{Client, MINT_REPLAY_PROOF, SEAL_DECISION, nothing, only};

struct Answer {
    status: u16,
    replayed: bool,
    text: String,
}

impl Answer {
    #[track_caller]
    fn error(&self) -> Value {
        serde_json::from_str::<Value>(&self.text).unwrap()["error"].clone()
    }
}

async fn keyed(client: &Client, path: &str, key: &str, body: Value) -> Answer {
    let request = client.http.post(format!("{}{path}", client.base)).bearer_auth(&client.token);
    let sent = request.header("idempotency-key", key).json(&body).send().await.unwrap();
    let replayed = sent.headers().get("idempotency-replayed").is_some_and(|value| value == "true");
    Answer { status: sent.status().as_u16(), replayed, text: sent.text().await.unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_sealed_once_under_a_key() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    let body = only("decision_id", &id);
    let many = join_all((0..16).map(|_| keyed(&client, SEAL_DECISION, "k", body.clone()))).await;
    for answer in &many {
        assert_eq!((answer.status, &answer.text), (200, &many[0].text));
    }
    assert_eq!(many.iter().filter(|answer| !answer.replayed).count(), 1);
    assert!(check(&many[0].text, Some(&published(&client).await)).is_ok());
    assert_eq!(sealed(&client, &id).await, many[0].text, "the same response without a key");
    // Another body under the same key is refused and not sealed.
    let other = decided(&client, asking(1300.0, "DE")).await;
    let refused = keyed(&client, SEAL_DECISION, "k", only("decision_id", &other)).await;
    assert_eq!((refused.status, refused.error()), (422, json!("idempotency_key_reused")));
    assert_eq!(client.get_evidence(&other).await.0, 404);
    // Refusals are not stored under a key. Sealing a sealed decision under a new key returns the
    // existing pack.
    let unknown = only("decision_id", format!("svc:decision:{}", "0".repeat(64)));
    assert_eq!(keyed(&client, SEAL_DECISION, "free", unknown).await.status, 404);
    let fresh = keyed(&client, SEAL_DECISION, "free", body.clone()).await;
    assert_eq!((fresh.status, fresh.replayed, &fresh.text), (200, false, &many[0].text));
    // Each caller has separate keys. The owner's keys are stored with the decision's tenant.
    let scopes = ["evidence:read", "evidence:write"];
    let second = app.client(&app.api_key(TENANT, &scopes).await);
    let theirs = keyed(&second, SEAL_DECISION, "k", only("decision_id", &other)).await;
    assert_eq!((theirs.status, theirs.replayed), (200, false), "{}", theirs.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_proof_is_made_once_under_a_key() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    let body = only("decision_id", &id);
    let early = keyed(&client, MINT_REPLAY_PROOF, "k", body.clone()).await;
    assert_eq!((early.status, early.error()), (409, json!("decision_not_sealed")));
    sealed(&client, &id).await;
    let many = join_all((0..8).map(|_| keyed(&client, MINT_REPLAY_PROOF, "k", body.clone()))).await;
    for answer in &many {
        assert_eq!((answer.status, &answer.text), (200, &many[0].text));
    }
    assert_eq!(many.iter().filter(|answer| !answer.replayed).count(), 1);
    let now = json!({"decision_id": id, "mode": "current_state"});
    let refused = keyed(&client, MINT_REPLAY_PROOF, "k", now).await;
    assert_eq!((refused.status, refused.error()), (422, json!("idempotency_key_reused")));
    // A request with another key, or without a key, makes another proof.
    let second = keyed(&client, MINT_REPLAY_PROOF, "l", body.clone()).await;
    assert!(!second.replayed && second.text != many[0].text);
    // The owner replays at another path, and the owner's keys are separate.
    let path = format!("/api/v1/decisions/{id}:replay");
    let owner = app.owner();
    let first = keyed(&owner, &path, "k", nothing()).await;
    let again = keyed(&owner, &path, "k", nothing()).await;
    assert_eq!((first.status, first.replayed, again.replayed), (200, false, true));
    assert!(first.text == again.text && first.text != many[0].text);
    let mut db = app.database.owner().await;
    let proofs: i64 = diesel_async::RunQueryDsl::get_result(
        diesel::dsl::sql::<diesel::sql_types::BigInt>("SELECT count(*) FROM replay_proofs"),
        &mut db,
    )
    .await
    .unwrap();
    assert_eq!(proofs, 3);
}
