//! The open streams of a tenant are bounded, over both protocols together.

use std::time::{Duration, Instant};

use authority_model::proto::runtime::{
    WatchStopConditionsRequest, runtime_service_client::RuntimeServiceClient,
};
use reqwest::Response;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::support::{Client, TestApp, Wishes, asking};

const PATIENCE: Duration = Duration::from_secs(20);

async fn watch(client: &Client, decision_id: &str) -> Response {
    let url = format!("{}/v1/decisions/{decision_id}:watch-stop-conditions", client.base);
    client.http.get(url).bearer_auth(&client.token).send().await.unwrap()
}

async fn permitted(client: &Client) -> String {
    let (status, answer) = client.post("/api/v1/runtime/evaluate", asking(1.0, "DE")).await;
    assert_eq!((status, &answer["decision"]), (200, &json!("allow")), "{answer}");
    answer["decision_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_has_its_number_of_streams_and_no_more() {
    let app = TestApp::wished(Wishes { tenant_streams: 2, ..Wishes::default() }).await;
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
    let _second = grpc.watch_stop_conditions(asked()).await.unwrap();

    let refused = watch(&client, &id).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"10".parse().unwrap())
    );
    let told: Value = refused.json().await.unwrap();
    assert_eq!(told["error"], "rate_limited", "{told}");
    assert_eq!(told["message"], "the tenant has 2 streams open on this node; close one", "{told}");
    let refused = grpc.watch_stop_conditions(asked()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // What is no stream goes on.
    permitted(&client).await;

    // One that its client has left makes room.
    drop(first);
    let begun = Instant::now();
    while watch(&client, &id).await.status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "its place is not free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
