//! Every `filter` in an example is valid: readers can copy it.

use std::fs;

use agent_authority::app::OPENAPI;
use authority_webhook::{
    audit_filter::AuditFilter,
    event_types::{EventType, Selection},
    filter::Filter,
};
use serde_json::Value;

/// Returns the objects of a document that have a filter.
fn objects(document: &Value) -> Vec<&Value> {
    let inner: Vec<&Value> = match document {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    // In a schema, `filter` describes the field and is not itself a filter.
    let has = document.get("filter").is_some_and(|filter| filter["description"].is_null());
    has.then_some(document).into_iter().chain(inner.into_iter().flat_map(objects)).collect()
}

/// Parses the filter of an endpoint, with its `event_types`, or of an audit stream.
fn parse(object: &Value) -> Result<(), String> {
    match &object["filter"] {
        Value::String(text) => {
            let patterns = object["event_types"].as_array().into_iter().flatten();
            let patterns: Vec<_> =
                patterns.map(|pattern| pattern.as_str().unwrap().to_owned()).collect();
            let selection = Selection::of_record(&patterns).map_err(|why| why.to_string())?;
            let types: Vec<_> = selection.families().map(EventType::members).collect();
            Filter::parse(text, &types).map(drop).map_err(|why| why.to_string())
        }
        Value::Object(members) => {
            AuditFilter::read(Some(members)).map(drop).map_err(|why| why.to_string())
        }
        Value::Null => Ok(()),
        other => Err(format!("{other} is not a filter")),
    }
}

/// Returns the JSON objects that begin in this text. An object may continue on the next lines.
fn written(text: &str, comment: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(comment));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let starts = text.match_indices('{').map(|(at, _)| &text[at..]);
    let first = |rest: &str| serde_json::Deserializer::from_str(rest).into_iter().next()?.ok();
    starts.filter_map(first).collect()
}

#[test]
fn every_filter_of_an_example_is_one() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut found: Vec<Value> = objects(&document).into_iter().cloned().collect();
    assert!(found.len() > 3, "{found:#?}");
    for (file, comment) in [
        ("proto/authority/events/v1/webhook_endpoint.proto", "//"),
        ("proto/authority/registry/v1/audit_stream.proto", "//"),
        ("docs/guides/webhooks.md", ""),
        ("docs/reference/events.md", ""),
    ] {
        let text = fs::read_to_string(file).unwrap();
        let before = found.len();
        found.extend(written(&text, comment).iter().flat_map(objects).cloned());
        assert!(found.len() > before, "{file} has no filter");
    }
    for object in found {
        parse(&object).unwrap_or_else(|why| panic!("{why}: {object:#}"));
    }
}
