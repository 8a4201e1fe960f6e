//! Rules that keep decisions in the tables: legal holds and retention.

use authority_store::allow_removal;
use diesel_async::SimpleAsyncConnection;
use serde_json::json;

use super::{StepResult, TENANT, World, removed, steps};
use crate::support::{Plain, Wishes, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_under_a_legal_hold() {
    let world = World::start().await;
    world.decided(5).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.set(TENANT, json!({"legal_hold": {"reason": "case 7"}})).await;
    assert_eq!(world.run().await, [StepResult::Dropped(0)]);
    assert!(world.objects("").await.is_empty(), "no object may be written");
    // The legal hold begins first when the month is half written, and then when it is archived.
    world.set(TENANT, json!({"legal_hold": null})).await;
    let archiver = world.archiver();
    // The service's own round may have set the cursor back meanwhile.
    world.counted().await;
    assert_eq!(archiver.step().await.unwrap(), StepResult::Written);
    world.set(TENANT, json!({"legal_hold": {"reason": "case 7"}})).await;
    let done = steps(&archiver).await;
    assert!(
        done.contains(&StepResult::Skipped) && !done.contains(&StepResult::Archived),
        "{done:?}"
    );
    world.set(TENANT, json!({"legal_hold": null})).await;
    let archiver = world.until_archived().await;
    world.set(TENANT, json!({"legal_hold": {"reason": "case 7"}})).await;
    steps(&archiver).await;
    assert_eq!(world.count("decisions", "true").await, 5);
    // The database's functions also refuse the removal for every caller, and other users may not
    // delete rows.
    assert_eq!(world.removed(TENANT).await, None);
    for table in
        ["decisions", "evidence_packs", "decision_reports", "replay_proofs", "authority_changes"]
    {
        let mut db = world.app.app.store.system().await.unwrap();
        let alone = format!(
            "SELECT set_config('authority.removing', '{TENANT}', false); DELETE FROM {table}"
        );
        let told = db.batch_execute(&alone).await.unwrap_err().to_string();
        assert!(told.contains("permission denied"), "{table}: {told}");
    }
    world.set(TENANT, json!({"legal_hold": null})).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_unless_the_owner_of_the_tables_lets_it() {
    let world = World::start().await;
    world.decided(5).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let owner = world.app.database.owner_address();
    allow_removal(&owner, false).await.unwrap();
    let done = world.run().await;
    assert!(done.contains(&StepResult::Archived) && removed(&done) == 0, "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 5);
    allow_removal(&owner, true).await.unwrap();
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_before_its_time_or_without_an_archive() {
    let world = World::start().await;
    world.decided(5).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 200}})).await;
    assert_eq!(world.run().await, [StepResult::Dropped(0)]);
    assert_eq!(world.removed(TENANT).await, None);
    for bad in [29, 0, 36_501] {
        let body = json!({"retention": {"decisions_days": bad}});
        assert_eq!(world.owner().update_tenant(TENANT, body).await.0, 400, "{bad}");
    }
    let body = json!({"retention": {"decisions_days": 30, "contexts_days": 31}});
    let (status, refused) = world.owner().update_tenant(TENANT, body).await;
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("retention.contexts_days"), "{refused:#}");
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let wishes = Wishes { legal_hold: Some("case 9".to_owned()), ..Wishes::default() };
    let held = world.app.beside(wishes).await;
    assert!(held.app.archiving.is_none(), "the installation's hold must disable archiving");
    assert_eq!(world.count("decisions", "true").await, 5);
}

/// The current retention also applies to archived decisions, and to the rest of a month that is
/// being removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_kept_longer_stays_although_it_is_archived() {
    let world = World::start().await;
    world.decided(6).await;
    world.counted().await;
    let kept = async |days: Option<u32>| {
        world.set(TENANT, json!({"retention": {"decisions_days": days}})).await;
    };
    kept(Some(30)).await;
    let archiver = world.until_archived().await;
    for longer in [Some(300), None] {
        kept(longer).await;
        assert!(!steps(&archiver).await.iter().any(|step| matches!(step, StepResult::Removed(_))));
        assert_eq!(world.removed(TENANT).await, None);
    }
    kept(Some(30)).await;
    assert_eq!(world.removed(TENANT).await, Some(4));
    kept(Some(300)).await;
    steps(&archiver).await;
    assert_eq!(world.count("decisions", "true").await, 2);
    kept(Some(30)).await;
    steps(&archiver).await;
    assert_eq!(world.count("decisions", "true").await, 0);
}

/// Contexts that are due for erasure are erased before their decisions are archived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_are_erased_before_their_decisions_are_archived() {
    let world = World::start().await;
    let ids = world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30, "contexts_days": 30}})).await;
    assert_eq!(world.run().await, [StepResult::Dropped(0)]);
    world.contexts_erased().await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    let reader = world.reader(TENANT).await;
    let (status, pack) = reader.get_evidence(&ids[0]).await;
    assert_eq!((status, &pack["decision_id"]), (200, &json!(ids[0])));
    let (status, refused) = reader.get_evidence_bundle(&ids[0]).await;
    assert_eq!((status, refused["error"].text()), (409, "decision_erased"));
    let (_, proof) = reader.mint_replay_proof(only("decision_id", &ids[0])).await;
    assert_eq!(proof["result"], "indeterminate", "{proof:#}");
}
