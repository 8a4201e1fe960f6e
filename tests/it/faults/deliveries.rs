//! Events are sent to a receiver that sometimes fails, while the service is killed at each step of
//! a delivery and the database fails. Each event is either delivered or becomes a dead letter.
//!
//! `AUTHORITY_FAULT_EVENTS` sets the number of events.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use authority_store::{Address, RunQueryDsl, embedded::Embedded};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use nix::sys::signal::{Signal, kill};
use serde_json::json;
use tokio::sync::Notify;

use super::{
    figures::{figure, times},
    process::{Folder, Service},
};
use crate::{
    events::delivery::{Answer, Receiver},
    support::{Answered, LOGGED, TENANT},
};

/// How long to wait for the deliveries: longer than the 60 s after which a killed node's lease
/// expires.
const PATIENCE: Duration = Duration::from_secs(180);
/// The number of events for which the wait is one second longer.
const EACH_SECOND: u64 = 100;

/// The steps at which the service is killed, each
/// with the query that shows that the step has begun.
const STEPS: [(&str, &str); 3] = [
    ("numbering", "SELECT count(*) AS value FROM event_outbox"),
    (
        "fan-out",
        "SELECT count(*) AS value FROM webhook_cursors c JOIN event_heads h USING (tenant_id) \
         WHERE h.sequence > c.sequence",
    ),
    (
        "claim",
        "SELECT count(*) AS value FROM webhook_deliveries WHERE lease IS NOT NULL AND state = 'open'",
    ),
];

/// The database of a service that may have been killed, opened as its owner.
struct Ledger(Embedded);

impl Ledger {
    async fn value(&self, sql: &str) -> Option<i64> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            value: i64,
        }
        // The database may be starting again.
        let mut db = Address::parse(&self.0.owner_url()).unwrap().connect().await.ok()?;
        diesel::sql_query(sql).get_result(&mut db).await.ok().map(|row: Row| row.value)
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            value: String,
        }
        let mut db = Address::parse(&self.0.owner_url()).unwrap().connect().await.unwrap();
        let rows: Vec<Row> = diesel::sql_query(sql).load(&mut db).await.unwrap();
        rows.into_iter().map(|row| row.value).collect()
    }

    /// Waits until the query returns a value above 0.
    async fn wait_for(&self, what: &str, sql: &str) {
        let begun = Instant::now();
        let patience = PATIENCE + Duration::from_secs(how_many() as u64 / EACH_SECOND);
        while self.value(sql).await.is_none_or(|value| value == 0) {
            assert!(begun.elapsed() < patience, "{what}: never");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Adds an event for each number to the outbox in one commit, as a change does. The number
    /// becomes part of the event's subject.
    async fn announce(&self, numbers: std::ops::Range<usize>) {
        let (first, last) = (numbers.start, numbers.end - 1);
        let sql = format!(
            "WITH told AS (INSERT INTO event_outbox (tenant_id, event_type, subject_ref) \
                 SELECT '{TENANT}', 'svc.authority.suspended', 'svc:delegation:' || n \
                 FROM generate_series({first}, {last}) AS n RETURNING 1) \
             SELECT count(*) AS value FROM told"
        );
        let told = self.value(&sql).await;
        assert_eq!(told, i64::try_from(numbers.len()).ok());
    }

    /// Expects that each event is in the log once, and that the sequence has no gap.
    async fn expect_numbered(&self, expected: &HashSet<String>) {
        let sequence = format!(
            "SELECT (count(*) = max(sequence) AND min(sequence) = 1)::int::bigint AS value \
             FROM {LOGGED} WHERE tenant_id = 'svc:tenant:acme'"
        );
        assert_eq!(self.value(&sequence).await, Some(1), "the sequence has gaps");
        let once = format!(
            "SELECT event ->> 'subject_ref' AS value FROM {LOGGED} \
             WHERE event ->> 'event_type' = 'svc.authority.suspended'"
        );
        let numbered = self.texts(&once).await;
        assert_eq!(numbered.len(), expected.len(), "each event is numbered once");
        assert_eq!(numbered.into_iter().collect::<HashSet<_>>(), *expected);
    }
}

#[expect(clippy::disallowed_methods, reason = "only this test reads it")]
fn how_many() -> usize {
    std::env::var("AUTHORITY_FAULT_EVENTS").map_or(1500 * times(), |text| text.parse().unwrap())
}

/// Makes every seventh request fail. Notifies the test of each request, and collects the subjects
/// of accepted events.
fn behave(receiver: &Receiver) -> (Arc<Notify>, Arc<parking_lot::Mutex<HashSet<String>>>) {
    let (came, taken) =
        (Arc::<Notify>::default(), Arc::<parking_lot::Mutex<HashSet<_>>>::default());
    let (coming, taking, count) = (Arc::clone(&came), Arc::clone(&taken), AtomicUsize::new(0));
    receiver.answers(move |received| {
        coming.notify_one();
        if count.fetch_add(1, Ordering::Relaxed) % 7 == 6 {
            return Answer::status(500);
        }
        let subject = received.event()["subject_ref"].as_str().unwrap().to_owned();
        taking.lock().insert(subject);
        Answer::status(204)
    });
    (came, taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_when_the_service_is_killed_at_each_step() {
    let (events, begun) = (how_many(), Instant::now());
    let (folder, receiver) = (Folder::new("deliveries"), Receiver::start().await);
    let (came, taken) = behave(&receiver);
    let mut service = Service::start(&folder);
    let ledger = Ledger(folder.embedded().await);
    let endpoint = json!({
        "tenant_id": TENANT, "url": format!("{}/hooks", receiver.base),
        "event_types": ["svc.authority.suspended"], "rate_limit_per_second": 1000,
        "retry_policy": {"schedule_seconds": [1, 1, 1, 1], "jitter": 0.0},
    });
    let made = service.owner(&folder).create_webhook_endpoint(endpoint).await.assert_status(201);
    let endpoint_id = made["webhook_endpoint"]["id"].as_str().unwrap();
    // The events are announced in six parts: one each for numbering, fan-out, claim, POST, record
    // and the database.
    let part = events / 6;
    let mut told = 0;
    for (step, sql) in STEPS {
        ledger.announce(told..told + part).await;
        told += part;
        ledger.wait_for(step, sql).await;
        service.kill();
        service = Service::start(&folder);
    }
    for pause in [Duration::ZERO, Duration::from_millis(2)] {
        ledger.announce(told..told + part).await;
        told += part;
        came.notified().await;
        tokio::time::sleep(pause).await;
        service.kill();
        service = Service::start(&folder);
    }
    ledger.announce(told..events).await;
    came.notified().await;
    kill(folder.database().unwrap(), Signal::SIGQUIT).unwrap();

    let ended = format!(
        "SELECT (count(*) FILTER (WHERE state <> 'open') >= {events})::int::bigint AS value \
         FROM webhook_deliveries WHERE endpoint_id = '{endpoint_id}'"
    );
    ledger.wait_for("all deliveries end", &ended).await;
    let expected = (0..events).map(|n| format!("svc:delegation:{n}")).collect();
    ledger.expect_numbered(&expected).await;
    let state = |state: &str| {
        format!(
            "SELECT event ->> 'subject_ref' AS value \
             FROM webhook_deliveries d JOIN {LOGGED} ON event ->> 'event_id' = d.event_id \
             WHERE d.endpoint_id = '{endpoint_id}' AND d.state = '{state}'"
        )
    };
    let (delivered, dead) =
        (ledger.texts(&state("delivered")).await, ledger.texts(&state("dead")).await);
    let taken = taken.lock().clone();
    let missing: Vec<_> = delivered.iter().filter(|one| !taken.contains(*one)).collect();
    assert!(missing.is_empty(), "delivered, but never received: {missing:?}");
    let all: HashSet<String> = delivered.into_iter().chain(dead).collect();
    assert_eq!(all, expected, "each event is delivered or dead");
    let (requests, seconds) = (receiver.received().len(), begun.elapsed().as_secs());
    figure(
        &format!(
            "{events} events in {requests} deliveries, every seventh failed; kill -9 at numbering, \
             fan-out, claim, request and record, and of the database; {seconds} s"
        ),
        "0 events neither delivered nor dead",
    );
}
