//! Errors are limited in size.

use authority_model::proto::delegation::{CreateDelegationRequest, Delegation};
use prost::Message as _;
use serde_json::{Value, json};

use super::{demo, post};
use crate::support::{Client, TestApp};

const MOST: usize = 16 << 10;

async fn refused(client: &Client, path: &str, body: &Value) -> Value {
    let (status, text) = client.text("POST", path, Some(body.clone())).await;
    assert_eq!(status, 400, "{path}: {text:.300}");
    assert!(text.len() <= MOST, "{path}: {} bytes", text.len());
    let refused: Value = serde_json::from_str(&text).unwrap();
    let details = refused["details"].as_array().unwrap();
    assert!(details.len() <= 51, "{path}: {} problems", details.len());
    for detail in details {
        let field = detail["field"].as_str().unwrap();
        assert!(field.chars().count() <= 120, "{path}: {field}");
    }
    refused
}

/// Without the limit, the error for each of these requests could be a hundred times as large as the
/// request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_never_larger_than_16_kib() {
    let (app, client) = demo().await;
    let owner = app.owner();
    let (name, members) = ("n".repeat(200_000), vec![r#""a":1"#; 60].join(","));
    let twice = format!(
        r#"{{"subject": "x", "action": "a", "purpose": "p", "context": {{"{name}": {{{members}}}}}}}"#
    );
    let answer = post(&client, "/api/v1/runtime/evaluate", "application/json").body(twice);
    let answer = answer.send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let answer = answer.text().await.unwrap();
    assert!(answer.len() <= MOST, "{} bytes", answer.len());
    assert!(answer.contains("and ") && answer.contains(" more"), "{answer:.300}");

    let delegation = json!({"tenant_id": "acme", "delegator_id": "a", "delegate_id": "b",
        "actions": vec!["!"; 60_000]});
    let told = refused(&owner, "/api/v1/delegations", &delegation).await;
    let fields: Vec<_> = told["details"].as_array().unwrap().iter().map(|d| &d["field"]).collect();
    assert!(
        fields.contains(&&json!("actions")),
        "expected an error for the length of `actions`: {told:#}"
    );

    let admin = app.client(&app.member_token("svc:tenant:acme", "admin"));
    let key = json!({"label": "x", "scopes": vec!["!"; 60_000]});
    refused(&admin, "/api/v1/app/api-keys", &key).await;
    let simulated = json!({"request": {"subject": "svc:agent:acme:invoice-bot",
        "action": "payment.execute"}, "without_policies": vec![""; 80_000]});
    refused(&client, "/v1/decisions:simulate", &simulated).await;
    // The list is short enough that its items are checked, but each item is long.
    let long: Vec<_> = (0..200).map(|n| format!("{n}!{}", "x".repeat(1000))).collect();
    let delegation = json!({"tenant_id": "acme", "delegator_id": "a", "delegate_id": "b",
        "actions": long});
    let told = refused(&owner, "/api/v1/delegations", &delegation).await;
    let last = told["details"].as_array().unwrap().last().unwrap();
    assert_eq!(last["field"], "", "{told:#}");
    assert!(last["problem"].as_str().unwrap().starts_with("and "), "{told:#}");
    let message = told["message"].as_str().unwrap();
    assert!(message.ends_with(" more") && message.len() < 1500, "{message}");
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    frame
}

/// grpcio rejects metadata above 8 KiB, and its error makes the caller retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grpc_refusal_leaves_room_in_8_kib() {
    let app = TestApp::shared().await;
    let owner = app.owner();
    for bad in [1, 12, 50, 256, 20_000] {
        let delegation = Delegation {
            tenant_id: Some("acme".to_owned()),
            delegator_id: Some("a".to_owned()),
            delegate_id: "b".to_owned(),
            actions: (0..bad).map(|n| format!("!{n}")).collect(),
            ..Default::default()
        };
        let message = CreateDelegationRequest { delegation: Some(delegation) }.encode_to_vec();
        let path = "/authority.delegation.v1.DelegationService/CreateDelegation";
        let call = post(&owner, path, "application/grpc-web+proto").body(framed(&message));
        let answer = call.send().await.unwrap();
        let headers = answer.headers();
        assert_eq!(headers["grpc-status"], "3", "{bad}: {headers:?}");
        let size: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(size < 8 << 10, "{bad} faults: {size} bytes of headers");
    }
}

/// The rule for action patterns in the protos agrees with the registry's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_is_reported_once() {
    let app = TestApp::shared().await;
    let delegation = json!({"tenant_id": "acme", "delegator_id": "a", "delegate_id": "b",
        "actions": ["Payment", "payment.execute"]});
    let told = refused(&app.owner(), "/api/v1/delegations", &delegation).await;
    let details = told["details"].as_array().unwrap();
    let of_action = details.iter().filter(|d| d["field"] == "actions[0]");
    assert_eq!(of_action.count(), 1, "{told:#}");
}
