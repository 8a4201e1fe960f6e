//! Rows that are added to a month while it is being removed are not archived, and stay in the
//! tables.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::json;

use super::{StepResult, TENANT, World, months_ago, removed, steps};
use crate::support::{Answered, Wishes, only};

/// Runs the worker until it has removed the first part of a month that has nine decisions.
async fn half_removed(world: &World) -> authority_archive::Archiver {
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    for _ in 0..10 {
        if archiver.step().await.unwrap() == StepResult::Removed(4) {
            return archiver;
        }
    }
    panic!("no part was removed");
}

/// A service's clock does not permit such late decisions, but a repair by hand can cause them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_decision_stays_with_those_around_it() {
    let world = World::start().await;
    let ids = world.decided(9).await;
    let archiver = half_removed(&world).await;
    // Adds one decision in the time of the second part, one after all others, and one before the
    // removed part.
    world.then.advance(TimeDelta::milliseconds(-7 * 4 + 3));
    let mut late = world.decided(1).await;
    world.then.advance(TimeDelta::milliseconds(1000));
    late.extend(world.decided(1).await);
    world.then.advance(TimeDelta::milliseconds(-2000));
    late.extend(world.decided(1).await);
    assert!(ids[4] < late[0] && late[0] < ids[7] && late[1] > ids[8] && late[2] < ids[0]);

    let done = steps(&archiver).await;
    assert_eq!(removed(&done), 1, "only the third part may be removed: {done:?}");
    assert_eq!(done.last(), Some(&StepResult::Removed(0)));
    assert_eq!(world.count("decisions", "true").await, 4 + 3);
    assert_eq!(world.count("archives", "removed_at IS NOT NULL").await, 1);
    let reader = world.reader(TENANT).await;
    for id in &ids {
        assert_eq!(reader.get_evidence_bundle(id).await.0, 200, "{id}");
    }
    for id in &late {
        assert_eq!(reader.get_decision(id).await.0, 200, "{id}");
    }
    // Later runs do not remove the late decisions either, neither as rows nor with a partition.
    assert_eq!(world.run().await, [StepResult::Dropped(0)]);
    assert_eq!(world.count("decisions", "true").await, 4 + 3);
    assert_eq!(world.damages().await, [""; 0]);
}

/// The node's clock is slow. Its rows have times before the archive, but the archive does not
/// contain them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_with_a_slow_clock_adds_stays() {
    let world = World::start().await;
    let ids = world.decided(5).await;
    for id in &ids {
        world.reader(TENANT).await.seal_decision(id).await.assert_status(200);
    }
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    let scopes = ["runtime:write", "runtime:read", "evidence:read", "evidence:write"];
    let slow = world.past.client(&world.past.api_key(TENANT, &scopes).await);
    let report = json!({"outcome": "executed", "detail": "late"});
    let (status, told) = slow.report_decision(&ids[0], report).await;
    assert!(status < 300, "{told:#}");
    slow.mint_replay_proof(only("decision_id", &ids[0])).await.assert_status(200);
    steps(&archiver).await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(world.count("decision_reports", "true").await, 1);
    assert_eq!(world.count("replay_proofs", "true").await, 1);
    let decision = world.reader(TENANT).await.get_decision(&ids[0]).await.1;
    assert_eq!(decision["report"]["detail"], "late", "{decision:#}");
}

/// Months are removed in their order, because a tenant's remaining history must not have a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn months_go_in_their_order() {
    let world = World::start().await;
    world.decided(2).await;
    let then = Clock::fixed(months_ago(2));
    let past = world.past.beside(Wishes { clock: then.clone(), ..Wishes::default() }).await;
    let world = World { past, then, ..world };
    world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    while archiver.step().await.unwrap() != StepResult::Archived {}
    // The first month's objects must be read again before any month is removed.
    let months = "UPDATE archives SET checked_at = now() - interval '2 days' \
                  WHERE month = (SELECT min(month) FROM archives)";
    world.app.database.run(months).await;
    let latest = "SELECT remove_archived(tenant_id, month) AS removed FROM archives ORDER BY month DESC LIMIT 1";
    assert_eq!(world.removed_by(latest).await, None);
    assert_eq!(world.count("decisions", "true").await, 4);
    steps(&archiver).await;
    assert_eq!(world.count("decisions", "true").await, 0);
}

/// The newest change is not archived with its month. Once a newer change exists, the earlier one is
/// archived before it is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_became_old_since_is_archived_first() {
    let world = World::start().await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.app.database.run("UPDATE authority_changes SET at = at - interval '3 months'").await;
    let archiver = world.until_archived().await;
    let all = world.count("authority_changes", &format!("tenant_id = '{TENANT}'")).await;
    let changes = async || world.owner().list_archives("").await.1["archives"][0]["changes"].take();
    assert_eq!(changes().await, all - 1, "all but the newest");

    world.set(TENANT, only("name", "Acme Payments")).await;
    let done = steps(&archiver).await;
    assert!(
        done.contains(&StepResult::Skipped) && !done.contains(&StepResult::Removed(0)),
        "{done:?}"
    );
    let done = world.run().await;
    assert!(
        done.contains(&StepResult::Archived) && done.contains(&StepResult::Removed(0)),
        "{done:?}"
    );
    assert_eq!(changes().await, all);
    let month = "at < now() - interval '1 month'";
    assert_eq!(
        world.count("authority_changes", &format!("tenant_id = '{TENANT}' AND {month}")).await,
        0
    );
}

/// The first month is archived again before any later month is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_that_is_archived_anew_holds_up_those_after_it() {
    let world = World::start().await;
    world.decided(2).await;
    let then = Clock::fixed(months_ago(2));
    let past = world.past.beside(Wishes { clock: then.clone(), ..Wishes::default() }).await;
    let later = World { past, then, app: world.app.beside(Wishes::default()).await };
    later.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    while archiver.step().await.unwrap() != StepResult::Archived {}
    world.decided(1).await;
    let done = steps(&archiver).await;
    assert!(done.contains(&StepResult::Skipped), "{done:?}");
    assert_eq!((removed(&done), world.count("decisions", "true").await), (0, 5));
    let done = world.run().await;
    assert_eq!((removed(&done), world.count("decisions", "true").await), (5, 0), "{done:?}");
}

/// Objects are altered less than a day after they were read back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_stay_whose_objects_were_deleted_since() {
    let world = World::start().await;
    world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    let bucket = world.parts().bucket;
    for object in world.objects("acme").await {
        let whole = bucket.get(&object, super::MOST).await.unwrap().to_vec();
        bucket.put(&object, whole[1..].to_vec()).await.unwrap();
        let done = steps(&archiver).await;
        assert!(done.contains(&StepResult::Skipped) && removed(&done) == 0, "{object}: {done:?}");
        if !object.contains("/manifest-") {
            bucket.delete(&object).await.unwrap();
            let done = steps(&archiver).await;
            assert!(
                done.contains(&StepResult::Skipped) && removed(&done) == 0,
                "{object}: {done:?}"
            );
        }
        assert_eq!(world.count("decisions", "true").await, 6, "{object}");
        bucket.put(&object, whole).await.unwrap();
    }
    assert_eq!(removed(&world.run().await), 6);
}
