//! The recorder's writers. If a writer panics, its batch fails, callers don't wait, and only stored
//! decisions are returned. A large, slow batch does not delay another tenant's first call.

use std::{sync::Arc, time::Duration};

use authority_api::{
    deadline::Deadline,
    idempotency::IdempotencyKey,
    identity::{Caller, CallerKind},
};
use authority_crypto::sha256;
use authority_decision::{Gathered, Reason, verdict::Claims};
use authority_evidence::{Blob, PreparedFacts};
use authority_ids::DecisionId;
use authority_process::clock::Clock;
use authority_runtime::{
    queue::{DecisionQueue, QueuePlace, Size},
    recorder::{Entry, Keyed, Outcome, Recorder},
};
use diesel_async::{AsyncConnection, SimpleAsyncConnection};
use futures_util::future::join_all;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::deadlines::number;
use crate::support::{database::Database, run_workers};

const LATEST: Duration = Duration::from_secs(20);

fn decision_id(number: usize) -> DecisionId {
    let time = Clock::default().now().timestamp_millis();
    format!("svc:decision:{time:012x}{number:052x}").parse().unwrap()
}

/// Returns a denial. If `is_bad`, writing the entry's answer panics, after its row is inserted and
/// before the commit.
#[track_caller]
pub(crate) fn entry(number: usize, is_bad: bool) -> Entry {
    let now = Clock::default().now();
    let body = b"{}".to_vec();
    let facts = PreparedFacts {
        gathered: Arc::new(Gathered::default()),
        blob: Blob { sha256: sha256(&body), body },
        reality: None,
        index: RawValue::from_string("[]".to_owned()).unwrap(),
        schemas: Vec::new(),
    };
    let caller = Caller {
        actor: "nobody".to_owned(),
        kind: CallerKind::Anonymous,
        until: None,
        authenticated_at: None,
    };
    let keyed = Keyed {
        key: IdempotencyKey::new(&caller, "test", format!("key-{number}"), b"request"),
        answer: Box::new(move |_| {
            assert!(!is_bad, "this answer cannot be written");
            Vec::new()
        }),
    };
    Entry {
        tenant_id: "svc:tenant:acme".parse().unwrap(),
        revision: 1,
        decision_id: decision_id(number),
        subject: "svc:agent:acme:bot".into(),
        action: "payment.execute".to_owned(),
        decision: "deny",
        reason_code: Reason::TenantInactive,
        event: None,
        evaluated_at: now,
        valid_until: None,
        record: b"{}".to_vec(),
        kid: "kid".into(),
        signature: [0; 64],
        context: b"{}".to_vec(),
        context_salt: [0; 16],
        facts: b"{}".to_vec(),
        facts_salt: [0; 16],
        gathered: Arc::new(facts),
        hold: None,
        ready: None,
        claims: Claims::default(),
        key: Some(keyed),
        relaxed: false,
    }
}

/// Returns a place in a queue of its own, which any number of entries can use.
pub(crate) async fn place() -> Arc<QueuePlace> {
    let (tenant, soon) = ("svc:tenant:acme".parse().unwrap(), Deadline::after(LATEST));
    Arc::new(DecisionQueue::default().enter(&tenant, Size::default(), soon).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_fails_its_batch_and_nothing_else() {
    let database = Database::fresh().await;
    let (recorder, workers) =
        Recorder::new(database.store(), Clock::default(), false, Arc::default());
    let place = place().await;
    // All entries wait before a writer starts: they form one batch.
    let batch: Vec<_> = (0..5)
        .map(|number| {
            let (recorder, place) = (recorder.clone(), Arc::clone(&place));
            tokio::spawn(
                async move { recorder.record(entry(number, number == 3), place, None).await },
            )
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    run_workers(workers);
    let outcomes = timeout(LATEST, join_all(batch)).await.expect("a caller waits forever");
    for outcome in outcomes {
        assert_eq!(outcome.unwrap(), Outcome::Failed);
    }
    let mut owner = database.owner().await;
    assert_eq!(number(&mut owner, "SELECT count(*) AS n FROM decisions").await, 0);
    let open = "SELECT count(*) AS n FROM pg_stat_activity \
                WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(
        number(&mut owner, open).await,
        0,
        "the failed batch's transaction is still open and holds locks"
    );

    let next = timeout(LATEST, recorder.record(entry(9, false), place, None)).await;
    let next = next.expect("no writer runs");
    assert_eq!(next, Outcome::Stored { approval_id: None });
    assert_eq!(number(&mut owner, "SELECT count(*) AS n FROM decisions").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_call_does_not_wait_for_anothers_large_batch() {
    let database = Database::fresh().await;
    let (recorder, workers) =
        Recorder::new(database.store(), Clock::default(), false, Arc::default());
    // The large batch stores the same fact blob as this open transaction, and waits for it.
    let mut owner = database.owner().await;
    owner.begin_test_transaction().await.unwrap();
    owner
        .batch_execute(
            "INSERT INTO fact_blobs (tenant_id, sha256, body) \
             VALUES ('svc:tenant:acme', sha256('{}'), '{}')",
        )
        .await
        .unwrap();
    let flood_place = place().await;
    let flood: Vec<_> = (0..100)
        .map(|number| {
            let (recorder, place) = (recorder.clone(), Arc::clone(&flood_place));
            tokio::spawn(async move { recorder.record(entry(number, false), place, None).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    run_workers(workers);
    tokio::time::sleep(Duration::from_millis(300)).await;

    let polite = Entry { tenant_id: "svc:tenant:polite".parse().unwrap(), ..entry(200, false) };
    let outcome =
        timeout(Duration::from_secs(2), recorder.record(polite, place().await, None)).await;
    assert_eq!(outcome.expect("it waits"), Outcome::Stored { approval_id: None });
    assert!(flood.iter().all(|call| !call.is_finished()), "the batch was not held up");

    drop(owner);
    for outcome in timeout(LATEST, join_all(flood)).await.expect("a caller waits forever") {
        assert_eq!(outcome.unwrap(), Outcome::Stored { approval_id: None });
    }
}
