//! Stopping: periodic workers end at once, and workers that calls need end after the calls, all
//! within the time limit.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, StatusCode, header};
use serde_json::Value;
use tower::ServiceExt;

use super::{
    figures::figure,
    process::{Folder, LAME_DUCK, Service, allowed},
};
use crate::support::{Client, EVALUATE, TestApp};

/// Makes a call that bypasses the listener, like a call in progress when the service begins to
/// stop.
async fn evaluate(node: &TestApp, api_key: &str) -> StatusCode {
    let request = Request::post(EVALUATE)
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {api_key}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(Value::to_string(&allowed())))
        .unwrap();
    node.app.entry.router.clone().oneshot(request).await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_under_way_are_recorded_before_the_last_workers_end() {
    let node = TestApp::seeded().await;
    let demo = node.demo().await;
    assert_eq!(evaluate(&node, &demo.api_key).await, StatusCode::OK);
    node.supervisor.shutdown().cancel();
    // The wait is longer than the graph may go without reading the change log.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(evaluate(&node, &demo.api_key).await, StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let begun = Instant::now();
    assert_eq!(node.supervisor.stop().await, Vec::<&str>::new(), "workers are still running");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(evaluate(&node, &demo.api_key).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_the_process_within_the_drain() {
    let folder = Folder::new("stopping");
    let mut service = Service::start(&folder);
    let (status, _) = service.client.evaluate(allowed()).await;
    assert_eq!(status, 200);
    let begun = Instant::now();
    service.stop();
    let taken = begun.elapsed();
    figure("SIGTERM to an idle service", &format!("ended after {:.1} s", taken.as_secs_f64()));
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_stops_is_not_ready_and_serves_until_balancers_know() {
    // The wait is longer than the last result of the database check remains valid.
    const SPAN: Duration = Duration::from_secs(7);
    const SERVED: Duration = Duration::from_millis(6_500);
    let folder = Folder::new("lame_duck");
    let mut service = Service::with(LAME_DUCK, &SPAN.as_secs().to_string(), &folder);
    let (base, key) = (service.client.base.clone(), service.client.token.clone());
    service.terminate();
    let begun = Instant::now();
    while service.client.get("/health/ready").await.0 != 503 {
        assert!(begun.elapsed() < Duration::from_secs(1), "it is ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Each call opens its own connection.
    let mut served = 0;
    while begun.elapsed() < SERVED {
        let (status, answer) = Client::new(&base, &key).evaluate(allowed()).await;
        assert_eq!(status, 200, "{answer}");
        served += 1;
        let (status, ready) = service.client.get("/health/ready").await;
        assert_eq!(status, 503);
        let checks = ready["checks"].as_array().unwrap().iter();
        let wrong: Vec<_> = checks.filter(|check| check["status"] != "ok").collect();
        assert!(wrong.len() == 1 && wrong[0]["name"] == "service", "{wrong:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    service.ended();
    let taken = begun.elapsed();
    figure(&format!("SIGTERM, {served} new connections in the {SPAN:?} after it"), "0 failed");
    assert!((SPAN..SPAN + Duration::from_secs(10)).contains(&taken), "{taken:?}");
}
