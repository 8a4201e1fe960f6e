//! Requests are checked against the input declarations of tools and tenants.

use serde_json::{Value, json};

use super::demo;
use crate::support::{Answered, Client, Members, Plain, TENANT, TestApp, asking, new_tool, only};

async fn ask(client: &Client, body: &Value) -> Value {
    client.evaluate(body.clone()).await.assert_status(200)
}

fn tool(schema: &Value) -> Value {
    new_tool("wires", "wire()", &["payment.execute"]).with("input_schema", schema)
}

fn region() -> Value {
    json!({"type": "object", "required": ["region"],
        "properties": {"region": {"type": "string", "enum": ["EU", "US"]}}})
}

async fn made(app: &TestApp, schema: &Value) -> Value {
    let answer = app.owner().create_tool(tool(schema)).await.assert_status(201);
    answer["tool"].clone()
}

/// Returns the README's request with a region.
fn in_region(region: Value) -> Value {
    let mut question = asking(1200.0, "DE");
    question["context"]["region"] = region;
    question
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_decisions_cannot_check_is_refused_at_its_place() {
    let (app, _, _) = demo().await;
    let owner = app.owner();
    let member = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let tool_id = made(&app, &region()).await["id"].as_str().unwrap().to_owned();
    for (schema, place, problem) in [
        (
            member(only("$ref", "https://example.org/a.json")),
            "properties.a.$ref",
            "remote schemas are not fetched",
        ),
        (member(json!({"pattern": "^(?!x)"})), "properties.a.pattern", "look-around"),
        (member(only("type", "text")), "properties.a.type", "must be one or several of"),
        (member(only("pattern", "a[ab]{500}c")), "properties.a", "steps for each byte"),
        (only("$ref", "#"), "", "refers to itself"),
    ] {
        for (status, refused) in [
            owner.create_tool(tool(&schema)).await,
            owner.update_tool(&tool_id, only("input_schema", &schema)).await,
        ] {
            assert_eq!(status, 400, "{refused:#}");
            let detail = &refused["details"][0];
            let field = detail["field"].as_str().unwrap();
            let whole = format!("input_schema{}{place}", if place.is_empty() { "" } else { "." });
            assert!(field.ends_with(&whole), "{refused:#}");
            assert!(detail.to_string().contains(problem), "{refused:#}");
        }
    }
    let loose = json!({"type": "object", "minProperties": 1, "properties": {"amount": {"maximum": 5, "format": "x"}}});
    let warned = made(&app, &loose).await;
    assert_eq!(warned["input_at"], "context");
    let told = warned["warnings"].to_string();
    for part in [
        "`input_schema/minProperties`",
        "`input_schema/properties/amount/format`",
        "omit it to avoid the bound",
    ] {
        assert!(told.contains(part), "{told}");
    }
    owner.update_tool(&tool_id, only("input_at", "body")).await.assert_status(400);
    let (_, changed) = owner.update_tool(&tool_id, only("input_at", "arguments")).await;
    assert_eq!(changed["tool"]["input_at"], "arguments", "{changed:#}");
    let (_, changed) = owner.update_tool(&tool_id, only("input_at", Value::Null)).await;
    assert_eq!(changed["tool"]["input_at"], "context", "{changed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_declares_is_asked_of_requests_that_name_none() {
    let (app, client, _) = demo().await;
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["decision"], "allow");
    let id = made(&app, &region()).await["id"].as_str().unwrap().to_owned();
    assert_eq!(ask(&client, &in_region(json!("EU"))).await["decision"], "allow");
    for bad in [json!(7), json!(["EU"]), json!("eu"), json!("XX"), Value::Null] {
        let answer = ask(&client, &in_region(bad.clone())).await;
        let found = (&answer["decision"], &answer["reason_code"]);
        assert_eq!(found, (&json!("deny"), &json!("context_invalid")), "{bad}");
    }
    let (_, found) = app.owner().list_tools(&format!("tenant_id={TENANT}")).await;
    let mut tools = found["tools"].as_array().unwrap().iter();
    let payments = tools.find(|tool| tool["name"] == "payments").unwrap()["id"].clone();
    let mut named = in_region(json!("XX"));
    named["tool_id"] = payments.clone();
    assert_eq!(ask(&client, &named).await["decision"], "allow", "another tool's schema");
    // The types of the fields that policies use are checked, whichever tool is named.
    named["context"]["region"] = 7.into();
    assert_eq!(ask(&client, &named).await["reason_code"], "context_invalid");

    let explained = in_region(json!("a secret")).with("explain", true);
    let answer = ask(&client, &explained).await;
    let findings = answer["trace"][0]["findings"].as_array().unwrap();
    let own = findings.iter().find(|finding| finding["check"] == format!("input {id}")).unwrap();
    let detail = own["detail"].as_str().unwrap();
    assert!(detail.contains("`/region`") && detail.contains("`enum`"), "{detail}");
    assert!(!answer.to_string().contains("a secret"), "{answer:#}");

    let authorize = json!({"actor": {"entity_id": "svc:agent:acme:invoice-bot"}, "action": "payment.execute",
        "purpose": "invoice-settlement", "context": in_region(json!(7))["context"]});
    let (status, answer) = client.authorize(authorize).await;
    assert_eq!((status, answer["reason_code"].text()), (200, "context_invalid"), "{answer:#}");
    let (_, codes) = client.list_reason_codes("").await;
    assert!(codes.to_string().contains("context_invalid"), "{codes:#}");

    // A change of the tool's schema takes effect at once.
    let (status, _) =
        app.owner().update_tool(&id, json!({"input_schema": {"type": "object"}})).await;
    assert_eq!(status, 200);
    assert_eq!(ask(&client, &in_region(json!(7))).await["decision"], "allow");
    app.owner().update_tool(&id, json!({"input_schema": region(), "input_at": "arguments"})).await;
    assert_eq!(ask(&client, &in_region(json!("EU"))).await["reason_code"], "context_invalid");
    let mut arguments = asking(1200.0, "DE");
    arguments["context"]["arguments"] = only("region", "EU");
    assert_eq!(ask(&client, &arguments).await["decision"], "allow");
}

/// A schema that violates rules introduced after it was stored denies. So does an unreadable
/// declaration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_declaration_that_cannot_be_read_denies() {
    let (app, client, _) = demo().await;
    let id = made(&app, &only("type", "object")).await["id"].as_str().unwrap().to_owned();
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["decision"], "allow");
    let far = r#"{"$ref": "https://example.org/a.json"}"#;
    app.database.run(&format!("UPDATE tools SET input_schema = '{far}' WHERE id = '{id}'")).await;
    let denied = async || {
        for _ in 0..100 {
            let answer = ask(&client, &asking(1200.0, "DE")).await;
            if answer["reason_code"] == "context_invalid" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the request is not denied");
    };
    denied().await;
    let (status, _) = app.owner().delete_tool(&id).await;
    assert_eq!(status, 200);
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["decision"], "allow");
    let unread = r#"{"payment.*": {"region": "words"}}"#;
    let change = format!("UPDATE tenants SET context_schema = '{unread}' WHERE id = '{TENANT}'");
    app.database.run(&change).await;
    denied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tenant_declares_is_asked_of_requests() {
    let (app, client, _) = demo().await;
    let declared =
        json!({"payment.*": {"region": {"type": "string", "required": true}, "rate": "decimal"}});
    let change = only("context_schema", &declared);
    app.owner().update_tenant(TENANT, change).await.assert_status(200);
    for (region, rate, reason) in [
        (json!("EU"), json!(0.5), "permission_granted"),
        (json!("EU"), Value::Null, "permission_granted"),
        (json!("EU"), json!("0.5"), "context_invalid"),
        (json!("EU"), json!(0.123_456), "context_invalid"),
        (json!(["EU"]), json!(1), "context_invalid"),
        (Value::Null, json!(1), "context_invalid"),
    ] {
        let mut question = in_region(region);
        question["context"]["rate"] = rate;
        assert_eq!(ask(&client, &question).await["reason_code"], reason, "{question}");
    }
    let mut without = asking(1200.0, "DE");
    without["context"]["Region"] = "EU".into();
    assert_eq!(ask(&client, &without).await["reason_code"], "context_invalid");
}
