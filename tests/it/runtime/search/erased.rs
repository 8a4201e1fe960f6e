//! Erasing a context removes its rows from the index. A decision is not found by its codes alone.

use authority_process::{clock::Clock, worker::Supervisor};
use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;
use serde_json::json;

use super::{TENANT, auditor, count, decided, decisions, demo, found, listed, paying};
use crate::support::Answered;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_context_is_not_found() {
    let (app, client, _) = demo().await;
    decided(&client, paying(10.0, "Ann Jones", "FR76", "R-1")).await;
    let mut named = paying(10.0, "Globex", "DE89", "R-2");
    named["context"]["contact"] = "ann@example.org".into();
    decided(&client, named).await;
    app.index_facts().await;
    let auditor = auditor(&app);
    assert_eq!(count(&app, "decision_facts").await, 2);
    // The erasure of a person removes the contexts that name them.
    let body = json!({"email": "ann@example.org", "reason": "request 17"});
    app.owner().erase_personal_data(body).await.assert_status(200);
    assert_eq!(count(&app, "decision_facts").await, 1);
    for text in ["Globex", "DE89", "R-2"] {
        assert!(decisions(&found(&auditor, text).await).is_empty(), "{text}");
        assert!(listed(&auditor, text).await.is_empty(), "{text}");
    }
    assert_eq!(decisions(&found(&auditor, "Ann Jones").await).len(), 1);
    // The retention of contexts removes the others.
    let retention = json!({"retention": {"contexts_days": 30}});
    app.owner().update_tenant(TENANT, retention).await.assert_status(200);
    let clock = Clock::fixed(Clock::default().now() + TimeDelta::days(31));
    let supervisor = Supervisor::default();
    let store = app.database.store();
    supervisor.run([authority_registry::erase_by_age(store, clock, 730, false)]);
    while supervisor.statuses().reports()[0].since_success.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    supervisor.cancel();
    assert_eq!(count(&app, "decision_facts").await, 0);
    assert!(decisions(&found(&auditor, "Ann Jones").await).is_empty());
    // Indexing again does not bring them back.
    app.reindex_facts().await;
    assert_eq!(count(&app, "decision_facts").await, 0);
}

/// The worker does not index a context while a transaction erases it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_is_being_erased_is_not_indexed() {
    let (app, client, _) = demo().await;
    let id = decided(&client, paying(10.0, "Globex", "FR76", "R-1")).await;
    let mut eraser = app.database.owner().await;
    let erase = format!(
        "BEGIN; SELECT set_config('role', authority_role('system'), true); \
         UPDATE decisions SET context = '', context_salt = '' WHERE id = '{id}'"
    );
    eraser.batch_execute(&erase).await.unwrap();
    // As if the last look was before this transaction began. The worker would otherwise wait for its
    // end. Until this update, the decision is too young for the worker.
    let looked = "UPDATE fact_cursor SET seen_at = transaction_timestamp() + interval '2 minutes', \
         seen_xid = (SELECT min(backend_xid::text::bigint) - 1 FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid())";
    app.database.run(looked).await;
    for _ in 0..5 {
        app.fact_index().round().await.unwrap();
        assert_eq!(count(&app, "decision_facts").await, 0);
    }
    eraser.batch_execute("COMMIT").await.unwrap();
    app.index_facts().await;
    assert_eq!(count(&app, "decision_facts").await, 0);
}

/// Two values can have the same code. A decision with another value is not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collision_of_codes_is_not_shown() {
    let (app, client, _) = demo().await;
    let other = decided(&client, paying(10.0, "Globex", "FR76", "R-1")).await;
    let own = decided(&client, paying(10.0, "Initech", "DE89", "R-2")).await;
    let untouched = decided(&client, paying(20.0, "Umbrella", "IT60", "R-3")).await;
    app.index_facts().await;
    let forged = format!(
        "UPDATE decision_facts SET payee = (SELECT payee FROM decision_facts WHERE key = fact_key('{own}')), \
             amount = (SELECT amount FROM decision_facts WHERE key = fact_key('{untouched}')) \
         WHERE key = fact_key('{other}')"
    );
    app.database.run(&forged).await;
    let same = "SELECT count(DISTINCT payee) AS number FROM decision_facts";
    assert_eq!(super::number(&app, same).await, 2);
    let auditor = auditor(&app);
    assert_eq!(listed(&auditor, "Initech").await, [own]);
    assert_eq!(listed(&auditor, "20 EUR").await, [untouched]);
    assert_eq!(listed(&auditor, "R-1").await, [other]);
    assert!(listed(&auditor, "Globex").await.is_empty(), "its code was replaced");
}
