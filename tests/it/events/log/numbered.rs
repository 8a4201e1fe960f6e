//! Events wait in the outbox between their change and the assignment of their sequence numbers. The
//! decisions of a batch are written to the outbox together.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_events::Sequencer;
use authority_ledger::decision_event::DecisionEvent;
use authority_process::{clock::Clock, worker::Supervisor};
use authority_runtime::recorder::{Entry, Outcome, Recorder};
use authority_store::Store;
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::RunQueryDsl;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{AGENT, PATIENCE, TENANT, decided, demo, told};
use crate::{
    faults::writer::{entry, place},
    support::{
        Answered, Client, LOGGED, Members, STREAM_EVENTS, TestApp, database::Database, run_workers,
    },
};

const OTHER: &str = "svc:tenant:other";

#[derive(QueryableByName)]
struct Told {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
}

/// Returns rows of `tenant_id`, `number` and `subject`.
async fn rows(database: &Database, sql: &str) -> Vec<(String, i64, String)> {
    let mut db = database.owner().await;
    let rows: Vec<Told> = diesel::sql_query(sql).load(&mut db).await.unwrap();
    let told = |row: Told| (row.tenant_id, row.number, row.subject.unwrap_or_default());
    rows.into_iter().map(told).collect()
}

const OUTBOX: &str = "SELECT tenant_id, size::bigint AS number, \
        (SELECT string_agg(each::jsonb ->> 'decision_id', ' ') FROM unnest(decisions) AS each) AS subject \
     FROM event_outbox ORDER BY tenant_id, number";

fn all_numbered() -> String {
    format!(
        "SELECT tenant_id, sequence AS number, event ->> 'subject_ref' AS subject FROM {LOGGED} \
         ORDER BY tenant_id, sequence"
    )
}

/// Opens a stream that requests events about decisions until it is dropped.
async fn taking_decisions(app: &TestApp) -> reqwest::Response {
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let path = format!("{}{STREAM_EVENTS}?event_type=svc.decision.*", key.base);
    let stream = key.http.get(path).bearer_auth(&key.token).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    stream
}

/// Returns the bodies of the events about a subject, in order, without ids and sequence numbers.
async fn bytes(app: &TestApp, subject: &str) -> Vec<String> {
    let sql = format!(
        "SELECT tenant_id, sequence AS number, \
                replace(replace(body, event ->> 'event_id', 'ID'), \
                        '\"sequence\":' || sequence || ',', '') AS subject \
         FROM {LOGGED} WHERE event ->> 'subject_ref' = '{subject}' ORDER BY sequence"
    );
    rows(&app.database, &sql).await.into_iter().map(|(_, _, body)| body).collect()
}

/// Waits until there are two events about the subject; returns their bodies.
async fn both(app: &TestApp, subject: &str) -> [String; 2] {
    let begun = Instant::now();
    loop {
        if let Ok(both) = bytes(app, subject).await.try_into() {
            return both;
        }
        assert!(begun.elapsed() < PATIENCE, "no second event about {subject}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn answered(client: &Client, amount: f64, place: &str) -> Value {
    client.evaluate(crate::support::asking(amount, place)).await.assert_status(200)
}

/// For each type of decision event: an outbox row with only the decision's id results in the same
/// bytes as the recorder's data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_only_an_id_becomes_the_same_bytes() {
    let (app, client, delegation) = demo().await;
    let stream = taking_decisions(&app).await;
    let allowed = answered(&client, 11.0, "DE").await;
    let unknown = crate::support::asking(11.0, "DE").with("subject", "svc:agent:acme:nobody");
    let (_, unknown) = client.evaluate(unknown).await;
    let denied = decided(&client, 11.0, "US").await;
    for (event_type, id) in [
        ("svc.decision.allowed", allowed["decision_id"].as_str().unwrap()),
        ("svc.decision.denied", &denied),
        ("svc.decision.denied", unknown["decision_id"].as_str().unwrap()),
    ] {
        told(&app, event_type, id).await;
        let old = format!(
            "INSERT INTO event_outbox (tenant_id, event_type, subject_ref) \
             VALUES ('{TENANT}', '{event_type}', '{id}')"
        );
        app.database.run(&old).await;
        let [new, old] = both(&app, id).await;
        assert_eq!(new, old);
    }
    let id = allowed["decision_id"].as_str().unwrap();
    let event = told(&app, "svc.decision.allowed", id).await;
    let data = json!({
        "authority_kind": "delegation", "decision": "allow_with_constraints", "decision_id": id,
        "delegation_id": delegation, "valid_until": allowed["valid_until"],
    });
    assert_eq!(event["data"], data, "{allowed:#}");
    let sql = format!(
        "SELECT tenant_id, (extract(epoch FROM evaluated_at) * 1000000)::bigint AS number, id AS subject \
         FROM decisions WHERE id = '{id}'"
    );
    let occurred: DateTime<Utc> = event["occurred_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(rows(&app.database, &sql).await[0].1, occurred.timestamp_micros());
    assert_eq!(event["reason_code"], allowed["reason_code"]);
    assert_eq!(event["principal_entity_id"], AGENT);
    let event = told(&app, "svc.decision.denied", unknown["decision_id"].as_str().unwrap()).await;
    assert_eq!(event.get("principal_entity_id"), None);
    let held = answered(&client, 25_000.0, "DE").await;
    let event =
        told(&app, "svc.decision.requires_approval", held["approval_id"].as_str().unwrap()).await;
    let mut data = event["data"].clone();
    assert!(data["expires_at"].take().is_string());
    let expected = json!({
        "approval_id": held["approval_id"], "decision_id": held["decision_id"],
        "delegation_id": delegation, "expires_at": null, "needed": data["needed"],
    });
    assert_eq!(data, expected);
    assert_eq!(event["correlation_id"], held["decision_id"]);
    drop(stream);
}

/// Returns a decision of this tenant at this revision.
fn decision(tenant: &str, number: usize, revision: i64) -> Entry {
    let entry = entry(number, false);
    let event = DecisionEvent {
        decision_id: entry.decision_id.as_str().to_owned().into(),
        decision: "deny".into(),
        reason_code: "tenant_inactive".into(),
        evaluated_at: entry.evaluated_at,
        principal_id: Some("svc:agent:acme:bot".into()),
        tool_id: None,
        authority_kind: None,
        delegation_id: None,
        approval_id: None,
        valid_until: None,
    };
    let event = Some(serde_json::to_string(&event).unwrap());
    Entry { tenant_id: tenant.parse().unwrap(), revision, event, key: None, ..entry }
}

/// Records each batch on a node that then stops before it numbers the events.
async fn recorded(store: Store, batches: Vec<Vec<Entry>>) -> Vec<Vec<Outcome>> {
    let (recorder, workers) = Recorder::new(store, Clock::default(), true, Arc::default());
    let mut workers = Some(workers);
    let node = Supervisor::default();
    let mut outcomes = Vec::new();
    let place = place().await;
    for batch in batches {
        let queued: Vec<_> = batch
            .into_iter()
            .map(|entry| {
                let (recorder, place) = (recorder.clone(), Arc::clone(&place));
                async move { recorder.record(entry, place, None).await }
            })
            .collect();
        let all = tokio::spawn(join_all(queued));
        tokio::time::sleep(Duration::from_millis(50)).await;
        if let Some(workers) = workers.take() {
            node.run(workers);
        }
        outcomes.push(all.await.unwrap());
    }
    node.stop().await;
    outcomes
}

/// Returns the database of a service that has stopped, with two tenants.
async fn two_tenants() -> Arc<Database> {
    let app = TestApp::start().await;
    for slug in ["acme", "other"] {
        assert_eq!(app.owner().create_tenant(json!({"name": slug, "slug": slug})).await.0, 201);
    }
    app.supervisor.stop().await;
    Arc::clone(&app.database)
}

async fn numbered(database: &Database, count: usize) -> Vec<(String, i64, String)> {
    let begun = Instant::now();
    loop {
        let found = rows(database, &all_numbered()).await;
        if found.len() >= count {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_one_row_for_each_tenant_and_outlives_its_node() {
    let database = two_tenants().await;
    let revisions = rows(
        &database,
        "SELECT tenant_id, revision AS number, NULL::text AS subject FROM tenant_revisions",
    )
    .await;
    let revision = |tenant: &str| {
        let found = revisions.iter().find(|(id, _, _)| id == tenant);
        found.map_or(0, |(_, revision, _)| *revision)
    };
    let entry = |tenant: &str, number| decision(tenant, number, revision(tenant));
    // The first batch also stores the facts, and the second stores only decisions. They use two
    // different statements.
    let stale = decision(TENANT, 13, revision(TENANT) + 1);
    let batches = vec![
        vec![entry(TENANT, 1), entry(OTHER, 2), entry(TENANT, 3)],
        vec![entry(TENANT, 12), entry(OTHER, 11), stale, entry(TENANT, 10)],
    ];
    let told: Vec<Vec<String>> = batches
        .iter()
        .map(|batch| batch.iter().map(|entry| entry.decision_id.as_str().to_owned()).collect())
        .collect();
    let outcomes = recorded(database.store(), batches).await;
    let stored = Outcome::Stored { approval_id: None };
    assert!(outcomes[0].iter().all(|outcome| *outcome == stored), "{outcomes:?}");
    assert_eq!(outcomes[1][2], Outcome::AuthorityChanged { revision: revision(TENANT) });
    let row = |tenant: &str, ids: &[&String]| {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        (tenant.to_owned(), i64::try_from(ids.len()).unwrap(), ids.join(" "))
    };
    let [first, second] = told.try_into().unwrap();
    let expected = [
        row(TENANT, &[&first[0], &first[2]]),
        row(TENANT, &[&second[0], &second[3]]),
        row(OTHER, &[&first[1]]),
        row(OTHER, &[&second[1]]),
    ];
    assert_eq!(rows(&database, OUTBOX).await, expected);
    run_workers([Sequencer::new(database.store()).worker()]);
    let found = numbered(&database, 6).await;
    let event = |tenant: &str, number, id: &String| (tenant.to_owned(), number, id.clone());
    let expected = [
        event(TENANT, 1, &first[0]),
        event(TENANT, 2, &first[2]),
        event(TENANT, 3, &second[0]),
        event(TENANT, 4, &second[3]),
        event(OTHER, 1, &first[1]),
        event(OTHER, 2, &second[1]),
    ];
    assert_eq!(found, expected);
    assert_eq!(rows(&database, OUTBOX).await, []);
}

/// The sequencer numbers the backlog of two tenants in several transactions, without pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_is_numbered_in_order_and_at_once() {
    let database = two_tenants().await;
    for (tenant, count) in [(TENANT, 5000), (OTHER, 700)] {
        let sql = format!(
            "INSERT INTO event_outbox (tenant_id, event_type, subject_ref) \
             SELECT '{tenant}', 'svc.authority.suspended', 'svc:delegation:' || n \
             FROM generate_series(1, {count}) AS n"
        );
        database.run(&sql).await;
    }
    run_workers([Sequencer::new(database.store()).worker()]);
    let found = numbered(&database, 5700).await;
    for (tenant, number, subject) in &found {
        assert_eq!(*subject, format!("svc:delegation:{number}"), "{tenant}");
    }
}

/// A row with an unknown event type waits for a newer version of the service. Only its own tenant's
/// events wait with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_a_newer_version_holds_up_its_own_tenant_alone() {
    let database = two_tenants().await;
    let row = |tenant: &str, event_type: &str| {
        format!(
            "INSERT INTO event_outbox (tenant_id, event_type, subject_ref) \
             VALUES ('{tenant}', '{event_type}', 'svc:delegation:1');"
        )
    };
    let known = "svc.authority.suspended";
    let all =
        [row(TENANT, known), row(TENANT, "svc.new.kind"), row(TENANT, known), row(OTHER, known)];
    database.run(&all.concat()).await;
    run_workers([Sequencer::new(database.store()).worker()]);
    let found = numbered(&database, 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rows(&database, &all_numbered()).await, found);
    assert_eq!(found.iter().map(|(tenant, _, _)| tenant).collect::<Vec<_>>(), [TENANT, OTHER]);
    let left =
        rows(&database, "SELECT tenant_id, number, event_type AS subject FROM event_outbox").await;
    assert_eq!(left.len(), 2);
}
