//! Gives each set of enum words a named schema. Generated clients then have one type for the set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

type Words = Vec<String>;

/// The places at which each set of words occurs: message and field.
#[derive(Default)]
struct EnumPlaces(BTreeMap<Words, BTreeSet<(String, String)>>);

/// Moves the inline enums of a document's schemas and parameters to components.
pub(super) fn name(document: &mut Value) {
    let mut found = EnumPlaces::default();
    each(document, &mut |message, field, schema| {
        if let Some((words, _)) = words(schema) {
            let place = (base(message).to_owned(), field.to_owned());
            found.0.entry(words).or_default().insert(place);
        }
    });
    let taken = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let names = found.names(&taken);
    each(document, &mut |_, _, schema| {
        let Some((words, nullable)) = words(schema) else { return };
        let Some(name) = names.get(&words) else { return };
        let Some(schema) = schema.as_object_mut() else { return };
        schema.remove("type");
        schema.remove("enum");
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        if nullable {
            schema.insert("anyOf".to_owned(), json!([reference, {"type": "null"}]));
        } else if let Value::Object(reference) = reference {
            schema.extend(reference);
        }
    });
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for (words, name) in names {
            schemas.insert(name, json!({"type": "string", "enum": words}));
        }
        schemas.sort_keys();
    }
}

impl EnumPlaces {
    /// Returns a schema name for each set of words.
    ///
    /// If one field name uses the set in all messages, and uses no other set, the schema has the
    /// field's name. Otherwise its name is the first message's name followed by its field's name.
    fn names(&self, taken: &Map<String, Value>) -> BTreeMap<Words, String> {
        let mut sets = BTreeMap::<&str, usize>::new();
        for places in self.0.values() {
            let fields: BTreeSet<&str> = places.iter().map(|(_, field)| field.as_str()).collect();
            for field in fields {
                *sets.entry(field).or_default() += 1;
            }
        }
        let mut names = BTreeMap::new();
        let mut given: BTreeSet<String> = taken.keys().cloned().collect();
        for (words, places) in &self.0 {
            let fields: BTreeSet<&str> = places.iter().map(|(_, field)| field.as_str()).collect();
            let Some((message, field)) = places.first() else { continue };
            let alone = fields.len() == 1 && sets.get(field.as_str()) == Some(&1);
            let mut name = if alone { camel(field) } else { camel(message) + &camel(field) };
            while given.contains(&name) {
                name.push_str(if words.contains(&String::new()) { "OrEmpty" } else { "Word" });
            }
            given.insert(name.clone());
            names.insert(words.clone(), name);
        }
        names
    }
}

/// Returns the words of an inline enum of at least two texts, and whether it may be null.
fn words(schema: &Value) -> Option<(Words, bool)> {
    let all = schema.get("enum")?.as_array()?;
    let nullable = all.contains(&Value::Null);
    let words: Words = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let texts = all.len() - usize::from(nullable);
    (texts >= 2 && words.len() == texts).then_some((words, nullable))
}

/// Visits the schema of each field of a component, and of each parameter.
fn each(document: &mut Value, visit: &mut dyn FnMut(&str, &str, &mut Value)) {
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for (name, schema) in schemas {
            members(name, schema, visit);
        }
    }
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations {
        let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
        // Indexing a `Value` that is borrowed mutably would insert an absent member as null.
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            if let Some(schema) = parameter.get_mut("schema") {
                value(&tag, &name, schema, visit);
            }
        }
        let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
        for body in responses.into_iter().flat_map(Map::values_mut) {
            media(&tag, body, visit);
        }
        if let Some(body) = operation.get_mut("requestBody") {
            media(&tag, body, visit);
        }
    }
}

/// Visits the fields of a body in each of its media types.
fn media(tag: &str, body: &mut Value, visit: &mut dyn FnMut(&str, &str, &mut Value)) {
    let content = body.get_mut("content").and_then(Value::as_object_mut);
    for media in content.into_iter().flat_map(Map::values_mut) {
        if let Some(schema) = media.get_mut("schema") {
            members(tag, schema, visit);
        }
    }
}

fn members(message: &str, schema: &mut Value, visit: &mut dyn FnMut(&str, &str, &mut Value)) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (field, schema) in properties {
        value(message, field, schema, visit);
    }
}

/// Visits the schema and the schema of its items.
fn value(
    message: &str,
    field: &str,
    schema: &mut Value,
    visit: &mut dyn FnMut(&str, &str, &mut Value),
) {
    visit(message, field, schema);
    if let Some(items) = schema.get_mut("items") {
        visit(message, field, items);
    }
}

/// Returns the name that the schemas of a message share in requests and responses.
fn base(name: &str) -> &str {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.strip_suffix("Input").or_else(|| name.strip_suffix("Patch")).unwrap_or(name)
}

/// Converts a name to camel case: `risk_tier` is `RiskTier`.
fn camel(name: &str) -> String {
    let words = name.split(['_', '.']).filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    });
    words.collect()
}
