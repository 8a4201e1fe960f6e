//! Erasing a person includes the archives.

use authority_archive::Eraser;
use authority_model::wire::Json;
use authority_process::clock::Clock;
use authority_store::Scope;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{MOST, StepResult, TENANT, World, steps};
use crate::support::{Answered, Plain, asking, only};

const ANN: &str = "ann@example.org";

/// Makes two decisions in the past month. The context of the first names Ann.
async fn two(world: &World) -> [String; 2] {
    let key = world.past.api_key(TENANT, &["runtime:write"]).await;
    let client = world.past.client(&key);
    let mut ids = Vec::new();
    for payee in [ANN, "bob@example.org"] {
        world.then.advance(TimeDelta::milliseconds(7));
        let mut ask = asking(7.0, "DE");
        ask["context"]["payee"] = json!(payee);
        let (status, answer) = client.evaluate(ask).await;
        assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
        let id = answer["decision_id"].as_str().unwrap().to_owned();
        let report = json!({"outcome": "executed", "detail": format!("paid to {payee}")});
        let (status, reported) = client.report_decision(&id, report).await;
        assert!(status < 300, "{reported:#}");
        ids.push(id);
    }
    ids.try_into().unwrap()
}

async fn erase(world: &World) -> (u16, Value) {
    let body = json!({"email": ANN, "reason": "request 17"});
    world.owner().erase_personal_data(body).await
}

/// Returns all objects of the archive as text, decompressed if they are compressed.
async fn everything(world: &World) -> String {
    let bucket = world.parts().bucket;
    let mut text = String::new();
    for name in world.objects("").await {
        let bytes = bucket.get(&name, MOST).await.unwrap();
        let lines = authority_archive::format::frames::lines(&bytes);
        let bytes = lines.map_or(bytes.to_vec(), |lines| lines.concat());
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_written_anew_without_the_person() {
    let world = World::start().await;
    let [anns, bobs] = two(&world).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    assert!(everything(&world).await.contains(ANN));
    let reader = world.reader(TENANT).await;
    let (_, pack) = reader.evidence_text(&anns, "").await;
    let (_, bundle) = reader.evidence_text(&bobs, "bundle=true").await;

    let erased = erase(&world).await.assert_status(200);
    let counts = &erased["erasure"]["erased"];
    assert_eq!((counts["contexts"].number(), counts["reports"].number()), (1, 1), "{erased:#}");
    let left = everything(&world).await;
    assert!(!left.contains(ANN) && left.contains("bob@example.org"));
    assert_eq!(world.damages().await, [""; 0]);
    // The signed pack remains and verifies. A replay of erased data reports no match.
    let again = reader.evidence_text(&anns, "").await;
    assert_eq!(again, (200, pack));
    let (status, refused) = reader.get_evidence_bundle(&anns).await;
    assert_eq!((status, refused["error"].text()), (409, "decision_erased"));
    let (_, proof) = reader.mint_replay_proof(only("decision_id", &anns)).await;
    assert_eq!(proof["result"], "indeterminate", "{proof:#}");
    let same = reader.evidence_text(&bobs, "bundle=true").await;
    assert_eq!(same, (200, bundle));
    let (status, again) = erase(&world).await;
    assert_eq!((status, &again["erasure"]["erased"]["contexts"]), (200, &Value::Null), "{again:#}");
}

/// If a person is erased while a month is half written, the month is written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_that_is_being_archived_has_nothing_of_the_person() {
    let world = World::start().await;
    two(&world).await;
    world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    assert!(everything(&world).await.contains(ANN));
    assert_eq!(erase(&world).await.0, 200);
    assert!(!everything(&world).await.contains(ANN), "it must be erased at once");
    super::steps(&archiver).await;
    super::steps(&world.archiver()).await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert!(!everything(&world).await.contains(ANN));
    assert_eq!(world.damages().await, [""; 0]);
}

/// The person is erased when the month is archived but its rows still exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_whose_rows_are_there_is_read_back_again_before_they_go() {
    let world = World::start().await;
    let [anns, bobs] = two(&world).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.until_archived().await;
    let before = world.reader(TENANT).await.evidence_text(&bobs, "bundle=true").await;
    assert_eq!(erase(&world).await.0, 200);
    assert!(!everything(&world).await.contains(ANN));
    assert_eq!(world.count("archives", "checked_at IS NULL").await, 1);
    assert_eq!(world.removed(TENANT).await, None);
    super::steps(&archiver).await;
    assert!(super::steps(&archiver).await.contains(&StepResult::Dropped(0)));
    assert_eq!(world.count("decisions", "true").await, 0);
    assert!(!everything(&world).await.contains(ANN));
    assert_eq!(world.damages().await, [""; 0]);
    let reader = world.reader(TENANT).await;
    assert_eq!(reader.evidence_text(&bobs, "bundle=true").await, before);
    let (status, refused) = reader.get_evidence_bundle(&anns).await;
    assert_eq!((status, refused["error"].text()), (409, "decision_erased"));
}

/// After the archives are erased and before the tables are, a month may still be archived with its
/// original contexts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_knows_of_a_month_that_was_archived_meanwhile() {
    let world = World::start().await;
    world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    let Value::Object(person) = json!({"emails": {ANN: "code"}, "subjects": {}, "principals": []})
    else {
        panic!()
    };
    let person = Json(person);
    let (store, parts) = (world.app.database.store(), world.parts());
    let eraser = Eraser { store, keys: parts.keys, clock: parts.clock, bucket: Some(parts.bucket) };
    let are_all = async |manifests: Vec<String>| {
        let (eraser, person) = (eraser.clone(), person.clone());
        let asked = world.app.database.store().write_tx(&Scope::service(), async move |db| {
            eraser.are_all(db, &person, &manifests).await
        });
        asked.await.unwrap()
    };
    assert!(are_all(Vec::new()).await, "no month is archived");
    assert!(
        world.objects("").await.is_empty(),
        "the objects of a half-written month must be deleted"
    );
    assert_eq!(world.count("archive_parts", "true").await, 0, "the month must start again");
    world.until_archived().await;
    assert!(!are_all(Vec::new()).await);
    let erased = eraser.erase(&Scope::service(), &person).await.unwrap();
    assert!(are_all(erased.manifests).await);
}

/// Replaced objects are deleted whatever their age seems to be, because a clock may have been set
/// back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_replaced_goes_however_young_it_seems() {
    let world = World::start().await;
    two(&world).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    let folder = world.app.database.folder().join("archive/acme").join(world.month());
    for file in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::File::options().append(true).open(file.unwrap().path()).unwrap();
        file.set_modified((Clock::default().now() + TimeDelta::hours(3)).into()).unwrap();
    }
    assert_eq!(erase(&world).await.0, 200);
    assert!(!everything(&world).await.contains(ANN));
    assert_eq!(world.damages().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_keeps_what_is_archived_and_says_so() {
    let world = World::start().await;
    two(&world).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    world.set(TENANT, json!({"legal_hold": {"reason": "case 7"}})).await;
    let (status, refused) = erase(&world).await;
    assert_eq!((status, refused["error"].text()), (409, "legal_hold"), "{refused:#}");
    assert!(everything(&world).await.contains(ANN));
    world.set(TENANT, only("legal_hold", Value::Null)).await;
    assert_eq!(erase(&world).await.0, 200);
    assert!(!everything(&world).await.contains(ANN));
}

/// If an archive can't be reached, the erasure is not reported as complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_cannot_reach_an_archive_is_not_complete() {
    let world = World::start().await;
    two(&world).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    let bucket = world.parts().bucket;
    let objects = world.objects("acme").await;
    let part = objects.iter().find(|name| name.contains("/decisions-")).unwrap();
    let bytes = bucket.get(part, MOST).await.unwrap();
    bucket.delete(part).await.unwrap();
    assert!(erase(&world).await.0 >= 500);
    let (_, listed) = world.owner().list_erasures("").await;
    assert_eq!(listed["erasures"], json!([]), "{listed:#}");
    bucket.put(part, bytes.to_vec()).await.unwrap();
    assert_eq!(erase(&world).await.0, 200);
    assert!(!everything(&world).await.contains(ANN));
}

/// Contexts are erased by age while the objects of a half-written month still contain them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_that_age_erases_while_a_month_is_written_are_in_no_archive() {
    let world = World::start().await;
    two(&world).await;
    world.decided(4).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let archiver = world.archiver();
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    assert!(everything(&world).await.contains("\"payee\""));
    world.set(TENANT, json!({"retention": {"contexts_days": 30, "decisions_days": 30}})).await;
    world.contexts_erased().await;
    let mut done = steps(&archiver).await;
    done.extend(world.run().await);
    assert!(done.contains(&StepResult::Archived), "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 0);
    assert!(!everything(&world).await.contains("\"payee\""));
    assert_eq!(world.damages().await, [""; 0]);
}
