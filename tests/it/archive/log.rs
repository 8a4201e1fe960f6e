//! After a month's rows are removed, the log continues and still proves them.

use authority_evidence::log::{
    proof::InclusionProof,
    tree::Hash,
    verify::{verify_consistency, verify_inclusion},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{TENANT, World};
use crate::{
    evidence::log::checkpoint,
    support::{Answered, SEAL_DECISION, Wishes, only},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_proves_leaves_that_are_gone_and_appends_new_ones() {
    let world = World::start().await;
    let ids = world.decided(5).await;
    world.counted().await;
    let reader = world.reader(TENANT).await;
    for id in &ids {
        assert_eq!(reader.seal_decision(id).await.0, 200);
    }
    let before = checkpoint(&reader).await.checkpoint;
    assert_eq!(before.size, 5);
    world.set(TENANT, json!({"retention": {"decisions_days": 30}, "auto_seal": true})).await;
    world.run().await;
    assert_eq!(world.count("evidence_packs", "true").await, 0);

    // Uses a new node, which has only the database, and a client that knows the earlier checkpoint.
    let node = world.app.beside(Wishes::default()).await;
    let key = node.api_key(TENANT, &["runtime:write", "evidence:read", "evidence:write"]).await;
    let client = node.client(&key);
    let ask = crate::support::asking(5.0, "DE");
    let (_, answer) = client.evaluate(ask).await;
    let sealed = only("decision_id", &answer["decision_id"]);
    let pack = client.post(SEAL_DECISION, sealed).await.assert_status(200);
    assert_eq!(pack["log"]["index"], 5, "the same log must continue: {pack:#}");
    let now = checkpoint(&client).await.checkpoint;
    assert_eq!((now.size, &now.origin), (6, &before.origin));
    let (_, proof) = client.get_consistency_proof("acme", "from=5").await;
    let path: Vec<Hash> = proof["path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hash| STANDARD.decode(hash.as_str().unwrap()).unwrap().try_into().unwrap())
        .collect();
    assert!(verify_consistency(before.size, &before.root, now.size, &now.root, &path));
    for id in &ids {
        let (_, pack) = client.get_evidence(id).await;
        let index = pack["log"]["index"].as_u64().unwrap();
        let (_, text) =
            client.text("GET", &format!("/v1/log/acme/proof?index={index}"), None).await;
        let proof = InclusionProof::parse(&text).unwrap();
        assert!(verify_inclusion(&leaf(&pack), index, now.size, &proof.path, &now.root), "{id}");
    }
}

fn leaf(pack: &Value) -> Hash {
    let leaf = pack["log"]["leaf_hash"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    hex::decode(leaf).unwrap().try_into().unwrap()
}
