//! The same streams over gRPC, gRPC-Web and server-sent events.

use authority_model::proto::runtime::{
    DecisionUpdate, StopConditionEvent, WatchDecisionRequest, WatchStopConditionsRequest,
    runtime_service_client::RuntimeServiceClient,
};
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_types::StatusExt;

use super::{Lines, asking, decided, demo, nobody_watches, permitted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_streams_and_refuses_with_the_same_words() {
    let (app, client, delegation) = demo().await;
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    let asked = |decision_id: &str| {
        let message = WatchStopConditionsRequest { decision_id: decision_id.to_owned() };
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", bearer.clone());
        request
    };
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let refused = grpc.watch_stop_conditions(asked(&held)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    let reason = refused.get_error_details().error_info().unwrap().reason.clone();
    assert_eq!(reason, "transition_not_allowed");
    let id = permitted(&client).await;
    // The client cancels this stream, and the other one still gets the event.
    let mut left = grpc.watch_stop_conditions(asked(&id)).await.unwrap().into_inner();
    assert_eq!(left.message().await.unwrap().unwrap().kind, "heartbeat");
    drop(left);
    nobody_watches(&app).await;
    let mut events = grpc.watch_stop_conditions(asked(&id)).await.unwrap().into_inner();
    assert_eq!(events.message().await.unwrap().unwrap().kind, "heartbeat");
    assert_eq!(app.owner().revoke_delegation(&delegation, None).await.0, 200);
    let StopConditionEvent { kind, stop_condition, reason_code, at, .. } =
        events.message().await.unwrap().unwrap();
    assert_eq!(kind, "stopped");
    assert_eq!(stop_condition.as_deref(), Some("delegation.revoked"));
    assert_eq!(reason_code.as_deref(), Some("delegation_revoked"));
    assert!(at.is_some());
    assert!(events.message().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_watches_over_grpc_web() {
    let (_app, client, _) = demo().await;
    let id = permitted(&client).await;
    let message = WatchDecisionRequest { decision_id: id.clone() };
    let method = "/authority.runtime.v1.RuntimeService/WatchDecision";
    let update: DecisionUpdate = client.grpc_web(method, &message).await;
    assert_eq!(update.decision_id, id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_watches_server_sent_events() {
    let (app, client, _) = demo().await;
    let id = permitted(&client).await;
    let url = format!("{}/v1/decisions/{id}:watch-stop-conditions", client.base);
    let request = client.http.get(url).header("accept", "text/event-stream");
    let answer = request.bearer_auth(&client.token).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = Lines { answer, rest: Vec::new() };
    let chunk = events.answer.chunk().await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&chunk).into_owned();
    assert!(text.starts_with("data: {") && text.ends_with("}\n\n"), "{text}");
    assert!(text.contains(r#""kind":"heartbeat""#), "{text}");
    drop(app);
    let chunk = events.answer.chunk().await.unwrap().unwrap();
    assert!(chunk.starts_with(b"event: error\ndata: {"), "{chunk:?}");
}
