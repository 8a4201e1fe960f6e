//! API keys on two nodes: a new key works on both at once, and a revoked key stops working on both.

use std::time::Duration;

use authority_graph as graph;
use authority_model::proto::runtime::{
    GetDecisionRequest, decision_service_client::DecisionServiceClient,
};
use tonic::{Code, Request};

use crate::support::{Answered, Client, Plain, TestApp, Wishes, asking, only};

/// Starts another node, which applies each change this long after its notification.
async fn late(app: &TestApp, delay: Duration) -> TestApp {
    let graph = graph::Settings { delay, ..Default::default() };
    app.beside(Wishes { graph, ..Wishes::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_key_is_good_on_another_node_at_once() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let late = late(&app, Duration::from_millis(60)).await;
    for round in 0..10 {
        let key = app.api_key("svc:tenant:acme", &["runtime:read"]).await;
        let (status, answer) =
            Client::new(late.base_url(), &key).get_authority("svc:agent:acme:invoice-bot").await;
        assert_eq!(status, 200, "round {round}: {answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_reads_nothing_on_any_node() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let (_, decided) = app.client(&demo.api_key).evaluate(asking(1.0, "DE")).await;
    let id = decided["decision_id"].as_str().unwrap().to_owned();
    let key = app.api_key("svc:tenant:acme", &["runtime:read"]).await;
    // The node is three seconds behind, which is still recent enough to answer.
    let late = late(&app, Duration::from_secs(3)).await;
    let client = Client::new(late.base_url(), &key);
    let paths = [
        format!("/v1/decisions/{id}"),
        "/v1/entities/svc:agent:acme:invoice-bot".to_owned(),
        "/v1/authority/svc:agent:acme:invoice-bot".to_owned(),
    ];
    let simulated = only("request", asking(1.0, "DE"));
    let grpc = DecisionServiceClient::connect(late.base_url().to_owned()).await.unwrap();
    let get = async || {
        let mut request = Request::new(GetDecisionRequest { decision_id: id.clone() });
        let bearer = format!("Bearer {key}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        grpc.clone().get_decision(request).await.map(|_| ()).map_err(|status| status.code())
    };
    for path in &paths {
        let (status, answer) = client.get(path).await;
        assert_eq!(status, 200, "{path}: {answer:#}");
    }
    assert_eq!(client.simulate_decision(simulated.clone()).await.0, 200);
    assert_eq!(get().await, Ok(()));

    let public_id = key.split('_').nth(2).unwrap();
    let path = format!("/api/v1/api-keys/svc:api_key:{public_id}");
    let (status, answer) = app.owner().text("DELETE", &path, None).await;
    assert_eq!(status, 200, "{answer}");
    for path in &paths {
        let (status, answer) = client.get(path).await;
        assert_eq!((status, answer["error"].text()), (401, "unauthenticated"), "{path}");
    }
    client.simulate_decision(simulated).await.assert_status(401);
    assert_eq!(get().await, Err(Code::Unauthenticated));
}
