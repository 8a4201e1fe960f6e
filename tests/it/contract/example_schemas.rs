//! Every example of the OpenAPI document matches its schema and shows a plausible value.

use std::collections::BTreeSet;

use jsonschema::{Registry, Validator};
use serde_json::{Map, Value, json};

const DOCUMENT: &str = "https://authority.example/openapi";

/// An example, the pointer to its schema in the document, and the member that it shows.
struct Example<'a> {
    schema: String,
    member: &'a str,
    shown: &'a Value,
}

#[derive(Default)]
struct Examples<'a>(Vec<Example<'a>>);

impl<'a> Examples<'a> {
    /// Finds the examples of a part of the document. `member` is the name of the member or
    /// parameter to which the part belongs.
    fn find(&mut self, at: &str, member: &'a str, part: &'a Value) {
        for (index, item) in part.as_array().into_iter().flatten().enumerate() {
            self.find(&format!("{at}/{index}"), member, item);
        }
        let Some(members) = part.as_object() else { return };
        let is_schema = !members.contains_key("schema");
        let member = if is_schema { member } else { part["name"].as_str().unwrap_or(member) };
        for (key, inner) in members {
            let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            match key.as_str() {
                "example" if !is_schema => {
                    self.0.push(Example { schema: format!("{at}/schema"), member, shown: inner });
                }
                "examples" if is_schema => {
                    for shown in inner.as_array().unwrap() {
                        self.0.push(Example { schema: at.to_owned(), member, shown });
                    }
                }
                "const" | "default" | "enum" => {}
                "properties" => {
                    for (name, schema) in inner.as_object().unwrap() {
                        self.find(&format!("{place}/{name}"), name, schema);
                    }
                }
                _ => self.find(&place, member, inner),
            }
        }
    }
}

/// Returns the texts that only repeat the words of their member's name.
fn repeated<'a>(member: &'a str, shown: &'a Value, found: &mut BTreeSet<(&'a str, &'a str)>) {
    match shown {
        Value::String(text) => {
            let words = member.replace('_', " ");
            let singular = words.strip_suffix('s').unwrap_or(&words);
            if [words.as_str(), singular, member].contains(&text.as_str()) {
                found.insert((member, text));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| repeated(member, item, found)),
        Value::Object(members) => {
            members.iter().for_each(|(name, inner)| repeated(name, inner, found));
        }
        _ => {}
    }
}

fn validator(registry: &Registry<'_>, schema: &str) -> Validator {
    let characters = [("{", "%7B"), ("}", "%7D"), (" ", "%20")];
    let pointer = characters.iter().fold(schema.to_owned(), |all, (one, by)| all.replace(one, by));
    let schema = json!({"$ref": format!("{DOCUMENT}#{pointer}")});
    let options = jsonschema::options().with_registry(registry);
    options.should_validate_formats(true).build(&schema).unwrap()
}

#[test]
fn every_example_matches_its_schema_and_shows_more_than_a_name() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let registry = Registry::new().add(DOCUMENT, document.clone()).unwrap().prepare().unwrap();
    let mut examples = Examples::default();
    for part in ["paths", "webhooks", "components"] {
        examples.find(&format!("/{part}"), "", &document[part]);
    }
    let examples = examples.0;
    let operations = document["paths"].as_object().unwrap().values().filter_map(Value::as_object);
    assert!(examples.len() > operations.map(Map::len).sum(), "{} examples", examples.len());
    let (mut wrong, mut words) = (Vec::new(), BTreeSet::new());
    for example in &examples {
        let validator = validator(&registry, &example.schema);
        wrong.extend(
            validator.iter_errors(example.shown).map(|why| format!("{}: {why}", example.schema)),
        );
        repeated(example.member, example.shown, &mut words);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(words.is_empty(), "{words:?}");
}

/// A page of a list is shown as its last page. A client written from the example thus tests for
/// null.
#[test]
fn a_list_is_shown_with_its_last_page() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.filter_map(Value::as_object).flat_map(Map::values);
    let shown = operations.filter_map(|operation| {
        operation["responses"]["200"]["content"]["application/json"]["example"]
            .get("next_page_token")
    });
    let tokens: Vec<_> = shown.collect();
    assert!(tokens.len() > 60 && tokens.iter().all(|token| token.is_null()), "{tokens:?}");
}
