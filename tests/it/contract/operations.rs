//! Operation ids become names of functions in generated clients: no id changes or disappears.
//! `AUTHORITY_UPDATE=1 cargo test --workspace --test it contract::operations` adds new ones to
//! `openapi/operations.txt`.

use std::{collections::BTreeMap, env, fs};

use serde_json::Value;

use super::document;
use crate::support::TestApp;

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

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operation_ids_are_stable() {
    let app = TestApp::start().await;
    let served = listed(&document(&app).await);
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
