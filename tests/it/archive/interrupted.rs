//! Archiving continues after any interruption.

use authority_archive::{Archiver, Parts, StepResult};
use serde_json::json;

use super::{TENANT, World, removed, steps};

/// Runs a node that is killed after this many steps. Only the work that it committed remains.
async fn killed_after(world: &World, count: usize) -> Vec<StepResult> {
    let archiver = world.archiver();
    let mut done = Vec::new();
    for _ in 0..count {
        done.push(archiver.step().await.unwrap());
    }
    world.leases_ended().await;
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_after_any_step_is_followed_by_another() {
    let world = World::start().await;
    let ids = world.decided(9).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let mut done = Vec::new();
    while done.last() != Some(&StepResult::Removed(0)) {
        assert!(done.len() < 100, "{done:?}");
        // After `Dropped(0)`, the next node repeats this step: it needs a second step to make
        // progress.
        let count = if done.last() == Some(&StepResult::Dropped(0)) { 2 } else { 1 };
        done.extend(killed_after(&world, count).await);
    }
    assert_eq!(done.iter().filter(|step| **step == StepResult::Written).count(), 3, "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(world.damages().await, [""; 0]);
    let reader = world.reader(TENANT).await;
    for id in &ids {
        assert_eq!(reader.get_evidence_bundle(id).await.0, 200);
    }
}

/// A node was killed after it wrote an object and before it committed the part. The part is written
/// again. Objects that no manifest names are deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_without_being_committed_is_written_again() {
    let world = World::start().await;
    world.decided(9).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    killed_after(&world, 2).await;
    world.app.database.run("DELETE FROM archive_parts WHERE part = 2").await;
    world.parts().bucket.put("acme/2020-01/half", b"of another month".to_vec()).await.unwrap();
    let month = world.month();
    let lost = format!("acme/{month}/decisions-00002-000000000000.jsonl.zst");
    world.parts().bucket.put(&lost, b"half written".to_vec()).await.unwrap();
    let done = steps(&world.archiver()).await;
    assert_eq!(removed(&done), 9, "{done:?}");
    assert_eq!(world.damages().await, [""; 0]);
    let objects = world.objects("acme").await;
    assert!(!objects.contains(&lost), "{objects:?}");
    assert!(
        objects.contains(&"acme/2020-01/half".to_owned()),
        "objects outside this month's folder must stay"
    );
}

/// Of two nodes, only one has the lease. A node that has lost the lease commits no work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_at_a_time_archives_a_month() {
    let world = World::start().await;
    world.decided(9).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let (one, other) = (world.archiver(), world.archiver());
    assert_eq!(one.step().await.unwrap(), StepResult::Written);
    assert_eq!(other.step().await.unwrap(), StepResult::Dropped(0), "the other node has the month");
    assert_eq!(other.step().await.unwrap(), StepResult::Idle);
    // The first node stalls until its lease ends.
    world.leases_ended().await;
    assert_eq!(other.step().await.unwrap(), StepResult::Written);
    assert_eq!(one.step().await.unwrap(), StepResult::Skipped);
    assert!(steps(&other).await.contains(&StepResult::Archived));
    steps(&one).await;
    assert_eq!(world.damages().await, [""; 0]);
}

/// One node plans to archive the month before the other node has archived it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_is_archived_once() {
    let world = World::start().await;
    world.decided(9).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let (slow, other) = (world.archiver(), world.archiver());
    assert_eq!(slow.step().await.unwrap(), StepResult::Written);
    world.leases_ended().await;
    while other.step().await.unwrap() != StepResult::Archived {}
    assert_eq!(slow.step().await.unwrap(), StepResult::Skipped);
    assert_eq!(world.count("archive_runs", "true").await, 0);
    steps(&slow).await;
    let objects = world.objects("acme").await;
    let manifests = objects.iter().filter(|name| name.contains("/manifest-"));
    assert_eq!(manifests.count(), 1, "{objects:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_stops_ends_between_two_pages() {
    let world = World::start().await;
    world.decided(3).await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let parts = world.parts();
    let stopping = parts.stopping.child_token();
    stopping.cancel();
    let archiver = Archiver::new(Parts { stopping, ..parts });
    assert!(matches!(archiver.step().await, Err(authority_archive::Error::Stopped)));
    assert_eq!(world.count("archives", "true").await, 0);
}
