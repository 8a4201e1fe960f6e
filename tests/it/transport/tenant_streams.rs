//! The number of a tenant's open streams is limited, over both protocols together.

use std::time::{Duration, Instant};

use authority_model::proto::runtime::{
    WatchStopConditionsRequest, runtime_service_client::RuntimeServiceClient,
};
use reqwest::Response;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::support::{Client, Limits, Plain, TestApp, Wishes, asking, evaluate};

const PATIENCE: Duration = Duration::from_secs(20);

async fn watch(client: &Client, decision_id: &str) -> Response {
    let url = format!("{}/v1/decisions/{decision_id}:watch-stop-conditions", client.base);
    client.http.get(url).bearer_auth(&client.token).send().await.unwrap()
}

async fn permitted(client: &Client) -> String {
    let (status, answer) = client.post("/api/v1/runtime/evaluate", asking(1.0, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer}");
    answer["decision_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_has_half_of_its_tenants_streams_and_the_tenant_no_more_than_all() {
    let app = TestApp::wished(Wishes { tenant_streams: 4, ..Wishes::default() }).await;
    let client = app.client(&app.demo().await.api_key);
    let id = permitted(&client).await;
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let asked = || {
        let mut request = Request::new(WatchStopConditionsRequest { decision_id: id.clone() });
        let bearer = format!("Bearer {}", client.token).parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        request
    };
    let first = watch(&client, &id).await;
    assert_eq!(first.status(), 200);
    let shown = Limits::of(&first);
    assert_eq!(shown.left, r#""streams_per_credential";r=1, "streams_per_tenant";r=3"#);
    let policy = r#""streams_per_credential";q=2;qu="concurrent-requests""#;
    let of_tenant = r#""streams_per_tenant";q=4;qu="concurrent-requests""#;
    assert_eq!(shown.policy, format!("{policy}, {of_tenant}"));
    let second = grpc.watch_stop_conditions(asked()).await.unwrap();
    let shown = Limits::in_metadata(second.metadata());
    assert_eq!(shown, r#""streams_per_credential";r=0, "streams_per_tenant";r=2"#);

    let refused = watch(&client, &id).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"10".parse().unwrap())
    );
    let shown = Limits::of(&refused);
    assert_eq!(
        (shown.left.as_str(), shown.policy.as_str()),
        (r#""streams_per_credential";r=0"#, policy)
    );
    let told: Value = refused.json().await.unwrap();
    assert_eq!(told["error"], "rate_limited", "{told}");
    let message = "this credential has 2 streams open on this node; close one";
    assert_eq!(told["message"], message, "{told}");
    let refused = grpc.watch_stop_conditions(asked()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert_eq!(Limits::in_metadata(refused.metadata()), r#""streams_per_credential";r=0"#);
    // Calls that open no stream still work.
    permitted(&client).await;

    // Each credential of the tenant has its own limit, and the tenant has a limit for all of them.
    let person = app.person("svc:tenant:acme", "admin", "ann@acme.example");
    let beside = [watch(&person, &id).await, watch(&person, &id).await];
    assert_eq!(beside.each_ref().map(|answer| answer.status().as_u16()), [200, 200]);
    let other = app.person("svc:tenant:acme", "auditor", "bob@acme.example");
    let refused = watch(&other, &id).await;
    let shown = Limits::of(&refused);
    assert_eq!(refused.status(), 429);
    let of_tenant = (r#""streams_per_tenant";r=0"#, of_tenant);
    assert_eq!((shown.left.as_str(), shown.policy.as_str()), of_tenant);
    let told: Value = refused.json().await.unwrap();
    assert_eq!(told["message"], "the tenant has 4 streams open on this node; close one", "{told}");

    // If a client closes its stream, another one can be opened.
    drop(first);
    let begun = Instant::now();
    while watch(&client, &id).await.status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "the closed stream is still counted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An agent runtime watches each of its running permissions, and makes more requests on the same
/// connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_watches_on_a_channel_leave_room_for_decisions() {
    let app = TestApp::seeded().await;
    let client = app.client(&app.demo().await.api_key);
    let id = permitted(&client).await;
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let bearer: tonic::metadata::MetadataValue<_> =
        format!("Bearer {}", client.token).parse().unwrap();
    let mut streams = Vec::new();
    for _ in 0..300 {
        let mut request = Request::new(WatchStopConditionsRequest { decision_id: id.clone() });
        request.metadata_mut().insert("authorization", bearer.clone());
        let opened = tokio::time::timeout(PATIENCE, grpc.watch_stop_conditions(request)).await;
        let mut stream = opened.expect("the stream waits in the client").unwrap().into_inner();
        assert!(stream.message().await.unwrap().is_some());
        streams.push(stream);
    }
    let mut request =
        Request::new(evaluate(&json!({"amount": 1.0, "currency": "EUR", "jurisdiction": "DE"})));
    request.metadata_mut().insert("authorization", bearer);
    let decided = tokio::time::timeout(PATIENCE, grpc.evaluate(request)).await;
    assert!(decided.expect("the decision waits behind the streams").is_ok());
}
