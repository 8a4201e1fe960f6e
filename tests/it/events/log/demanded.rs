//! Decisions are written as events only while a consumer requests them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{AGENT, PATIENCE, TENANT, decided, demo, events, types};
use crate::support::{Answered, STREAM_EVENTS, TestApp};

/// The events about decisions.
async fn decisions(app: &TestApp) -> Vec<Value> {
    let all = events(app).await;
    let of_decisions = |event: &Value| {
        ["svc.decision.allowed", "svc.decision.denied"]
            .iter()
            .any(|name| event["event_type"] == *name)
    };
    all.into_iter().filter(of_decisions).collect()
}

async fn demands(app: &TestApp) -> i64 {
    use diesel_async::RunQueryDsl;
    #[derive(diesel::QueryableByName)]
    struct Count {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let mut db = app.database.owner().await;
    let count: Count = diesel::sql_query("SELECT count(*) AS n FROM event_demands")
        .get_result(&mut db)
        .await
        .unwrap();
    count.n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_events_while_a_stream_takes_them() {
    let (app, client, delegation) = demo().await;
    decided(&client, 10.0, "DE").await;
    decided(&client, 10.0, "US").await;
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let path = format!("{}{STREAM_EVENTS}?event_type=svc.decision.*", key.base);
    let stream = key.http.get(path).bearer_auth(&key.token).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // Once the stream's response has begun, every decision has its event.
    let (allowed, denied) =
        (decided(&client, 11.0, "DE").await, decided(&client, 11.0, "US").await);
    let held = decided(&client, 25_000.0, "DE").await;
    let begun = Instant::now();
    let found = loop {
        let found = decisions(&app).await;
        // The approval request's own transaction writes this event.
        let waits = |event: &Value| event["event_type"] == "svc.decision.requires_approval";
        if found.len() == 2 && events(&app).await.iter().any(waits) {
            break found;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(types(&found), ["svc.decision.allowed", "svc.decision.denied"]);
    assert_eq!(found[0]["subject_ref"], json!(allowed));
    assert_eq!(found[0]["correlation_id"], json!(allowed));
    assert_eq!(found[0]["principal_entity_id"], AGENT);
    assert_eq!(found[0]["data"]["delegation_id"], delegation);
    assert_eq!(found[0]["data"]["decision"], "allow_with_constraints");
    assert_eq!(found[1]["subject_ref"], json!(denied));
    assert_eq!(found[1]["data"]["stage"], "authority");
    assert!(found[1]["reason_code"].is_string());
    let all = events(&app).await;
    let waiting = all.iter().find(|event| event["event_type"] == "svc.decision.requires_approval");
    assert_eq!(waiting.unwrap()["data"]["decision_id"], held);
    drop(stream);
    let begun = Instant::now();
    while demands(&app).await > 0 {
        assert!(begun.elapsed() < PATIENCE, "the closed stream still requests events");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    decided(&client, 12.0, "DE").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(decisions(&app).await.len(), 2);
}

/// Names of unknown subjects and tools are the caller's text and must not reach an event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_caller_made_up_is_in_no_event() {
    let (app, client, _) = demo().await;
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let path = format!("{}{STREAM_EVENTS}?event_type=*", key.base);
    let stream = key.http.get(path).bearer_auth(&key.token).send().await.unwrap();
    let request = json!({"subject": "svc:agent:acme:zebra", "action": "zebra.run", "purpose": "zebra",
                         "tool_id": "svc:ent:acme:tool:zebra", "resource_id": "svc:ent:acme:resource:zebra",
                         "delegation_id": "svc:del:acme:zebra", "context": {"zebra": "zebra"}});
    client.evaluate_decision(request).await.assert_status(200);
    let begun = Instant::now();
    while decisions(&app).await.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "no event");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let found = serde_json::to_string(&events(&app).await).unwrap();
    assert!(!found.contains("zebra"), "{found}");
    drop(stream);
}
