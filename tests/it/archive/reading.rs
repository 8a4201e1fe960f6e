//! Archived decisions can be read like decisions in the tables.

use authority_evidence::verify::{Trust, Valid, key_set, verify};
use serde_json::{Value, json};

use super::{TENANT, World};
use crate::support::{
    Answered, Client, MINT_REPLAY_PROOF, Members, SEAL_DECISION, new_api_key, new_policy,
    new_tenant, only,
};

/// Returns the responses of all operations that read a decision.
async fn everything(client: &Client, owner: &Client, id: &str) -> Vec<(u16, String)> {
    let evidence = id.replace("svc:decision:", "svc:evidence:");
    let mut read = Vec::new();
    for path in [
        format!("/v1/evidence/{id}"),
        format!("/v1/evidence/{evidence}"),
        format!("/v1/evidence/{id}?bundle=true"),
        format!("/v1/decisions/{id}"),
    ] {
        read.push(client.text("GET", &path, None).await);
    }
    read.push(owner.evidence_text(id, "bundle=true").await);
    read.push(owner.text("GET", &format!("/api/v1/decisions/{id}"), None).await);
    for file in ["", "/record.json", "/signature.json", "/pack.json", "/proof"] {
        read.push(client.text("GET", &format!("/receipts/{id}{file}"), None).await);
    }
    read
}

async fn replayed(client: &Client, body: Value) -> Value {
    client.mint_replay_proof(body).await.assert_status(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_receipts_and_replays_are_as_if_nothing_had_happened() {
    let world = World::start().await;
    let ids = world.decided(6).await;
    world.counted().await;
    let (client, owner) = (world.reader(TENANT).await, world.owner());
    for id in &ids {
        let sealed = client.seal_decision(id).await;
        assert_eq!(sealed.0, 200, "{sealed:?}");
    }
    let first = replayed(&client, only("decision_id", &ids[1])).await;
    assert_eq!(first["result"], "match", "{first:#}");
    let mut before = Vec::new();
    for id in &ids {
        before.push(everything(&client, &owner, id).await);
    }
    assert!(before.iter().flatten().all(|(status, _)| *status == 200), "{before:#?}");
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);

    for (id, before) in ids.iter().zip(&before) {
        let after = everything(&client, &owner, id).await;
        for (after, before) in after.iter().zip(before) {
            assert_eq!(after, before, "{id}");
        }
    }
    let (_, jwks) = client.text("GET", "/.well-known/jwks.json", None).await;
    let trust = Trust { keys: Some(key_set(jwks.as_bytes()).unwrap()), log_key: None };
    let bundle = &before[2][2].1;
    assert_eq!(verify(bundle.as_bytes(), &trust), Ok(Valid::Trusted));
    // Sealing an archived decision again returns the same pack, and every kind of replay works.
    let path = SEAL_DECISION;
    let again = client.text("POST", path, Some(only("decision_id", &ids[3]))).await;
    assert_eq!(again, before[3][0]);
    for mode in ["historical_state_snapshot", "current_state"] {
        let proof = replayed(&client, json!({"decision_id": ids[2], "mode": mode})).await;
        assert_eq!(proof["result"], "match", "{proof:#}");
        assert!(verify(proof.to_string().as_bytes(), &trust).is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_id_is_as_unknown_as_any_other() {
    let world = World::start().await;
    let ids = world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    world.owner().create_tenant(new_tenant("Globex", "globex")).await.assert_status(201);
    let foreign = world.reader("svc:tenant:globex").await;
    // Another key of the same tenant is bound to another agent.
    let body = new_api_key("bound", &["runtime:read", "evidence:read", "evidence:write"])
        .with("principal_ids", ["svc:agent:acme:support-bot"]);
    let made = world.owner().create_api_key(body).await.assert_status(201);
    let bound = world.app.client(made["secret"].as_str().unwrap());
    let unknown = format!("{}{}", &ids[0][..25], "0".repeat(52));
    for client in [foreign, bound] {
        for path in ["/v1/evidence/", "/v1/decisions/"] {
            let answer = async |id: &str| {
                let (status, mut body) = client.get(&format!("{path}{id}")).await;
                body["request_id"].take();
                (status, body.to_string().replace(id, "ID"))
            };
            let there = answer(&ids[0]).await;
            assert_eq!(there.0, 404, "{there:?}");
            assert_eq!(there, answer(&unknown).await);
        }
        for path in [MINT_REPLAY_PROOF, SEAL_DECISION] {
            let (status, there) = client.post(path, only("decision_id", &ids[0])).await;
            assert_eq!(status, 404, "{path}: {there:#}");
        }
    }
}

/// The bundle of an archived decision has the texts of observing versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_observing_version_would_have_decided_is_shown_as_before() {
    let world = World::start().await;
    let body = new_policy("own", "@id(\"never\") forbid (principal, action, resource);")
        .with("state", "draft");
    let made = world.past.owner().create_policy(body).await.assert_status(201);
    assert_eq!(
        world.past.owner().observe_policy(made["policy"]["id"].as_str().unwrap()).await.0,
        200
    );
    let ids = world.decided(2).await;
    world.counted().await;
    let (client, owner) = (world.reader(TENANT).await, world.owner());
    for id in &ids {
        let sealed = client.seal_decision(id).await;
        assert_eq!(sealed.0, 200, "{sealed:?}");
    }
    let before = everything(&client, &owner, &ids[0]).await;
    assert!(before.iter().any(|(_, text)| text.contains("would deny it: policy_denied (never)")));
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(everything(&client, &owner, &ids[0]).await, before);
}
