//! A list's filter with a closed set of words is documented with them, and refuses any other word.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document;
use crate::support::TestApp;

/// Follows references to the schema itself.
fn resolved<'a>(schema: &'a Value, whole: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => resolved(whole.pointer(name.trim_start_matches('#')).unwrap(), whole),
        None => schema,
    }
}

/// Returns the words of a closed set; empty for any other schema.
fn words(schema: &Value, whole: &Value) -> BTreeSet<String> {
    let schema = resolved(schema, whole);
    let own = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let own = own.filter(|word| !word.is_empty()).map(str::to_owned);
    let inner = schema["anyOf"].as_array().into_iter().flatten();
    own.chain(inner.flat_map(|schema| words(schema, whole))).collect()
}

/// Returns the schema of the records in a page or in an export's line.
fn record<'a>(operation: &'a Value, whole: &'a Value) -> Option<&'a Value> {
    let content = operation["responses"]["200"]["content"].as_object()?;
    let body = content.get("application/json").or_else(|| content.get("application/x-ndjson"))?;
    let body = resolved(&body["schema"], whole);
    let members = body["properties"].as_object()?.values();
    let mut members = members.map(|member| {
        let member = resolved(member, whole);
        let inner = member["anyOf"].as_array().and_then(|any| any.first());
        let inner = inner.map_or(member, |inner| resolved(inner, whole));
        if inner["type"] == "array" { resolved(&inner["items"], whole) } else { inner }
    });
    members.find(|member| member["properties"]["id"].is_object())
}

/// Returns the query parameters of a list.
fn parameters(operation: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = operation["parameters"].as_array().into_iter().flatten();
    all.filter(|parameter| parameter["in"] == "query")
        .filter_map(|parameter| Some((parameter["name"].as_str()?, &parameter["schema"])))
}

#[test]
fn a_filter_has_the_words_of_the_member_that_it_compares() {
    let whole: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (path, operations) in whole["paths"].as_object().unwrap() {
        let operation = &operations["get"];
        // Reading one row by its key returns 404 for a word outside the set.
        let record = record(operation, &whole).filter(|_| !path.ends_with('}'));
        let Some(record) = record else { continue };
        for (name, schema) in parameters(operation) {
            let (listed, taken) =
                (words(&record["properties"][name], &whole), words(schema, &whole));
            compared += usize::from(!listed.is_empty());
            if !listed.is_empty() && listed != taken {
                wrong.push(format!("{path} {name}: {taken:?}, but the record has {listed:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > 40, "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_refuses_a_word_outside_its_set_with_the_nearest() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let whole = document(&app).await;
    let key =
        app.client(&app.api_key("svc:tenant:acme", &["runtime:read", "webhooks:write"]).await);
    let (owner, admin) = (app.owner(), app.person("svc:tenant:acme", "admin", "a@acme.example"));
    let (mut refused, mut wrong) = (0, Vec::new());
    for (path, operations) in whole["paths"].as_object().unwrap() {
        if path.contains('{') {
            continue;
        }
        let client = match path {
            _ if path.starts_with("/api/v1/app/") => &admin,
            _ if path.starts_with("/v1/") => &key,
            _ => &owner,
        };
        for (name, schema) in parameters(&operations["get"]) {
            let Some(word) = words(schema, &whole).into_iter().find(|word| word.len() > 2) else {
                continue;
            };
            let shouted = word.to_uppercase();
            let (status, answer) = client.get(&format!("{path}?{name}={shouted}")).await;
            if status == 403 {
                continue;
            }
            refused += 1;
            let told = answer["message"].as_str().unwrap_or_default();
            let hint = format!("did you mean `{word}`?");
            let is_named = answer["details"][0]["field"] == json!(name);
            if status != 400 || !is_named || !told.contains(&hint) {
                wrong.push(format!("{path}?{name}={shouted}: {status} {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > 50, "{refused}");
}

/// Tenants may add reason codes that begin with `x_`, so that the set has no list in the document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reason_code_is_canonical_or_a_tenants_own() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let list = async |code: &str| {
        let path = format!("/api/v1/decisions?tenant_id=acme&reason_code={code}");
        app.owner().get(&path).await
    };
    for code in ["policy_denied", "x_no_policy_has_it"] {
        let (status, found) = list(code).await;
        assert_eq!((status, &found["decisions"]), (200, &json!([])), "{code}: {found:#}");
    }
    let (status, refused) = list("policy_denid").await;
    assert_eq!(status, 400, "{refused:#}");
    assert_eq!(refused["details"][0]["field"], "reason_code");
    assert!(refused["message"].as_str().unwrap().contains("did you mean `policy_denied`?"));
    let export = "/api/v1/decisions:export?tenant_id=acme&reason_code=Policy_Denied";
    assert_eq!(app.owner().get(export).await.0, 400);
}
