//! Replay proofs: three modes, a comparison field by field, and a signature on every result.

use authority_evidence::verify::Valid;
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{TENANT, asking, check, decided, published, sealed, sealing};
use crate::support::{
    Answered, Client, MINT_REPLAY_PROOF, Members, Plain, TestApp, new_stop, nothing, only,
};

/// Requests a replay proof and verifies it.
async fn replayed(client: &Client, body: Value) -> Value {
    let (status, text) = client.text("POST", MINT_REPLAY_PROOF, Some(body)).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(check(&text, Some(&published(client).await)), Ok(Valid::Trusted), "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sealed_arguments_give_the_same_bytes() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    let (status, refused) = client.mint_replay_proof(only("decision_id", &id)).await;
    assert_eq!((status, refused["error"].text()), (409, "decision_not_sealed"), "{refused:#}");
    let pack: Value = serde_json::from_str(&sealed(&client, &id).await).unwrap();
    // Later changes of the agent's authority do not affect the replay.
    let stop = new_stop("svc:agent:acme:invoice-bot", "x");
    assert_eq!(app.owner().create_stop_signal(stop).await.0, 201);
    for body in [only("decision_id", &id), only("evidence_id", &pack["id"])] {
        let proof = replayed(&client, body).await;
        assert_eq!((proof["result"].text(), &proof["diff"]), ("match", &json!([])));
        assert_eq!(proof["recomputed_decision_id"], id);
    }
    let now = replayed(&client, json!({"decision_id": id, "mode": "current_state"})).await;
    assert_eq!(now["result"], "mismatch");
    let changed = now["diff"].as_array().unwrap();
    let reason = changed.iter().find(|one| one["member"] == "verdict.reason_code").unwrap();
    let both = (&reason["sealed"], &reason["recomputed"]);
    assert_eq!(both, (&json!("permission_granted"), &json!("actor_stopped")));
    let owner = app.owner();
    let (status, by_owner) = owner.post(&format!("/api/v1/decisions/{id}:replay"), nothing()).await;
    assert_eq!((status, by_owner["replay_proof"]["result"].text()), (200, "match"), "{by_owner:#}");
    for body in [nothing(), json!({"decision_id": id, "mode": "policy_pin"})] {
        assert_eq!(client.mint_replay_proof(body).await.0, 400);
    }
}

async fn threshold(app: &TestApp) -> Value {
    let (_, found) = app.owner().list_policies(&format!("tenant_id={TENANT}")).await;
    let policies = found["policies"].as_array().unwrap();
    let is = |policy: &&Value| policy["name"] == "Payment threshold";
    policies.iter().find(is).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_of_a_policy_is_put_in() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(9000.0, "DE")).await;
    sealed(&client, &id).await;
    let policy = threshold(&app).await;
    let lower = policy["cedar"].as_str().unwrap().replace("10000.00", "5000.00");
    app.owner()
        .update_policy(policy["id"].as_str().unwrap(), only("cedar", &lower))
        .await
        .assert_status(200);
    let pin = |version: i32| {
        json!({"decision_id": id, "mode": "policy_pin", "policy_id": policy["id"],
               "policy_version": version})
    };
    let same = replayed(&client, pin(1)).await;
    assert_eq!(same["result"], "match", "{same:#}");
    let held = replayed(&client, pin(2)).await;
    assert_eq!((held["result"].text(), held["policy"]["version"].number()), ("mismatch", 2));
    let (status, unknown) = client.mint_replay_proof(pin(9)).await;
    let field = &unknown["details"][0]["field"];
    assert_eq!((status, field), (400, &json!("policy_version")), "{unknown:#}");
}

/// An altered row is detected, because its digest differs from the signed one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_facts_are_a_mismatch() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    sealed(&client, &id).await;
    let mut owner = app.database.owner().await;
    let alter = "SET session_replication_role = replica; UPDATE decisions SET context = \
        convert_to(replace(convert_from(context, 'UTF8'), '1200', '1300'), 'UTF8')";
    owner.batch_execute(alter).await.unwrap();
    let proof = replayed(&client, only("decision_id", &id)).await;
    assert_eq!(proof["result"], "mismatch");
    assert_eq!(proof["diff"][0]["member"], "request.context_digest", "{proof:#}");
    for mode in ["current_state", "historical_state_snapshot"] {
        let proof = replayed(&client, json!({"decision_id": id, "mode": mode})).await;
        assert_eq!(proof["result"], "mismatch", "{mode}");
    }
}

/// The decision used the approval itself: the replay still counts the approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_that_used_up_its_approval_still_follows() {
    let (app, client) = sealing().await;
    let ask = asking(25_000.0, "DE");
    let (_, held) = client.evaluate(ask.clone()).await;
    let approval = held["approval_id"].as_str().unwrap();
    let approver = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(approver.approve_approval(approval).await.0, 200);
    let citing = ask.with("approval_id", approval);
    let (_, allowed) = client.evaluate(citing).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    let id = allowed["decision_id"].as_str().unwrap();
    sealed(&client, id).await;
    for mode in ["historical_state_snapshot", "current_state"] {
        let proof = replayed(&client, json!({"decision_id": id, "mode": mode})).await;
        assert_eq!(proof["result"], "match", "{proof:#}");
    }
}
