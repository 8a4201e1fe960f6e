//! What is damaged in the archive keeps the rows, and is named.

use authority_archive::Bucket;
use serde_json::json;

use super::{Step, TENANT, World, removed, steps};

pub(super) async fn flip(bucket: &Bucket, name: &str) {
    let mut bytes = bucket.get(name).await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bucket.put(name, bytes).await.unwrap();
}

/// While the month is written, and when it is archived but not removed yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_removed_of_a_month_of_which_a_byte_is_wrong() {
    let world = World::start().await;
    world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), Step::Written);
    let bucket = world.parts().bucket;
    flip(&bucket, &world.objects("acme").await[0]).await;
    let done = steps(&archiver).await;
    assert!(done.contains(&Step::Skipped) && !done.contains(&Step::Archived), "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 6);
    // It is written anew.
    world.until_archived().await;
    assert_eq!(world.damages().await, [""; 0]);
    // A hold or a day comes between.
    world.app.database.run("UPDATE archives SET checked_at = now() - interval '2 days'").await;
    for object in world.objects("acme").await {
        flip(&bucket, &object).await;
        let done = world.run().await;
        assert!(done.contains(&Step::Skipped), "{object}: {done:?}");
        assert_eq!(world.count("decisions", "true").await, 6, "{object}");
        assert_eq!(world.removed(TENANT).await, None, "{object}");
        let damages = world.damages().await;
        assert_eq!(damages.len(), 1, "{damages:?}");
        let name = object.rsplit('/').next().unwrap();
        assert!(damages[0].starts_with(name), "{object}: {damages:?}");
        flip(&bucket, &object).await;
    }
    let done = world.run().await;
    assert!(done.contains(&Step::Checked) && removed(&done) == 6, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rows_than_were_archived_are_archived_anew() {
    let world = World::start().await;
    let ids = world.decided(4).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    // Which no clock of a service would permit.
    let late = world.decided(1).await;
    let done = steps(&archiver).await;
    assert!(done.contains(&Step::Skipped) && !done.contains(&Step::Removed(0)), "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 5);
    let done = world.run().await;
    assert!(done.contains(&Step::Archived) && removed(&done) == 5, "{done:?}");
    let reader = world.reader(TENANT).await;
    for id in ids.iter().chain(&late) {
        assert_eq!(reader.get(&format!("/v1/evidence/{id}")).await.0, 200, "{id}");
    }
}

/// A decision that is read from a damaged archive is an error, and never something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_is_not_shown() {
    let world = World::start().await;
    let ids = world.decided(4).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    let bucket = world.parts().bucket;
    for object in world.objects("acme").await {
        flip(&bucket, &object).await;
        let app = world.app.beside(crate::support::Wishes::default()).await;
        let owner = app.owner();
        let (status, answer) = owner.get(&format!("/v1/evidence/{}", ids[0])).await;
        let is_history = object.contains("/versions-") || object.contains("/changes-");
        assert_eq!(status == 200, is_history, "{object}: {answer:#}");
        flip(&bucket, &object).await;
    }
}
