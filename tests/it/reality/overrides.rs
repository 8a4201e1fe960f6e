//! People's decisions on a run: override, accept, escalate.

use serde_json::{Value, json};

use super::{AGENT, World, fault, refusal};
use crate::evidence::acts_and_reports::salted;
use crate::support::{Answered, Plain, nothing, only};

/// Returns the number of rows in `reality_overrides`.
async fn in_force(world: &World) -> i64 {
    use authority_model::schema::reality_overrides;
    use diesel::QueryDsl;
    use diesel_async::RunQueryDsl;
    let mut db = world.app.database.owner().await;
    diesel::sql_query("SET ROLE NONE").execute(&mut db).await.unwrap();
    reality_overrides::table.count().get_result(&mut db).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_not_decided_on_and_an_override_says_why() {
    let world = World::start().await;
    let check = world.new_check(nothing()).await;
    for decision in ["override", "accept", "escalate"] {
        let refused = world.decide(&world.owner, &check, decision).await;
        assert_eq!(refusal(&refused), (409, "check_not_run".to_owned()));
    }
    assert_eq!(
        fault(&world.owner.decide_coupling_check(&check, only("decision", "override")).await),
        "rationale"
    );
    assert_eq!(
        fault(&world.owner.decide_coupling_check(&check, only("decision", "ignore")).await),
        "decision"
    );
    assert_eq!(fault(&world.owner.decide_coupling_check(&check, nothing()).await), "decision");
    // The run has no finding that an override could lift.
    world.run(&check).await;
    let nothing = world.decide(&world.owner, &check, "override").await;
    assert_eq!(refusal(&nothing), (409, "transition_not_allowed".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_is_signed_and_ends_with_a_run_a_decision_or_the_check() {
    let world = World::start().await;
    world.new_anchor(nothing()).await;
    for ending in ["run", "accept", "escalate", "delete"] {
        let check = world.new_check(only("actor_entity_id", AGENT)).await;
        world.run(&check).await;
        let decided = world.decide(&world.owner, &check, "override").await.assert_status(200);
        let over = &decided["coupling_check"]["override"];
        assert_eq!((over["state"].text(), over["by"].as_array().unwrap().len()), ("in_force", 1));
        let act = &over["by"][0];
        assert!(act["kid"].as_str().unwrap().starts_with("svc-evidence-"), "{act:#}");
        let signed: Value = serde_json::from_str(act["record"].as_str().unwrap()).unwrap();
        assert_eq!(
            (signed["verdict"].text(), signed["about"].text()),
            ("override", check.as_str())
        );
        let rationale = salted(&act["comment_salt"], &json!("the ledger is being moved"));
        assert_eq!(signed["comment_digest"], rationale);
        assert_eq!(in_force(&world).await, 1, "{ending}");
        let path = format!("/api/v1/reality-coupling-checks/{check}");
        match ending {
            "run" => drop(world.run(&check).await),
            "delete" => drop(world.owner.call("DELETE", &path, None, &[]).await),
            decision => drop(world.decide(&world.owner, &check, decision).await),
        }
        assert_eq!(in_force(&world).await, 0, "{ending}");
        let (_, read) = world.owner.get(&format!("{path}?deleted=true")).await;
        assert_eq!(read["coupling_check"]["override"]["state"], "ended", "{ending}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_takes_two_owners() {
    let world = World::start().await;
    let contract = json!({"max_staleness_seconds": 60, "missing_runtime_effect": "quarantine"});
    world.new_anchor(only("freshness_contract", &contract)).await;
    let check = world.new_check(nothing()).await;
    assert_eq!(world.run(&check).await["runtime_effect"], "quarantine");
    let (status, first) = world.decide(&world.owner, &check, "override").await;
    assert_eq!((status, first["coupling_check"]["override"]["state"].text()), (200, "pending"));
    assert_eq!(in_force(&world).await, 0);
    let again = world.decide(&world.owner, &check, "override").await;
    assert_eq!(refusal(&again), (409, "override_not_permitted".to_owned()));
    let (status, second) =
        world.decide(&world.another_owner("second@example.org"), &check, "override").await;
    let over = &second["coupling_check"]["override"];
    assert_eq!((status, over["state"].text()), (200, "in_force"), "{second:#}");
    assert_eq!(over["by"].as_array().unwrap().len(), 2);
    assert_eq!(in_force(&world).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_acknowledges_the_drift_and_escalating_asks_for_people() {
    let world = World::start().await;
    world.new_anchor(nothing()).await;
    let check = world.new_check(nothing()).await;
    world.run(&check).await;
    assert_eq!(world.decide(&world.owner, &check, "accept").await.0, 200);
    let drift = world.drift(&check).await;
    assert_eq!(
        (drift[0]["status"].text(), drift[0]["recommended_runtime_effect"].text()),
        ("acknowledged", "require_revalidation")
    );
    assert_eq!(world.decide(&world.owner, &check, "escalate").await.0, 200);
    let drift = world.drift(&check).await;
    assert_eq!(
        (drift[0]["status"].text(), drift[0]["recommended_runtime_effect"].text()),
        ("escalated", "require_human_review")
    );
    let acts: Vec<_> =
        drift[0]["acts"].as_array().unwrap().iter().map(|act| act["act"].clone()).collect();
    assert_eq!(acts, ["acknowledged", "escalated"]);
    assert_eq!(
        world.events("svc.recovery.").await,
        ["svc.recovery.started", "svc.recovery.failed"]
    );
}
