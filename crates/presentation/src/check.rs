//! Checks a tool's presentation on write: its paths against the schema, and its title.

use std::{collections::HashSet, sync::LazyLock};

use authority_model::{
    proto::registry::{PresentedList, Tool, ToolPresentation},
    validate::Violations,
};
use serde_json::{Map, Value};

use crate::{
    path::{ALWAYS, is_plain},
    schema::resolved,
    title::parts,
};

/// The schema that accepts everything.
static ANYTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Adds each fault of a tool's presentation, with its place and the remedy.
pub fn check(tool: &Tool, found: &mut Violations) {
    let Some(presentation) = &tool.presentation else { return };
    let schema = Schema(tool.input_schema.as_ref().map(|schema| &schema.0));
    let mut named = HashSet::new();
    for (index, fact) in presentation.facts.iter().enumerate() {
        let place = format!("presentation.facts[{index}].path");
        schema.check(&fact.path, Shape::Value, &place, found);
        if fact.block == Some(true) {
            schema.check_text(&fact.path, &format!("presentation.facts[{index}].block"), found);
        }
        if !named.insert(fact.path.as_str()) {
            found.add(&place, format!("`{}` is shown already; name each field once", fact.path));
        }
    }
    for (index, list) in presentation.lists.iter().enumerate() {
        let place = format!("presentation.lists[{index}]");
        if !named.insert(list.path.as_str()) {
            let text = format!("`{}` is shown already; name each field once", list.path);
            found.add(&format!("{place}.path"), text);
        }
        check_list(&schema, list, &place, found);
    }
    for (index, path) in presentation.agent_words.iter().enumerate() {
        let place = format!("presentation.agent_words[{index}]");
        schema.check(path, Shape::Value, &place, found);
        if !named.insert(path) {
            found.add(&place, format!("`{path}` is shown already; name each field once"));
        }
    }
    check_titles(&schema, presentation, found);
}

fn check_list(schema: &Schema<'_>, list: &PresentedList, place: &str, found: &mut Violations) {
    let is_known = schema.check(&list.path, Shape::List, &format!("{place}.path"), found);
    for (column, name) in list.columns.iter().enumerate().filter(|_| is_known) {
        schema.check_column(&list.path, name, &format!("{place}.columns[{column}]"), found);
    }
    let Some(total) = &list.total else { return };
    let place = format!("{place}.total");
    if !list.columns.contains(total) {
        found.add(&place, format!("`{total}` is not in `columns`; name a column"));
    } else if is_known {
        schema.check_sum(&list.path, total, &place, found);
    }
}

/// Checks the titles of all languages. Each language has its titles once.
fn check_titles(schema: &Schema<'_>, presentation: &ToolPresentation, found: &mut Violations) {
    let mut check = |title: &str, place: &str| {
        check_title(schema, title, &presentation.agent_words, place, found);
    };
    check(&presentation.title, "presentation.title");
    if let Some(title) = &presentation.decline_title {
        check(title, "presentation.decline_title");
    }
    for (index, own) in presentation.translations.iter().enumerate() {
        let place = format!("presentation.translations[{index}]");
        check(&own.title, &format!("{place}.title"));
        if let Some(title) = &own.decline_title {
            check(title, &format!("{place}.decline_title"));
        }
    }
    let mut languages: HashSet<String> =
        presentation.language.iter().map(|language| language.to_lowercase()).collect();
    for (index, own) in presentation.translations.iter().enumerate() {
        if !languages.insert(own.language.to_lowercase()) {
            let place = format!("presentation.translations[{index}].language");
            found.add(
                &place,
                format!("`{}` has its titles already; name each language once", own.language),
            );
        }
    }
}

fn check_title(
    schema: &Schema<'_>,
    title: &str,
    agent_words: &[String],
    place: &str,
    found: &mut Violations,
) {
    let Some(parts) = parts(title) else {
        let remedy = "a brace is not closed or not opened; write a field's path as `{path}`";
        found.add(place, remedy);
        return;
    };
    for path in parts.into_iter().filter_map(|part| part.path) {
        if agent_words.iter().any(|words| words == path) {
            found.add(place, format!("`{path}` is in `agent_words`; a title cannot contain it"));
        }
        schema.check(path, Shape::Value, place, found);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Value,
    List,
}

struct Schema<'s>(Option<&'s Map<String, Value>>);

impl Schema<'_> {
    /// Checks one path. Returns whether it can be used.
    fn check(&self, path: &str, shape: Shape, place: &str, found: &mut Violations) -> bool {
        if !path.split('.').all(is_plain) {
            let remedy = "must be names of letters, digits, `_` and `-`, with dots between them";
            found.add(place, remedy);
            return false;
        }
        let Some(root) = self.0.filter(|root| !root.is_empty()) else { return true };
        if ALWAYS.contains(&path) && shape == Shape::Value {
            return true;
        }
        let Some(at) = find(root, root, path) else {
            found.add(place, unknown(path, "a field of `input_schema`"));
            return false;
        };
        let kind = at.get("type").and_then(Value::as_str);
        let of_objects = is_of_objects(root, at);
        let problem = match (shape, kind) {
            (Shape::Value, Some("object")) => "is an object; use the path of a field in it",
            (Shape::Value, _) if of_objects => "is a list of objects; declare it in `lists`",
            (Shape::List, Some(kind)) if kind != "array" => "is not a list; declare it in `facts`",
            _ => return true,
        };
        found.add(place, format!("`{path}` {problem}"));
        false
    }

    fn check_column(&self, list: &str, name: &str, place: &str, found: &mut Violations) {
        if !name.split('.').all(is_plain) {
            let remedy = "must be names of letters, digits, `_` and `-`, with dots between them";
            found.add(place, remedy);
            return;
        }
        let Some(root) = self.0.filter(|root| !root.is_empty()) else { return };
        let items = find(root, root, list).and_then(|list| list.get("items")?.as_object());
        if items.is_some_and(|items| find(root, items, name).is_none()) {
            found.add(place, unknown(name, &format!("a field of the items of `{list}`")));
        }
    }

    /// Checks that a field of the items of a list can be a number.
    fn check_sum(&self, list: &str, name: &str, place: &str, found: &mut Violations) {
        let Some(root) = self.0 else { return };
        let items = find(root, root, list).and_then(|list| list.get("items")?.as_object());
        let of = items.and_then(|items| find(root, items, name));
        if !of.is_none_or(|of| is_kind(of, &["number", "integer"])) {
            found.add(place, format!("`{name}` is not a number; leave out `total`"));
        }
    }

    /// Checks that a field can be a text.
    fn check_text(&self, path: &str, place: &str, found: &mut Violations) {
        let of = self.0.and_then(|root| find(root, root, path));
        if !of.is_none_or(|of| is_kind(of, &["string"])) {
            found.add(place, format!("`{path}` is not a text; leave out `block`"));
        }
    }
}

/// Whether a schema permits a type of the list.
fn is_kind(schema: &Map<String, Value>, kinds: &[&str]) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kinds.contains(&kind.as_str()),
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).any(|kind| kinds.contains(&kind))
        }
        _ => true,
    }
}

fn unknown(path: &str, of: &str) -> String {
    format!("`{path}` is not {of}; correct the path, or add the field to the schema")
}

fn is_of_objects(root: &Map<String, Value>, list: &Map<String, Value>) -> bool {
    let items = list.get("items").and_then(Value::as_object);
    let is_object =
        |schema: &Map<String, Value>| schema.get("type").and_then(Value::as_str) == Some("object");
    items.is_some_and(|items| resolved(root, items).any(is_object))
}

/// The schema of the field at a path.
fn find<'s>(
    root: &'s Map<String, Value>,
    of: &'s Map<String, Value>,
    path: &str,
) -> Option<&'s Map<String, Value>> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    resolved(root, of).find_map(|schema| {
        let field = schema.get("properties")?.get(name)?;
        match (field.as_object(), rest) {
            (Some(field), Some(rest)) => find(root, field, rest),
            (Some(field), None) => resolved(root, field).last(),
            // `true` accepts everything.
            (None, None) if field == &Value::Bool(true) => Some(&*ANYTHING),
            (None, _) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use authority_model::{
        proto::registry::{PresentedFact, PresentedList, PresentedTitle, ToolPresentation},
        wire::Json,
    };
    use serde_json::json;

    use super::*;

    fn faults(presentation: ToolPresentation, schema: Option<Value>) -> Vec<(String, String)> {
        let schema = schema.and_then(|schema| Some(Json(schema.as_object()?.clone())));
        let tool =
            Tool { presentation: Some(presentation), input_schema: schema, ..Tool::default() };
        let mut found = Violations::default();
        check(&tool, &mut found);
        found.list.iter().map(|fault| (fault.field.clone(), fault.problem.clone())).collect()
    }

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["payee"],
            "$defs": {"item": {"type": "object", "properties": {
                "text": {}, "net": {"type": "number"}, "name": {"type": ["string", "null"]}}}},
            "properties": {
                "payee": {"type": "string"}, "note": {"type": "string"}, "any": true,
                "count": {"type": "integer"},
                "to": {"type": "object", "properties": {"iban": {"type": "string"}}},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        })
    }

    fn fact(path: &str) -> PresentedFact {
        PresentedFact { path: path.to_owned(), label: "X".to_owned(), ..PresentedFact::default() }
    }

    fn list(path: &str, columns: &[&str]) -> PresentedList {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        PresentedList { path: path.to_owned(), columns, total: None }
    }

    fn title(language: &str, title: &str) -> PresentedTitle {
        PresentedTitle {
            language: language.to_owned(),
            title: title.to_owned(),
            decline_title: Some(title.to_owned()),
        }
    }

    #[test]
    fn paths_of_the_schema_are_accepted() {
        let presentation = ToolPresentation {
            title: "Pay {amount} to {payee} ({to.iban})".to_owned(),
            facts: ["payee", "to.iban", "tags", "any", "amount"].map(fact).to_vec(),
            lists: vec![PresentedList {
                total: Some("net".to_owned()),
                ..list("lines", &["text", "net"])
            }],
            agent_words: vec!["note".to_owned()],
            decline_title: Some("Payment of {amount}".to_owned()),
            language: Some("en".to_owned()),
            translations: vec![title("de", "{amount} zahlen"), title("de-CH", "{payee}")],
        };
        assert!(faults(presentation.clone(), Some(schema())).is_empty());
        // Without a schema, any path is accepted.
        assert!(faults(presentation, None).is_empty());
    }

    #[test]
    fn a_fault_names_its_field_and_the_remedy() {
        let titled = |title: &str| ToolPresentation {
            title: title.to_owned(),
            ..ToolPresentation::default()
        };
        let of_fact = |path: &str| ToolPresentation { facts: vec![fact(path)], ..titled("Pay") };
        let of_list = |path: &str, columns: &[&str]| ToolPresentation {
            lists: vec![list(path, columns)],
            ..titled("Pay")
        };
        let words = |path: &str, title: &str| ToolPresentation {
            agent_words: vec![path.to_owned()],
            ..titled(title)
        };
        let summed = |columns: &[&str], total: &str| ToolPresentation {
            lists: vec![PresentedList { total: Some(total.to_owned()), ..list("lines", columns) }],
            ..titled("Pay")
        };
        let block = |path: &str| ToolPresentation {
            facts: vec![PresentedFact { block: Some(true), ..fact(path) }],
            ..titled("Pay")
        };
        let declining = ToolPresentation {
            decline_title: Some("Payment to {payer}".to_owned()),
            ..titled("Pay")
        };
        let translated = |all: &[PresentedTitle]| ToolPresentation {
            language: Some("en".to_owned()),
            translations: all.to_vec(),
            ..titled("Pay")
        };
        for (presentation, field, problem) in [
            (summed(&["net"], "text"), "lists[0].total", "is not in `columns`"),
            (summed(&["name"], "name"), "lists[0].total", "`name` is not a number"),
            (block("count"), "facts[0].block", "`count` is not a text"),
            (declining, "decline_title", "`payer` is not a field of `input_schema`"),
            (translated(&[title("EN", "Pay")]), "translations[0].language", "titles already"),
            (
                translated(&[title("de", "Zahlen"), title("De", "Zahlen")]),
                "translations[1].language",
                "name each language once",
            ),
            (of_fact("payer"), "facts[0].path", "`payer` is not a field of `input_schema`"),
            (of_fact("to.bic"), "facts[0].path", "`to.bic` is not a field"),
            (of_fact("to"), "facts[0].path", "is an object; use the path of a field in it"),
            (of_fact("lines"), "facts[0].path", "declare it in `lists`"),
            (of_fact("a..b"), "facts[0].path", "with dots between them"),
            (of_list("payee", &["x"]), "lists[0].path", "is not a list; declare it in `facts`"),
            (of_list("lines", &["gross"]), "lists[0].columns[0]", "of the items of `lines`"),
            (words("remark", "Pay"), "agent_words[0]", "`remark` is not a field"),
            (words("note", "Pay {note}"), "title", "a title cannot contain it"),
            (titled("Pay {payee"), "title", "write a field's path as `{path}`"),
            (titled("Pay payee}"), "title", "write a field's path as `{path}`"),
            (titled("Pay {}"), "title", "must be names"),
            (titled("Pay {payer}"), "title", "`payer` is not a field of `input_schema`"),
        ] {
            let faults = faults(presentation, Some(schema()));
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].0, format!("presentation.{field}"));
            assert!(faults[0].1.contains(problem), "{faults:?}");
        }
        let translated = faults(translated(&[title("de", "{payer} {")]), Some(schema()));
        let places: Vec<_> = translated.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(
            places,
            ["presentation.translations[0].title", "presentation.translations[0].decline_title"]
        );
        let twice = ToolPresentation { facts: vec![fact("payee"), fact("payee")], ..titled("Pay") };
        assert!(faults(twice, Some(schema()))[0].1.contains("name each field once"));
    }
}
