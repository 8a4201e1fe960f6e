//! The partition of a month's packs also has packs of other months.

use serde_json::json;

use super::{
    StepResult, TENANT, World, removed,
    shared::{is_there, partitioned},
};
use crate::support::{Plain, SEAL_DECISION, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_months_go_part_by_part_and_proofs_before_packs() {
    let world = World::start().await;
    partitioned(&world, "decisions").await;
    let ids = world.decided(6).await;
    let reader = world.reader(TENANT).await;
    let mut packs = Vec::new();
    for id in &ids {
        let body = Some(only("decision_id", id));
        let (status, pack) = reader.text("POST", SEAL_DECISION, body).await;
        assert_eq!(status, 200, "{pack}");
        packs.push((id.clone(), pack));
    }
    world.counted().await;
    let (status, proof) = reader.mint_replay_proof(only("decision_id", &ids[0])).await;
    assert_eq!((status, proof["result"].text()), (200, "match"), "{proof:#}");
    // Makes the proof older, as if it had been stored long before the month is archived.
    let aged = "SET session_replication_role = replica;
        UPDATE replay_proofs SET stored_at = stored_at - interval '1 day'";
    world.app.database.run(aged).await;
    let guard = "
        CREATE FUNCTION proofs_first() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            IF EXISTS (SELECT FROM replay_proofs WHERE decision_id = OLD.decision_id) THEN
                RAISE 'a pack goes before its proof';
            END IF;
            RETURN OLD;
        END $$;
        CREATE TRIGGER proofs_first BEFORE DELETE ON evidence_packs
            FOR EACH ROW EXECUTE FUNCTION proofs_first()";
    world.app.database.run(guard).await;
    let bundle = format!("/v1/evidence/{}?bundle=true", ids[1]);
    let before = reader.text("GET", &bundle, None).await;

    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let done = world.run().await;
    assert!(done.contains(&StepResult::Dropped(0)) && removed(&done) == 6, "{done:?}");
    assert_eq!(world.count("evidence_packs", "true").await, 0);
    assert_eq!(world.count("replay_proofs", "true").await, 0);
    assert_eq!(world.damages().await, [""; 0]);
    assert_eq!(reader.text("GET", &bundle, None).await, before);
    for (id, pack) in &packs {
        assert_eq!(reader.evidence_text(id, "").await.1, *pack);
    }
    // The month's partition of decisions is empty and is dropped. The partition of packs also has
    // other months.
    assert!(world.run().await.contains(&StepResult::Dropped(1)));
    assert!(!is_there(&world, "decisions_month").await);
    assert!(is_there(&world, "evidence_packs_before").await);
}
