//! If an object in the archive is damaged, the error names it and the rows stay in the tables.

use authority_archive::Bucket;
use authority_crypto::{Pair, Signer, jwk, sha256};
use authority_evidence::archive::Manifest;
use diesel::sql_types::{Bytea, Text};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::{MOST, StepResult, TENANT, World, removed, steps};

pub(super) async fn flip(bucket: &Bucket, name: &str) {
    let mut bytes = bucket.get(name, MOST).await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bucket.put(name, bytes).await.unwrap();
}

/// Tests damage while the month is being written, and damage after it is archived but before its
/// rows are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_removed_of_a_month_of_which_a_byte_is_wrong() {
    let world = World::start().await;
    world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    let bucket = world.parts().bucket;
    flip(&bucket, &world.objects("acme").await[0]).await;
    let done = steps(&archiver).await;
    assert!(
        done.contains(&StepResult::Skipped) && !done.contains(&StepResult::Archived),
        "{done:?}"
    );
    assert_eq!(world.count("decisions", "true").await, 6);
    // The month is written again.
    world.until_archived().await;
    assert_eq!(world.damages().await, [""; 0]);
    // The objects must be checked again, because two days have passed since the check.
    world.app.database.run("UPDATE archives SET checked_at = now() - interval '2 days'").await;
    for object in world.objects("acme").await {
        flip(&bucket, &object).await;
        let done = world.run().await;
        assert!(done.contains(&StepResult::Skipped), "{object}: {done:?}");
        assert_eq!(world.count("decisions", "true").await, 6, "{object}");
        assert_eq!(world.removed(TENANT).await, None, "{object}");
        let damages = world.damages().await;
        assert_eq!(damages.len(), 1, "{damages:?}");
        let name = object.rsplit('/').next().unwrap();
        assert!(damages[0].starts_with(name), "{object}: {damages:?}");
        flip(&bucket, &object).await;
    }
    let done = world.run().await;
    assert!(done.contains(&StepResult::Checked) && removed(&done) == 6, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rows_than_were_archived_are_archived_anew() {
    let world = World::start().await;
    let ids = world.decided(4).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    // A service's clock would not permit a decision in this past month.
    let late = world.decided(1).await;
    let done = steps(&archiver).await;
    assert!(
        done.contains(&StepResult::Skipped) && !done.contains(&StepResult::Removed(0)),
        "{done:?}"
    );
    assert_eq!(world.count("decisions", "true").await, 5);
    let done = world.run().await;
    assert!(done.contains(&StepResult::Archived) && removed(&done) == 5, "{done:?}");
    let reader = world.reader(TENANT).await;
    for id in ids.iter().chain(&late) {
        assert_eq!(reader.get_evidence(id).await.0, 200, "{id}");
    }
}

/// Reading a decision from a damaged archive returns an error, never another decision.
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
        let (status, answer) = owner.get_evidence(&ids[0]).await;
        let is_history = object.contains("/versions-") || object.contains("/changes-");
        assert_eq!(status == 200, is_history, "{object}: {answer:#}");
        flip(&bucket, &object).await;
    }
}

/// Changes a manifest like a forger who can write to the archive and has the service's login, but
/// has no key.
async fn forge(world: &World, change: impl Fn(&mut Value)) {
    let bucket = world.parts().bucket;
    let objects = world.objects("acme").await;
    let signed =
        objects.iter().find(|name| name.contains("/manifest-") && !name.contains("forged"));
    let signed = signed.unwrap();
    let signed = bucket.get(signed, MOST).await.unwrap();
    let mut manifest: Value = serde_json::from_slice(&signed).unwrap();
    change(&mut manifest);
    let text = manifest.to_string();
    let name = format!("acme/{}/manifest-forged.json", world.month());
    bucket.put(&name, text.clone().into()).await.unwrap();
    let mut db = world.app.app.store.system().await.unwrap();
    let forged = diesel::sql_query(
        "UPDATE archives SET manifest = 'manifest-forged.json', manifest_sha256 = $1, is_tidy = false, \
         checked_at = NULL WHERE tenant_id = $2",
    );
    let forged = forged.bind::<Bytea, _>(sha256(text.as_bytes()).to_vec()).bind::<Text, _>(TENANT);
    assert_eq!(forged.execute(&mut db).await.unwrap(), 1);
}

/// Signs the manifest with another key, and includes that key in it.
fn sign_as_another(manifest: &mut Value) {
    let pair = Pair::ed25519().unwrap();
    let kid = jwk::kid("evidence", 2026, &pair.public_jwk).unwrap();
    let signer = Signer::read(&kid, &pair.private).unwrap();
    manifest["key"]["x"] = pair.public_jwk["x"].clone();
    manifest["key"]["kid"] = json!(kid);
    let unsigned: Manifest = serde_json::from_value(manifest.clone()).unwrap();
    let signed = unsigned.sign(&manifest["key"], &signer).unwrap();
    *manifest = serde_json::from_str(&signed).unwrap();
}

/// Tests manifests with another object's digest, without a signature, and with a foreign key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_that_the_service_did_not_sign_is_not_read_and_removes_nothing() {
    let world = World::start().await;
    let ids = world.decided(4).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.until_archived().await;
    let forgeries: [fn(&mut Value); 3] = [
        |manifest| manifest["objects"][0]["sha256"] = json!(format!("sha256:{}", "0".repeat(64))),
        |manifest| drop(manifest.as_object_mut().unwrap().remove("signature")),
        sign_as_another,
    ];
    let before = world.objects("acme").await;
    for forged in forgeries {
        forge(&world, forged).await;
        let done = world.run().await;
        assert!(done.contains(&StepResult::Skipped) && removed(&done) == 0, "{done:?}");
        assert_eq!(world.count("decisions", "true").await, 4);
        let left = world.objects("acme").await;
        assert!(before.iter().all(|object| left.contains(object)), "{left:?}");
    }
    // The service has marked the rows as removed and has removed them.
    let removed =
        "UPDATE archives SET removal_begun = now(); SET session_replication_role = replica;
        DELETE FROM evidence_packs; DELETE FROM decisions";
    world.app.database.run(removed).await;
    let reader = world.reader(TENANT).await;
    for forged in forgeries {
        forge(&world, forged).await;
        for id in &ids {
            for path in ["/v1/evidence/", "/v1/decisions/", "/receipts/"] {
                let (status, text) = reader.text("GET", &format!("{path}{id}"), None).await;
                assert_eq!(status, 500, "{path}{id}: {text}");
            }
        }
    }
}
