//! What `explain` tells of a denial, over REST and gRPC.

use authority_model::proto::runtime::{
    EvaluateRequest, runtime_service_client::RuntimeServiceClient,
};
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::{asking, demo};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_and_both_values_and_what_would_help() {
    let (app, client, delegation) = demo().await;
    let mut ask = asking(60_000.0, "US");
    ask["explain"] = json!(true);
    let (status, answer) = client.post("/api/v1/runtime/evaluate", ask.clone()).await;
    assert_eq!((status, &answer["reason_code"]), (200, &json!("constraint_exceeded")));
    let findings = answer["trace"][0]["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["check"] == format!("delegation {delegation}"));
    let told = format!("max_amount 50000.00 EUR of {delegation}; asked 60000.00");
    assert_eq!(found.unwrap()["detail"], told, "{answer:#}");
    // Neither the place nor the amount helps alone.
    let change = &answer["smallest_change"];
    let further = change["further"].as_array().unwrap();
    let mut parts: Vec<&Value> = further.iter().chain([change]).collect();
    parts.sort_by_key(|part| part["kind"].as_str());
    let said: Vec<_> = parts.iter().map(|part| (&part["member"], &part["value"])).collect();
    let (amount, place) = (json!("50000"), json!("DE"));
    let wanted = [(&json!("context.amount"), &amount), (&json!("context.jurisdiction"), &place)];
    assert_eq!(said, wanted, "{change:#}");
    assert_eq!(change["decision"], "require_approval");
    let (_, then) = client.post("/api/v1/runtime/evaluate", asking(50_000.0, "DE")).await;
    assert_eq!(
        (&then["decision"], &then["reason_code"]),
        (&change["decision"], &change["reason_code"])
    );

    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let body: EvaluateRequest = EvaluateRequest {
        subject: ask["subject"].as_str().unwrap().to_owned(),
        action: ask["action"].as_str().unwrap().to_owned(),
        purpose: ask["purpose"].as_str().unwrap().to_owned(),
        context: Some(authority_model::wire::Json(ask["context"].as_object().unwrap().clone())),
        explain: true,
        ..EvaluateRequest::default()
    };
    let mut request = Request::new(body);
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let answer = grpc.evaluate(request).await.unwrap().into_inner();
    assert_eq!(answer.smallest_change.unwrap().further.len(), 1);
    assert!(answer.trace[0].findings.iter().any(|one| one.detail() == told));
}
