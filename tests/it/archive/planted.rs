//! Planted content in an archive is detected, because a decision's id contains the digest of its
//! record.

use authority_archive::{
    format::{frames::lines, index, index::About, names},
    offline,
};
use authority_crypto::sha256;
use authority_evidence::{archive::Content, digest_text};
use authority_ids::DecisionId;
use authority_keys::Purpose;
use chrono::TimeDelta;
use serde_json::json;

use super::{MOST, StepResult, TENANT, World, steps};

/// The names of the archive's objects that begin with this text.
async fn named(world: &World, start: &str) -> Vec<String> {
    let objects = world.objects("acme").await;
    objects.into_iter().filter(|name| name.rsplit('/').next().unwrap().starts_with(start)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_the_one_of_its_id() {
    let world = World::start().await;
    world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    let part = named(&world, "decisions-").await.remove(0);
    let part = world.parts().bucket.get(&part, MOST).await.unwrap();
    let line = lines(&part).unwrap().remove(0);
    assert!(About::of(&line, &TENANT.into()).is_ok());
    let text = String::from_utf8(line).unwrap();
    for (was, planted) in [
        ("\"decision\":\"allow_with_constraints\"", "\"decision\":\"deny\""),
        ("acme:invoice", "acme:other"),
    ] {
        let planted = text.replace(was, planted);
        assert_ne!(planted, text);
        let why = About::of(planted.as_bytes(), &TENANT.into()).unwrap_err().to_string();
        assert!(why.contains("record"), "{why}");
    }
}

/// A planted index is not followed, even if its manifest has a valid signature.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_leads_to_another_decision_is_not_followed() {
    let world = World::start().await;
    let ids = world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    let (bucket, keys) = (world.parts().bucket, world.parts().keys);
    let found = offline::list(&bucket, &world.trust().await).await.unwrap().remove(0);
    let (mut manifest, _) = found.manifest.unwrap();
    let name = named(&world, "index-").await.remove(0);
    let (mut rows, part) = index::read(bucket.get(&name, MOST).await.unwrap()).unwrap();
    rows[0].place = rows[1].place.clone();
    let planted = index::write(&rows, &part).unwrap();
    let digest = sha256(&planted);
    let object = manifest.objects.iter_mut().find(|one| one.content == Content::Index).unwrap();
    object.name = names::object(Content::Index, object.part, &digest);
    (object.bytes, object.sha256) = (planted.len() as u64, digest_text(&digest));
    bucket.put(&names::path(&found.folder, &object.name), planted).await.unwrap();
    let signer = keys.signer(Purpose::Evidence);
    let text = manifest.sign(&keys.public(signer.kid()).unwrap().published(), &signer).unwrap();
    let id = DecisionId::parse(&ids[0]).unwrap();
    // First, the planted manifest is found before the genuine one. Then it is the only one.
    bucket
        .put(&names::path(&found.folder, "manifest-000000000000.json"), text.into())
        .await
        .unwrap();
    let bundle = offline::get(&bucket, &id).await.unwrap().unwrap();
    let (_, served) = world.reader(TENANT).await.evidence_text(id.as_str(), "bundle=true").await;
    assert_eq!(bundle, served);
    bucket.delete(&names::path(&found.folder, &found.name)).await.unwrap();
    let why = offline::get(&bucket, &id).await.unwrap_err().to_string();
    assert!(why.contains("leads to another decision"), "{why}");
}

/// The archive has as many rows as the tables, but one row differs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_with_a_decision_that_the_tables_do_not_have_is_not_archived() {
    let world = World::start().await;
    let ids = world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    world.then.advance(TimeDelta::milliseconds(-7 * 5 + 3));
    let late = world.decided(1).await;
    assert!(ids[0] < late[0] && late[0] < ids[2], "{late:?} of {ids:?}");
    let gone = format!(
        "SET session_replication_role = replica; DELETE FROM evidence_packs WHERE decision_id = '{0}';
         DELETE FROM decisions WHERE id = '{0}'",
        ids[0]
    );
    world.app.database.run(&gone).await;
    let done = steps(&archiver).await;
    assert!(
        done.contains(&StepResult::Skipped) && !done.contains(&StepResult::Archived),
        "{done:?}"
    );
    assert_eq!(world.count("decisions", "true").await, 6);
    // The month is written again from the tables' current rows.
    world.run().await;
    assert_eq!(world.reader(TENANT).await.get_evidence(&late[0]).await.0, 200);
    assert_eq!(world.damages().await, [""; 0]);
}
