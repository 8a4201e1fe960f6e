//! Rotations: a new key is published first and signs later. The old key is then retired, and its
//! signatures stay valid.

use authority_crypto::KeyRing;
use authority_keys::{Keys, Purpose};
use authority_process::clock::Clock;
use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};

use crate::support::{Answered, Plain, TestApp, database::Database, only};

#[track_caller]
fn published(keys: &Keys) -> Vec<String> {
    let set: Value = serde_json::from_str(&keys.jwks()).unwrap();
    let keys = set["keys"].as_array().unwrap().iter();
    keys.map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_key_is_rotated_in_two_steps() {
    let database = Database::fresh().await;
    let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let ring = KeyRing::generate().unwrap();
    let at = async |days: i64, minutes: i64| {
        let now = start + TimeDelta::days(days) + TimeDelta::minutes(minutes);
        let ring = KeyRing::parse(&ring).unwrap();
        Keys::start(database.store(), ring, Clock::fixed(now), false).await.unwrap()
    };
    let keys = at(0, 0).await;
    assert_eq!(keys.rotate().await.unwrap(), 0);
    let old = keys.signer(Purpose::Evidence);
    let signature = old.sign(b"record");

    let keys = at(90, 0).await;
    assert_eq!(keys.rotate().await.unwrap(), 2 * Purpose::ALL.len());
    assert_eq!(keys.rotate().await.unwrap(), 0);
    assert_eq!(keys.signer(Purpose::Evidence).kid(), old.kid(), "the old key still signs");
    assert_eq!(published(&keys).len(), 2 * Purpose::ALL.len(), "the successors are published");

    let keys = at(90, 61).await;
    assert_eq!(keys.rotate().await.unwrap(), Purpose::ALL.len());
    let new = keys.signer(Purpose::Evidence);
    assert_ne!(new.kid(), old.kid());
    assert!(published(&keys).iter().any(|kid| kid == old.kid()));
    keys.verify(old.kid(), b"record", &signature).unwrap();
    keys.verify(new.kid(), b"record", &new.sign(b"record")).unwrap();
    let listed = keys.list().await.unwrap();
    let was = listed.iter().find(|key| key.kid == old.kid()).unwrap();
    assert_eq!((was.status.as_str(), was.retired_at.is_some()), ("retired", true));
    assert_eq!(at(150, 0).await.rotate().await.unwrap(), 0);
}

/// A key that a request created is counted as due, but only its owner rotates it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_request_made_falls_due_like_any_other() {
    let app = TestApp::start().await;
    let owner = app.owner();
    owner.create_key(json!({"alg": "EdDSA", "purpose": "partners"})).await.assert_status(201);
    let moment = |value: &Value| DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
    let (_, listed) = owner.list_key_rotations("scope=partners").await;
    let dates = &listed["keys"][0];
    let due = moment(&dates["rotation_due_at"]);
    assert_eq!(due - moment(&dates["activated_at"]), TimeDelta::days(90), "{listed:#}");
    assert_eq!(listed["summary"], json!({"active": 1, "due_30d": 0, "overdue": 0}));
    for (days, summary) in [
        (61, json!({"active": 1, "due_30d": 1, "overdue": 0})),
        (91, json!({"active": 1, "due_30d": 0, "overdue": 1})),
    ] {
        let sql = format!(
            "UPDATE signing_keys SET rotation_due_at = activated_at + interval '90 days'
                                                     - interval '{days} days'
             WHERE purpose = 'partners'"
        );
        app.database.run(&sql).await;
        assert_eq!(owner.list_key_rotations("scope=partners").await.1["summary"], summary);
    }
    assert_eq!(app.app.keys.rotate().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_planned_completed_and_called_off_over_rest() {
    let app = TestApp::start().await;
    let owner = app.owner();
    let list = async || owner.list_key_rotations("scope=evidence").await.1;
    let before = list().await;
    let kid = before["keys"][0]["kid"].clone();
    assert_eq!(before["summary"], json!({"active": 1, "due_30d": 0, "overdue": 0}));
    let plan = json!({"kid": kid, "due_at": "2099-01-01T00:00:00Z", "reason": "policy"});
    let (status, planned) = owner.schedule_key_rotation(plan.clone()).await;
    assert_eq!((status, planned["rotation"]["state"].text()), (201, "pending"));
    assert_eq!(owner.schedule_key_rotation(plan).await.0, 409);
    assert_eq!(list().await["rotations"][0]["reason"], "policy");
    let key_rotation_id = planned["rotation"]["id"].as_str().unwrap();
    let (status, off) = owner.cancel_key_rotation(key_rotation_id).await;
    assert_eq!((status, off["rotation"]["state"].text()), (200, "cancelled"));
    let (status, ended) = owner.complete_key_rotation(key_rotation_id).await;
    assert_eq!((status, ended["error"].text()), (409, "record_is_final"));

    let (_, planned) = owner.schedule_key_rotation(only("kid", &kid)).await;
    let (status, done) =
        owner.complete_key_rotation(planned["rotation"]["id"].as_str().unwrap()).await;
    assert_eq!((status, done["rotation"]["state"].text()), (200, "done"));
    assert_eq!(app.app.keys.signer(Purpose::Evidence).kid(), done["rotation"]["successor_kid"]);
    let after = list().await;
    let statuses: Vec<_> = after["keys"].as_array().unwrap().iter().map(|k| &k["status"]).collect();
    assert_eq!(statuses, ["active", "retired"]);
    let (status, final_) = owner.schedule_key_rotation(only("kid", &kid)).await;
    assert_eq!((status, final_["error"].text()), (409, "transition_not_allowed"));
    let (status, none) = owner.schedule_key_rotation(only("kid", "none")).await;
    assert_eq!((status, none["details"][0]["field"].text()), (400, "kid"));
    assert_eq!(owner.cancel_key_rotation("none").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_either_key_of_a_rotation_leaves_one_that_signs() {
    let database = Database::fresh().await;
    let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let ring = KeyRing::parse(&KeyRing::generate().unwrap()).unwrap();
    let later = Clock::fixed(start + TimeDelta::days(91));
    let keys = Keys::start(database.store(), ring, later, false).await.unwrap();
    let due = |kid: &str| {
        format!(
            "UPDATE signing_keys SET rotation_due_at = created_at - interval '1 day' \
                 WHERE kid = '{kid}'"
        )
    };
    let old = keys.signer(Purpose::Log).kid().to_owned();
    database.run(&due(&old)).await;
    assert_eq!(keys.rotate().await.unwrap(), 2);
    keys.revoke(&old, "o").await.unwrap();
    let new = keys.signer(Purpose::Log).kid().to_owned();
    assert_ne!(new, old);
    assert!(keys.rotations().await.unwrap().is_empty());

    database.run(&due(&new)).await;
    assert_eq!(keys.rotate().await.unwrap(), 2);
    let successor = keys.rotations().await.unwrap()[0].successor_kid.clone().unwrap();
    keys.revoke(&successor, "o").await.unwrap();
    assert_eq!(keys.signer(Purpose::Log).kid(), new);
    let listed = keys.list().await.unwrap();
    assert_eq!(listed.iter().find(|key| key.kid == new).unwrap().status, "active");
}
