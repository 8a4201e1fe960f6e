//! Operation ids become names of functions in generated clients: no id changes or disappears.
//! `AUTHORITY_UPDATE=1 cargo test --workspace --test it contract::operations` adds new ones to
//! `openapi/operations.txt`.

use std::{collections::BTreeMap, env, fs};

use serde_json::{Value, json};

use super::document;
use crate::support::{Plain, TestApp};

const LIST: &str = "openapi/operations.txt";

/// Returns the line `id METHOD /path` of each operation.
fn listed(document: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let place = format!("{} {path}", method.to_uppercase());
            assert_eq!(all.insert(id.clone(), place), None, "{id} is not unique");
        }
    }
    all
}

/// Returns the paths of null members, outside of examples, enums and defaults.
fn nulls(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Object(members) => {
            let written = ["example", "examples", "enum", "const", "default"];
            for (name, value) in
                members.iter().filter(|(name, _)| !written.contains(&name.as_str()))
            {
                nulls(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| nulls(item, path, found)),
        _ => {}
    }
}

#[test]
fn the_document_has_no_null_in_place_of_an_absent_part() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let mut found = Vec::new();
    nulls(&document, "", &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// Only the twins of an operation on other surfaces have the same summary.
#[test]
fn a_summary_is_short_and_tells_operations_apart() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let mut seen = BTreeMap::new();
    let items = document["paths"].as_object().unwrap().values();
    for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        let method = id.trim_start_matches("app_").trim_start_matches("gateway_");
        let summary = operation["summary"].as_str().unwrap();
        assert!(summary.len() <= 80, "{id}: {summary}");
        let other = seen.insert(summary, method).unwrap_or(method);
        assert_eq!(other, method, "both have the summary `{summary}`");
    }
    assert!(seen.len() > 200, "{}", seen.len());
}

/// A list without `count` is described as such, and refuses `count`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_list_has_a_count_or_says_that_it_has_none() {
    let app = TestApp::shared().await;
    let document = document(app).await;
    let mut without = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let list = &item["get"];
        let parameters = list["parameters"].as_array().into_iter().flatten();
        let names: Vec<_> = parameters.filter_map(|one| one["name"].as_str()).collect();
        let pages = names.contains(&"page_token") || path.ends_with("/events");
        if !pages || !names.contains(&"limit") {
            continue;
        }
        let has_count = names.contains(&"count");
        let described = list["description"].as_str().unwrap_or_default();
        assert_eq!(described.contains("has no `count`"), !has_count, "{path}: {described}");
        if path.starts_with("/api/v1/")
            && !path.contains("/app/")
            && !path.contains('{')
            && !has_count
        {
            without += 1;
            let (status, answer) = app.owner().get(&format!("{path}?count=true")).await;
            assert_eq!((status, answer["details"][0]["field"].text()), (400, "count"), "{path}");
        }
    }
    assert!(without >= 5, "{without}");
}

/// The owner has no tenant. If only the owner may call an operation, the tenant is a required
/// parameter unless the call can succeed without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_is_always_needed_is_a_required_parameter() {
    let app = TestApp::shared().await;
    let document = document(app).await;
    let mut required = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let operation = &item["get"];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let tenant = parameters.filter(|one| one["name"] == "tenant_id" && one["in"] == "query");
        for parameter in tenant {
            if operation["security"] != json!([{"owner": []}]) {
                assert_eq!(parameter["required"], false, "{path}");
                continue;
            }
            let mut filled = path.replace("{id}", "svc:endpoint:1");
            if path.ends_with("/stop-impact") {
                // The principal determines the tenant.
                filled += "?subject_id=svc:agent:acme:invoice-bot";
            }
            let (status, answer) = app.owner().get(&filled).await;
            let missing = status == 400 && answer["details"][0]["field"] == "tenant_id";
            assert_eq!(parameter["required"], json!(missing), "{path}: {status} {answer:#}");
            if missing {
                required.push(path.clone());
            }
        }
    }
    let path = "/api/v1/events".to_owned();
    assert!(required.contains(&path), "{required:?}");
}

/// If a parameter of the query needs another one, its description names that parameter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_names_the_parameter_that_it_needs() {
    let app = TestApp::shared().await;
    let whole = document(app).await;
    let mut needed = BTreeMap::new();
    for (path, item) in whole["paths"].as_object().unwrap() {
        let admin = path.starts_with("/api/v1/") && !path.contains("/app/");
        // The description of an operation names the parameters that it always needs.
        if !admin || path.contains(['{', ':']) || app.owner().get(path).await.0 == 400 {
            continue;
        }
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
        let query = parameters.filter(|one| one["in"] == "query" && one["required"] == false);
        for parameter in query {
            let name = parameter["name"].as_str().unwrap();
            let (_, answer) =
                app.owner().get(&format!("{path}?{name}={}", value(parameter, &whole))).await;
            let problem = answer["details"][0]["problem"].as_str().unwrap_or_default();
            let other = answer["details"][0]["field"].as_str().unwrap_or_default();
            if problem.starts_with("is required") && other != name {
                let described = parameter["description"].as_str().unwrap_or_default();
                assert!(described.contains(&format!("`{other}`")), "{path}?{name}: {answer:#}");
                needed.insert(format!("{path}?{name}"), other.to_owned());
            }
        }
    }
    assert_eq!(needed["/api/v1/decisions?subject"], "tenant_id", "{needed:#?}");
}

/// Returns a value that the parameter accepts.
fn value<'a>(parameter: &'a Value, document: &'a Value) -> &'a str {
    let schema = &parameter["schema"];
    let named = schema["$ref"].as_str().and_then(|name| document.pointer(&name[1..]));
    let schema = named.unwrap_or(schema);
    let time = !schema["anyOf"].is_null() || schema["format"] == "date-time";
    match schema["type"].as_str() {
        _ if time => "-1h",
        Some("integer") => "1",
        Some("boolean") => "true",
        _ => schema["enum"][0].as_str().unwrap_or("x"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operation_ids_are_stable() {
    let app = TestApp::shared().await;
    let served = listed(&document(app).await);
    let kept = fs::read_to_string(LIST).unwrap_or_default();
    let kept: BTreeMap<_, _> = kept.lines().filter_map(|line| line.split_once(' ')).collect();
    let gone: Vec<_> = kept
        .iter()
        .filter(|(id, place)| served.get(**id).map(String::as_str) != Some(**place))
        .collect();
    assert!(gone.is_empty(), "operations that changed or went: {gone:#?}");
    if env::var_os("AUTHORITY_UPDATE").is_some() {
        let lines = served.iter().map(|(id, place)| format!("{id} {place}\n"));
        fs::write(LIST, lines.collect::<String>()).unwrap();
        return;
    }
    let new: Vec<_> = served.keys().filter(|id| !kept.contains_key(id.as_str())).collect();
    assert!(new.is_empty(), "run with AUTHORITY_UPDATE=1 to add {new:?}");
}
