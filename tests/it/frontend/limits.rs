//! Limits of size and depth are the same over REST and gRPC, and the error states the limit.

use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{asking, demo, post, runtime, told};
use crate::support::Plain;

const EVALUATE: &str = "/api/v1/runtime/evaluate";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_grows_past_the_limit_in_protobuf_is_too_large() {
    let (app, client) = demo().await;
    let many = vec![1; 100_000];
    let mut body = crate::support::asking(1.0, "DE");
    body["context"]["a"] = json!(many);
    let sent = serde_json::to_vec(&body).unwrap().len();
    assert!(sent < 256 << 10);
    for (client, path, body) in [
        (&client, EVALUATE, body),
        (
            &app.owner(),
            "/api/v1/tools",
            json!({"tenant_id": "acme", "name": "t", "metadata": {"a": many}}),
        ),
    ] {
        let (status, refused) = client.post(path, body).await;
        assert_eq!((status, refused["error"].text()), (413, "too_large"), "{path}");
        let message = refused["message"].as_str().unwrap();
        let numbers: Vec<usize> =
            message.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        let [sent, found, limit] = numbers[..] else { panic!("{message}") };
        assert!(sent < 256 << 10 && found > 1 << 20 && limit == 1 << 20, "{message}");
    }
    // 40,000 items are within both limits: the size as JSON and the size as a message.
    let mut body = crate::support::asking(1.0, "DE");
    body["context"]["a"] = json!(vec![1; 40_000]);
    assert_eq!(client.post(EVALUATE, body).await.0, 200);
}

/// Decision requests over gRPC bypass the router, but the same limit applies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_past_the_limit_is_out_of_range_over_grpc() {
    let (app, client) = demo().await;
    let mut grpc = runtime(&app).await;
    let padded = |bytes: usize| {
        let mut call = asking(&client.token, &json!({"amount": 1, "currency": "EUR"}));
        call.get_mut().purpose = "x".repeat(bytes);
        call
    };
    let refused = grpc.evaluate(padded((1 << 20) + 1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let read = grpc.evaluate(padded(900_000)).await.unwrap_err();
    assert_eq!(read.code(), Code::InvalidArgument, "{read}");
}

/// Returns a context that is nested this many levels deep. The context itself is the first level.
fn nested(levels: usize, list: bool) -> Value {
    let inner = (1..levels)
        .fold(json!(1), |inner, _| if list { json!([inner]) } else { json!({"a": inner}) });
    json!({"amount": 1, "currency": "EUR", "jurisdiction": "DE", "deep": inner})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn depth_counts_alike_over_rest_and_grpc() {
    let (app, client) = demo().await;
    let mut grpc = runtime(&app).await;
    for list in [false, true] {
        for (levels, fits) in
            [(31, true), (32, true), (33, false), (34, false), (40, false), (60, false)]
        {
            let context = nested(levels, list);
            let over_grpc = grpc.evaluate(asking(&client.token, &context)).await;
            let mut body = crate::support::asking(1.0, "DE");
            body["context"] = context;
            let (status, answer) = client.post(EVALUATE, body.clone()).await;
            let batch = json!({"requests": [body]});
            let (many, batched) = client.post("/v1/decisions:batchEvaluate", batch).await;
            if fits {
                assert_eq!(status, 200, "{levels}: {answer:#}");
                assert_eq!(many, 200, "{levels}: {batched:#}");
                assert!(batched["results"][0]["error"].is_null(), "{levels}: {batched:#}");
                over_grpc.unwrap();
                continue;
            }
            assert_eq!((status, answer["error"].text()), (400, "invalid_request"), "{levels}");
            assert_eq!(answer["details"][0]["field"], "context", "{levels}: {answer:#}");
            assert!(answer["details"][0]["problem"].as_str().unwrap().contains("deeper than 32"));
            let refused_alone = !batched["results"][0]["error"].is_null();
            assert!(many == 400 || refused_alone, "{levels}: {batched:#}");
            let refused = over_grpc.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{levels}: {refused}");
            let details = refused.get_error_details();
            assert_eq!(details.error_info().unwrap().reason, "invalid_request", "{levels}");
            let fault = &details.bad_request().unwrap().field_violations[0];
            assert_eq!(fault.field, "context", "{levels}: {fault:?}");
            assert!(fault.description.contains("deeper than 32"), "{levels}: {fault:?}");
        }
    }
    // The same limit applies to free-form fields of records.
    for (levels, expected) in [(32, 201), (33, 400)] {
        let made = json!({"tenant_id": "svc:tenant:acme", "name": format!("t{levels}"), "function_signature": "f()", "metadata": nested(levels, true)});
        let (status, answer) = app.owner().post("/api/v1/tools", made).await;
        assert_eq!(status, expected, "{levels}: {answer:#}");
    }
}

/// An error that tonic creates has no reason. The service derives the reason from the gRPC code: a
/// message over the limit is `too_large`, not `internal`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tonic_refuses_is_not_called_internal() {
    let (_app, client) = demo().await;
    let frame = [&[0_u8][..], &(2_u32 << 20).to_be_bytes(), &vec![0; 1 << 20]].concat();
    let call = post(&client, super::EVALUATE, "application/grpc-web+proto").body(frame);
    let answer = call.send().await.unwrap();
    assert_eq!(answer.headers()["grpc-status"], "11", "OUT_OF_RANGE: too large");
    let (status, _) = told(answer).await;
    assert_eq!(status, 200);
}

/// `transport::heads` tests the same limit over REST.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_past_the_limit_is_out_of_range_over_grpc() {
    let (app, client) = demo().await;
    let mut grpc = runtime(&app).await;
    for (bytes, expected) in
        [(10_000, None), (17_000, Some(Code::OutOfRange)), (60_000, Some(Code::OutOfRange))]
    {
        let mut call = asking(&client.token, &json!({"amount": 1, "currency": "EUR"}));
        call.metadata_mut().insert("long", "x".repeat(bytes).parse().unwrap());
        let refused = grpc.evaluate(call).await.err();
        assert_eq!(refused.as_ref().map(tonic::Status::code), expected, "{bytes}: {refused:?}");
        if let Some(refused) = refused {
            assert!(refused.message().contains("16384"), "{refused:?}");
            assert_eq!(refused.get_error_details().error_info().unwrap().reason, "too_large");
        }
    }
}
