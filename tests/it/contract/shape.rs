//! The shape of the contract: what generators of clients make names, types and lists of.

use std::{fs, path::Path};

use regex::Regex;
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(agent_authority::app::OPENAPI).unwrap()
}

/// Calls `visit` with each object of the document, and its path.
fn each(value: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            visit(path, value);
            for (name, member) in members {
                each(member, &format!("{path}/{name}"), visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, path, visit)),
        _ => {}
    }
}

/// Calls `visit` with each operation and its place.
fn operations(document: &Value, visit: &mut dyn FnMut(String, &Value)) {
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            visit(format!("{method} {path}"), operation);
        }
    }
}

/// Some generators refuse an answer if a boolean has only one permitted value.
#[test]
fn ok_is_a_boolean_with_any_value() {
    let (mut found, mut wrong) = (0, Vec::new());
    each(&document(), "", &mut |path, value| {
        let ok = &value["properties"]["ok"];
        found += usize::from(ok.is_object());
        if ok.is_object() && (ok["type"] != "boolean" || !ok["const"].is_null()) {
            wrong.push(path.to_owned());
        }
    });
    assert!(found > 20 && wrong.is_empty(), "{found} {wrong:#?}");
}

/// Generated clients have a type for each named schema.
#[test]
fn answers_and_sets_of_words_have_names() {
    let document = document();
    let (mut named, mut inline) = (0, Vec::new());
    operations(&document, &mut |place, operation| {
        let answers = operation["responses"].as_object().unwrap().iter();
        for (_, answer) in answers.filter(|(status, _)| status.starts_with('2')) {
            for kind in ["application/json", "application/x-ndjson", "text/event-stream"] {
                let schema = &answer["content"][kind]["schema"];
                let is_named = schema["$ref"].is_string() || schema["oneOf"].is_array();
                if is_named {
                    named += 1;
                } else if !schema.is_null() {
                    inline.push(format!("{place} {kind}"));
                }
            }
        }
    });
    assert!(named > 300 && inline.is_empty(), "{named} {inline:#?}");
    let mut words = Vec::new();
    each(&document["paths"], "", &mut |path, value| {
        let all = value["enum"].as_array().map_or(0, Vec::len);
        if value["type"] == "string" && all > 1 && !path.contains("/example") {
            words.push(path.to_owned());
        }
    });
    assert!(words.is_empty(), "sets of words without a name: {words:#?}");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let pages = schemas.iter().filter(|(_, schema)| {
        let members = &schema["properties"];
        members["next_page_token"].is_object() && members["ok"].is_object()
    });
    let other: Vec<_> = pages.map(|(name, _)| name).filter(|name| !name.contains("Page")).collect();
    assert!(other.is_empty(), "{other:?}");
}

/// A verdict that may be null needs a check in every client.
#[test]
fn what_is_always_there_is_never_null() {
    let document = document();
    let schema = |name: &str, member: &str| {
        let schema = &document["components"]["schemas"][name]["properties"][member];
        assert!(schema.is_object(), "{name}.{member}");
        schema.to_string()
    };
    for (name, member) in [
        ("AuthorizeResponse", "decision"),
        ("EvaluateDecisionResponse", "decision"),
        ("Principal", "created_at"),
        ("ApiKey", "created_at"),
        ("Approval", "state"),
    ] {
        assert!(!schema(name, member).contains("null"), "{name}.{member}");
    }
    for (name, member) in [("AuthorizeResponse", "valid_until"), ("ApiKey", "expires_at")] {
        assert!(schema(name, member).contains("null"), "{name}.{member}");
    }
}

/// Generators take the first media type, and can read server-sent events but no lines.
#[test]
fn a_stream_offers_server_sent_events_first() {
    let (mut streams, mut wrong) = (0, Vec::new());
    operations(&document(), &mut |place, operation| {
        let content = operation["responses"]["200"]["content"].as_object();
        let kinds: Vec<_> = content.into_iter().flatten().map(|(kind, _)| kind.as_str()).collect();
        if kinds.contains(&"application/x-ndjson") {
            streams += 1;
            if kinds[0] != "text/event-stream" {
                wrong.push(place);
            }
        }
    });
    assert!(streams > 20 && wrong.is_empty(), "{streams} {wrong:#?}");
}

#[test]
fn a_delivery_is_an_event_of_any_type() {
    let document = document();
    let delivery = document["webhooks"]["event"]["$ref"].as_str().unwrap();
    let delivery = document.pointer(&delivery[1..]).unwrap();
    let body = &delivery["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["$ref"], "#/components/schemas/Event");
    let event = &document["components"]["schemas"]["Event"];
    assert_eq!(event["discriminator"]["propertyName"], "event_type");
    let types = event["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(types.len(), event["oneOf"].as_array().unwrap().len());
    for (name, schema) in types {
        let schema = document.pointer(&schema.as_str().unwrap()[1..]).unwrap();
        let kind = &schema["properties"]["event_type"];
        assert!(kind["const"] == json!(name) || kind["enum"] == json!([name]), "{name}: {kind}");
    }
}

#[test]
fn the_tags_begin_with_decisions() {
    let document = document();
    let tags = document["tags"].as_array().unwrap().iter();
    let tags: Vec<_> = tags.map(|tag| tag["name"].as_str().unwrap()).collect();
    let first =
        ["Runtime", "Decision", "Approval", "StopSignal", "Quarantine", "Evidence", "Event"];
    assert_eq!(tags[..first.len()], first);
}

#[test]
fn other_documents_and_refusals_are_declared() {
    let document = document();
    let answers = |place: &str, method: &str| document["paths"][place][method]["responses"].clone();
    let content = answers("/schemas/{name}", "get")["200"]["content"].clone();
    let schema = content["application/schema+json"]["schema"]["$ref"].as_str().unwrap();
    assert_eq!(document.pointer(&schema[1..]).unwrap()["type"], "object");
    let mut undeclared = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let method = match path.as_str() {
            _ if path.ends_with("/personal-data:export") => "post",
            _ if path.ends_with("/events") || path.ends_with("/events:stream") => "get",
            _ => continue,
        };
        if item[method]["responses"]["404"].is_null() {
            undeclared.push(path);
        }
    }
    assert!(undeclared.is_empty(), "{undeclared:?}");
}

/// Clients over gRPC have no enums: the comment of a field lists its words. Go needs a package.
#[test]
fn the_protos_list_words_and_name_a_package() {
    let words = Regex::new(r"in: ?\[([^\]]*)\]").unwrap();
    let word = Regex::new(r#""([^"]+)""#).unwrap();
    let (mut found, mut wrong) = (0, Vec::new());
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/authority");
    let packages = packages.read_dir().unwrap().map(|package| package.unwrap().path().join("v1"));
    for file in packages.flat_map(|package| package.read_dir().unwrap()) {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if !text.contains("option go_package = ") {
            wrong.push(format!("{}: no go_package", path.display()));
        }
        for set in words.captures_iter(&text) {
            let all: Vec<_> = word.captures_iter(&set[1]).map(|one| one[1].to_owned()).collect();
            let before: Vec<_> = text[..set.get(0).unwrap().start()].lines().rev().collect();
            let is_comment = |line: &&&str| line.trim_start().starts_with("//");
            let comment = before.iter().skip_while(|line| !is_comment(line)).take_while(is_comment);
            let comment: String = comment.copied().collect();
            found += 1;
            if all.len() > 1 && all.iter().any(|one| !comment.contains(&format!("`{one}`"))) {
                wrong.push(format!("{}: {all:?}", path.display()));
            }
        }
    }
    assert!(found > 100 && wrong.is_empty(), "{found} {wrong:#?}");
}
