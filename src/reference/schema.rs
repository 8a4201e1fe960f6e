//! A JSON Schema as rows of a table: a row for each member, with nested members below it.

use serde_json::Value;

use super::prose::{Piece, pieces};

/// The most levels of nested members. Members of deeper levels are not shown: they have their own
/// page, or can have any form.
const DEEPEST: usize = 6;
const SCHEMAS: &str = "#/components/schemas/";

pub(super) struct Row {
    pub(super) level: usize,
    pub(super) name: String,
    pub(super) kind: String,
    /// The schema of the value, if it has its own page.
    pub(super) link: Option<String>,
    pub(super) required: bool,
    pub(super) about: Vec<Piece>,
}

impl Row {
    /// A parameter of the path, the query or a header.
    pub(super) fn of_parameter(parameter: &Value) -> Self {
        let text = |member: &str| parameter[member].as_str().unwrap_or_default();
        Self {
            level: 0,
            name: text("name").to_owned(),
            kind: format!("{}, {}", text("in"), kind(&parameter["schema"])),
            link: None,
            required: parameter["required"] == true,
            about: pieces(text("description")),
        }
    }
}

/// Returns a row for each member of an object, or one row for another value.
pub(super) fn rows(schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let (inner, link) = inner(schema);
    match inner["properties"].as_object() {
        Some(_) => members(&mut rows, inner, 0),
        None => rows.push(Row {
            level: 0,
            name: String::new(),
            kind: kind(schema),
            link: link.map(str::to_owned),
            required: false,
            about: Vec::new(),
        }),
    }
    rows
}

fn members(rows: &mut Vec<Row>, schema: &Value, level: usize) {
    let required = schema["required"].as_array();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let (inner, link) = inner(member);
        rows.push(Row {
            level,
            name: name.clone(),
            kind: kind(member),
            link: link.map(str::to_owned),
            required: required.is_some_and(|names| names.iter().any(|known| known == name)),
            about: pieces(member["description"].as_str().unwrap_or_default()),
        });
        if level < DEEPEST {
            members(rows, inner, level + 1);
        }
    }
}

/// Returns the schema of a value that may be null or in a list, and the name of a referenced
/// schema.
fn inner(schema: &Value) -> (&Value, Option<&str>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.strip_prefix(SCHEMAS)) {
        return (&Value::Null, Some(name));
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|of| schema[*of].as_array());
    let chosen = choices.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    match chosen.or(schema.get("items")) {
        Some(deeper) => inner(deeper),
        None => (schema, None),
    }
}

/// The type in a few words, with its bounds.
fn kind(schema: &Value) -> String {
    if let Some(items) = schema.get("items") {
        return bounded(format!("list of {}", kind(items)), schema);
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|of| schema[*of].as_array());
    if let Some(choices) = choices {
        let kinds: Vec<_> = choices.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.strip_prefix(SCHEMAS)) {
        return name.to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap_or("null")).collect();
        return format!("one of {}", words.join(", "));
    }
    let kind = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(all) => {
            let all: Vec<_> = all.iter().filter_map(Value::as_str).collect();
            all.join(" or ")
        }
        _ => "any value".to_owned(),
    };
    bounded(kind, schema)
}

fn bounded(mut kind: String, schema: &Value) -> String {
    if let Some(format) = schema["format"].as_str().filter(|format| !format.starts_with("int")) {
        kind = format!("{kind}, {format}");
    }
    for (bound, before, after) in [
        ("minimum", "from ", ""),
        ("maximum", "to ", ""),
        ("maxLength", "up to ", " characters"),
        ("maxItems", "up to ", " items"),
        ("pattern", "by the pattern ", ""),
    ] {
        match &schema[bound] {
            Value::Null => {}
            Value::String(text) => kind = format!("{kind}, {before}{text}{after}"),
            number => kind = format!("{kind}, {before}{number}{after}"),
        }
    }
    kind
}
