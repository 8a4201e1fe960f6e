//! A stop that is repeated with the same idempotency key after its release stops again.

use authority_model::proto::registry::{
    CreateStopSignalRequest, StopSignal, stop_signal_service_client::StopSignalServiceClient,
};
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::{
    demo,
    stops::{AGENT, TENANT, outcome},
};
use crate::support::{Answered, Client, Plain, TestApp, nothing};

/// Calls with the same key. Returns the stop's id.
async fn stop(client: &Client, path: &str, kind: &str) -> String {
    let named = if kind == "quarantine" { "subject_id" } else { "actor_id" };
    let body = json!({"tenant_id": TENANT, named: AGENT, "reason": "it pays twice"});
    let headers = [("idempotency-key", "stop-1")];
    let (status, answer) = client.call("POST", path, Some(body), &headers).await;
    assert_eq!((status, answer[kind]["state"].text()), (201, "active"), "{path}: {answer:#}");
    answer[kind]["id"].as_str().unwrap().to_owned()
}

/// Ends a stop.
async fn end(app: &TestApp, id: &str) {
    let path = if id.contains(":quarantine:") {
        format!("/api/v1/quarantines/{id}/release")
    } else {
        format!("/api/v1/stop-signals/{id}/lift")
    };
    app.owner().post(&path, nothing()).await.assert_status(200);
}

async fn count(app: &TestApp, path: &str) -> Value {
    app.owner().get(&format!("/api/v1/{path}?count=true")).await.1["total"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_is_repeated_after_its_release_stops_again() {
    let (app, client, _) = demo().await;
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let key = app.client(&app.api_key(TENANT, &["runtime:stop"]).await);
    let mut expected = 0;
    for (path, kind, reason) in [
        ("stop-signals", "stop_signal", "actor_stopped"),
        ("quarantines", "quarantine", "capability_quarantined"),
    ] {
        for (caller, prefix) in [(&app.owner(), "/api/v1"), (&admin, "/api/v1/app"), (&key, "/v1")]
        {
            let own = format!("{prefix}/{path}");
            let first = stop(caller, &own, kind).await;
            assert_eq!(outcome(&client).await, reason, "{own}");
            // While it is in force, the repetition is the first response.
            assert_eq!(stop(caller, &own, kind).await, first);
            end(&app, &first).await;
            assert_eq!(outcome(&client).await, "permission_granted", "{own}");
            let second = stop(caller, &own, kind).await;
            assert_ne!(second, first);
            assert_eq!(outcome(&client).await, reason, "{own}");
            assert_eq!(stop(caller, &own, kind).await, second);
            end(&app, &second).await;
            assert_eq!(outcome(&client).await, "permission_granted", "{own}");
            expected += 2;
        }
        assert_eq!(count(&app, path).await, expected);
        expected = 0;
    }
}

/// Of many repetitions at once, one stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repetitions_at_once_after_a_release_make_one_stop() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let first = stop(&owner, "/api/v1/stop-signals", "stop_signal").await;
    end(&app, &first).await;
    let again = (0..8).map(|_| stop(&owner, "/api/v1/stop-signals", "stop_signal"));
    let again = futures_util::future::join_all(again).await;
    assert!(again.iter().all(|id| *id == again[0] && *id != first), "{again:?}");
    assert_eq!(count(&app, "stop-signals").await, 2);
    assert_eq!(outcome(&client).await, "actor_stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_over_grpc_is_repeated_after_its_release_too() {
    let (app, client, _) = demo().await;
    let grpc = StopSignalServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", app.owner_token()).parse().unwrap();
    let stop = async || {
        let signal = StopSignal {
            tenant_id: Some(TENANT.to_owned()),
            actor_id: AGENT.to_owned(),
            reason: "it pays twice".to_owned(),
            ..StopSignal::default()
        };
        let mut request = Request::new(CreateStopSignalRequest { stop_signal: Some(signal) });
        request.metadata_mut().insert("authorization", bearer.clone());
        request.metadata_mut().insert("idempotency-key", "stop-1".parse().unwrap());
        let answer = grpc.clone().create_stop_signal(request).await.unwrap();
        let is_replayed = answer.metadata().contains_key("idempotency-replayed");
        (answer.into_inner().id, is_replayed)
    };
    let (first, is_replayed) = stop().await;
    assert!(!is_replayed);
    assert_eq!(stop().await, (first.clone(), true));
    end(&app, &first).await;
    assert_eq!(outcome(&client).await, "permission_granted");
    let (second, is_replayed) = stop().await;
    assert!(second != first && !is_replayed);
    assert_eq!(outcome(&client).await, "actor_stopped");
}
