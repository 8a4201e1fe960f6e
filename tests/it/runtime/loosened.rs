//! If a tool's requirements become milder, or the tool is deleted, the response lists the milder
//! terms. `validate_only` lists them in advance.

use authority_model::proto::registry::{DeleteToolRequest, DeleteToolResponse};
use prost::Message;
use serde_json::{Value, json};

use super::demo;
use crate::support::{Answered, Client, Plain, TENANT, TestApp, asking, only, wire::Caller};

/// Creates a tool that holds payments, and returns its path.
async fn strict(app: &TestApp) -> String {
    let strict = json!({"tenant_id": TENANT, "name": "wires", "function_signature": "wire()",
        "actions": ["payment.execute"], "requires": ["bic"],
        "input_schema": {"type": "object", "properties": {"bic": {"type": "string"}}},
        "action_risk_classification": {"risk_tier": "high"}});
    let made = app.owner().create_tool(strict).await.assert_status(201);
    format!("/api/v1/tools/{}", made["tool"]["id"].as_str().unwrap())
}

#[track_caller]
fn milder(tool: &Value) -> String {
    let lines = tool["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("milder: ")).collect();
    lines.join("\n")
}

async fn decision(client: &Client) -> Value {
    let answer = client.evaluate(asking(1200.0, "DE")).await.assert_status(200);
    answer["decision"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_binding_tool_says_what_becomes_milder() {
    let (app, client, _) = demo().await;
    let path = strict(&app).await;
    assert_eq!(decision(&client).await, "deny");
    let owner = app.owner();
    let tried = owner
        .call("DELETE", &format!("{path}?validate_only=true"), None, &[])
        .await
        .assert_status(200);
    let (_, kept) = owner.get(&path).await;
    assert_eq!(kept["tool"]["state"], "active", "it was only tried");
    assert_eq!(milder(&kept["tool"]), "");
    assert_eq!(decision(&client).await, "deny");

    let (status, gone) = owner.call("DELETE", &path, None, &[]).await;
    assert_eq!((status, gone["tool"]["state"].text()), (200, "deprecated"), "{gone:#}");
    let told = milder(&gone["tool"]);
    assert_eq!(told, milder(&tried["tool"]), "the preview differs");
    for part in [
        "`payment.execute`: oversight none, was two_person",
        "no longer requires `bic`",
        "input no longer checked by the schema",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(decision(&client).await, "allow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_loosened_member_is_told_and_a_stricter_one_is_not() {
    let (app, _, _) = demo().await;
    let path = strict(&app).await;
    let owner = app.owner();
    for (change, part) in [
        (
            json!({"action_risk_classification": {"risk_tier": "limited"}}),
            "risk_tier limited, was high",
        ),
        (only("action_risk_classification", Value::Null), "risk_tier not declared, was high"),
        (json!({"requires": []}), "no longer requires `bic`"),
        (only("input_schema", Value::Null), "input no longer checked by the schema"),
        (only("actions", ["ticket.close"]), "`payment.execute`: oversight none, was two_person"),
        (
            only("actions", ["payment.execute", "ticket.close"]),
            "requests that name this tool: its callers may also perform `ticket.close`",
        ),
    ] {
        let tried = owner
            .patch(&format!("{path}?validate_only=true"), change.clone())
            .await
            .assert_status(200);
        assert!(milder(&tried["tool"]).contains(part), "{change}: {tried:#}");
    }
    for change in [
        only("requires", ["bic", "iban"]),
        json!({"action_risk_classification": {"risk_tier": "prohibited"}}),
        only("description", "wires"),
    ] {
        let changed = owner.patch(&path, change.clone()).await.assert_status(200);
        assert_eq!(milder(&changed["tool"]), "", "{change}");
    }
    let (_, changed) = owner.patch(&path, json!({"requires": []})).await;
    assert!(milder(&changed["tool"]).contains("no longer requires `iban`"), "{changed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_says_the_same_and_a_models_lower_tier_is_told() {
    let (app, _, _) = demo().await;
    let path = strict(&app).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let rpc = "/authority.registry.v1.ToolService/DeleteTool";
    let request = DeleteToolRequest { id, validate_only: true };
    let answer = Caller::owner(&app).grpc(rpc, request.encode_to_vec()).await.unwrap();
    let tool = DeleteToolResponse::decode(answer).unwrap().tool.unwrap();
    let told = tool.warnings.iter().any(|line| line.starts_with("milder: `payment.execute`: "));
    assert!(told, "{:?}", tool.warnings);

    let model = json!({"tenant_id": TENANT, "model_provider": "x", "model_family": "y",
                       "version": "1", "risk_tier": "high"});
    let (status, made) = app.owner().create_model(model).await;
    assert_eq!((status, &made["model"]["warnings"]), (201, &json!([])), "{made:#}");
    let path = format!("/api/v1/models/{}", made["model"]["id"].as_str().unwrap());
    let lower = only("risk_tier", "minimal");
    for path in [format!("{path}?validate_only=true"), path.clone()] {
        let changed = app.owner().patch(&path, lower.clone()).await.assert_status(200);
        let told = milder(&changed["model"]);
        assert_eq!(told, "milder: risk_tier minimal, was high: for requests of 0 agents");
    }
    let (_, changed) = app.owner().patch(&path, only("risk_tier", "unacceptable")).await;
    assert_eq!(changed["model"]["warnings"], json!([]), "{changed:#}");
}
