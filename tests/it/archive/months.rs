//! The way of a month from the tables to the archive.

use serde_json::json;

use super::{StepResult, TENANT, World};
use crate::support::{Answered, Plain, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_is_archived_and_only_then_removed() {
    let world = World::start().await;
    let ids = world.decided(10).await;
    let today = world.app.client(&world.app.demo().await.api_key);
    today.evaluate(crate::support::asking(5.0, "DE")).await.assert_status(200);
    assert_eq!(
        world.run().await,
        [StepResult::Dropped(0)],
        "without a retention in days no month is due"
    );
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.counted().await;

    let done = world.run().await;
    assert_eq!(
        done,
        [
            StepResult::Written,
            StepResult::Written,
            StepResult::Written,
            StepResult::Archived,
            StepResult::Tidied,
            StepResult::Dropped(0),
            StepResult::Removed(4),
            StepResult::Removed(4),
            StepResult::Removed(2),
            StepResult::Removed(0),
        ]
    );
    let gone = format!("id = ANY ('{{{}}}')", ids.join(","));
    assert_eq!(world.count("decisions", &gone).await, 0);
    assert_eq!(world.count("evidence_packs", &gone.replace("id =", "decision_id =")).await, 0);
    assert_eq!(world.count("decisions", "true").await, 1, "today's decision must stay");
    // The log still has the leaves of the removed decisions.
    assert_eq!(world.count("log_nodes", "level = 0").await, 3);
    let objects = world.objects("acme").await;
    assert_eq!(objects.len(), 3 + 3 + 1, "parts, their indexes and the manifest: {objects:?}");
    assert_eq!(world.damages().await, [""; 0]);
    assert_eq!(world.run().await, [StepResult::Dropped(0)]);
}

/// Superseded versions and old changes are removed with their month. The newest change stays,
/// because later revisions continue from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_the_month_is_archived_with_it() {
    let world = World::start().await;
    let owner = world.owner();
    let body = |name: &str| json!({"tenant_id": TENANT, "name": name});
    let mut teams = Vec::new();
    for name in ["one", "two"] {
        let made = owner.create_team(body(name)).await.assert_status(201);
        teams.push(made["team"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(owner.update_team(&teams[0], only("name", "uno")).await.0, 200);
    assert_eq!(owner.delete_team(&teams[1]).await.0, 200);
    let months = "interval '3 months'";
    world
        .app
        .database
        .run(&format!(
            "UPDATE record_versions SET valid_from = valid_from - {months}, valid_to = valid_to - {months};
             UPDATE authority_changes SET at = at - {months}"
        ))
        .await;
    let revision = "(SELECT max(revision) FROM tenant_revisions)";
    let before = world.count("authority_changes", "true").await;
    let newest = world.count("authority_changes", &format!("tenant_revision = {revision}")).await;
    assert!(before > 5 && newest == 1);
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.counted().await;
    let done = world.run().await;
    assert_eq!(
        done,
        [StepResult::Archived, StepResult::Tidied, StepResult::Dropped(0), StepResult::Removed(0)]
    );
    let objects = world.objects("acme").await;
    assert_eq!(objects.len(), 3, "versions, changes and the manifest: {objects:?}");
    assert_eq!(world.damages().await, [""; 0]);
    let (_, listed) = owner.list_archives("").await;
    let archive = &listed["archives"][0];
    assert_eq!(
        (archive["decisions"].number(), archive["versions"].number()),
        (0, 2),
        "{archive:#}"
    );
    // The current version of the first team and the deletion of the second remain.
    for team in &teams {
        assert_eq!(world.count("record_versions", &format!("entity_id = '{team}'")).await, 1);
    }
    let (_, shown) = owner.get(&format!("/api/v1/teams/{}", teams[0])).await;
    assert_eq!(shown["team"]["name"], "uno");
    // Revisions continue, and decisions use the current state.
    assert_eq!(owner.update_team(&teams[0], only("name", "ichi")).await.0, 200);
    let next = world.count("authority_changes", &format!("tenant_revision = {revision}")).await;
    assert_eq!(next, 1);
    let client = world.app.client(&world.app.demo().await.api_key);
    let (status, answer) = client.evaluate(crate::support::asking(5.0, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
}
