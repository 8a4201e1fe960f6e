//! The rate limit of test events: ten of an endpoint in a minute.

use authority_model::proto::events::{
    TestWebhookEndpointRequest, webhook_delivery_service_client::WebhookDeliveryServiceClient,
};
use tonic::Request;

use super::{Endpoint, Receiver, World};
use crate::support::{Limits, nothing};

/// Returns the header for this number of remaining tests, without the seconds.
fn left(calls: u32) -> String {
    format!(r#""webhook_tests_per_endpoint";r={calls};t="#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_show_the_tests_that_are_left() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let admin = world.app.person(&world.tenant_id, "admin", "alice@example.org");
    let path = format!("/api/v1/app/webhook-endpoints/{}:test", made.id);
    let test = async |key: &str| {
        let keys = [("idempotency-key", key)];
        let sent: &[_] = if key.is_empty() { &[] } else { &keys };
        Limits::of_call(&admin, "POST", &path, Some(&nothing()), sent).await.0
    };
    let first = test("").await;
    assert_eq!(first.status, 200);
    assert!(first.left.starts_with(&left(9)), "{first:?}");
    assert_eq!(first.policy, r#""webhook_tests_per_endpoint";q=10;w=60"#);
    // A repeated call does not count.
    for _ in 0..2 {
        let repeated = test("one").await;
        assert!(repeated.left.starts_with(&left(8)), "{repeated:?}");
    }
    let base = world.app.base_url().to_owned();
    let mut grpc = WebhookDeliveryServiceClient::connect(base).await.unwrap();
    let asked = || {
        let mut request = Request::new(TestWebhookEndpointRequest { id: made.id.clone() });
        let bearer = format!("Bearer {}", admin.token).parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        request
    };
    let answer = grpc.test_webhook_endpoint(asked()).await.unwrap();
    let shown = Limits::in_metadata(answer.metadata());
    assert!(shown.starts_with(&left(7)), "{shown}");
    for calls in (0..7).rev() {
        let answer = test("").await;
        assert!(answer.left.starts_with(&left(calls)), "{calls}: {answer:?}");
    }
    let url = format!("{}{path}", admin.base);
    let refused = admin.http.post(url).bearer_auth(&admin.token).json(&nothing());
    let refused = refused.send().await.unwrap();
    let (shown, wait) = (Limits::of(&refused), refused.headers()["retry-after"].to_str().unwrap());
    assert_eq!((shown.status, shown.policy), (429, first.policy));
    assert_eq!(shown.left, format!("{}{wait}", left(0)));
    assert!((1..=60).contains(&wait.parse::<u64>().unwrap()), "{wait}");
    let status = grpc.test_webhook_endpoint(asked()).await.unwrap_err();
    let shown = Limits::in_metadata(status.metadata());
    assert!(shown.starts_with(&left(0)), "{shown}");
    // Each endpoint has its own limit.
    let other = world.endpoint(Endpoint::at(&receiver.base)).await;
    let path = format!("/api/v1/app/webhook-endpoints/{}:test", other.id);
    let (own, _) = Limits::of_call(&admin, "POST", &path, Some(&nothing()), &[]).await;
    assert!(own.left.starts_with(&left(9)), "{own:?}");
}
