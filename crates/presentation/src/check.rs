//! Checks a tool's presentation on write: its paths against the schema, and its title.

use std::{collections::HashSet, sync::LazyLock};

use authority_model::{proto::registry::Tool, validate::Violations};
use serde_json::{Map, Value};

use crate::{
    fill::parts,
    path::{ALWAYS, is_plain},
};

/// The schema that accepts everything.
static ANYTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// How many references and combinations within a schema are followed.
const DEEPEST: usize = 16;

/// Adds each fault of a tool's presentation, with its place and the remedy.
pub fn check(tool: &Tool, found: &mut Violations) {
    let Some(presentation) = &tool.presentation else { return };
    let schema = Schema(tool.input_schema.as_ref().map(|schema| &schema.0));
    let mut named = HashSet::new();
    for (index, fact) in presentation.facts.iter().enumerate() {
        let place = format!("presentation.facts[{index}].path");
        schema.check(&fact.path, Shape::Value, &place, found);
        if !named.insert(fact.path.as_str()) {
            found.add(&place, format!("`{}` is shown already; name each field once", fact.path));
        }
    }
    for (index, list) in presentation.lists.iter().enumerate() {
        let place = format!("presentation.lists[{index}]");
        let path = format!("{place}.path");
        let is_known = schema.check(&list.path, Shape::List, &path, found);
        if !named.insert(list.path.as_str()) {
            found.add(&path, format!("`{}` is shown already; name each field once", list.path));
        }
        for (column, name) in list.columns.iter().enumerate() {
            let place = format!("{place}.columns[{column}]");
            if is_known {
                schema.check_column(&list.path, name, &place, found);
            }
        }
    }
    for (index, path) in presentation.agent_words.iter().enumerate() {
        let place = format!("presentation.agent_words[{index}]");
        schema.check(path, Shape::Value, &place, found);
        if !named.insert(path) {
            found.add(&place, format!("`{path}` is shown already; name each field once"));
        }
    }
    let Some(parts) = parts(&presentation.title) else {
        let remedy = "a brace is not closed or not opened; write a field's path as `{path}`";
        found.add("presentation.title", remedy);
        return;
    };
    for path in parts.into_iter().filter_map(|part| part.path) {
        if presentation.agent_words.iter().any(|words| words == path) {
            let remedy = format!("`{path}` is in `agent_words`; the title cannot contain it");
            found.add("presentation.title", remedy);
        }
        schema.check(path, Shape::Value, "presentation.title", found);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Value,
    List,
}

struct Schema<'s>(Option<&'s Map<String, Value>>);

impl<'s> Schema<'s> {
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
            (Shape::Value, Some("object")) => "is an object; name one of its fields",
            (Shape::Value, _) if of_objects => "is a list of objects; name it in `lists`",
            (Shape::List, Some(kind)) if kind != "array" => "is no list; name it in `facts`",
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
}

fn unknown(path: &str, of: &str) -> String {
    format!("`{path}` is not {of}; correct the path, or add the field to the schema")
}

fn is_of_objects(root: &Map<String, Value>, list: &Map<String, Value>) -> bool {
    let items = list.get("items").and_then(Value::as_object);
    let is_object =
        |schema: &Map<String, Value>| schema.get("type").and_then(Value::as_str) == Some("object");
    items.is_some_and(|items| resolved(root, items, DEEPEST).any(is_object))
}

/// The schema of the field at a path.
fn find<'s>(
    root: &'s Map<String, Value>,
    of: &'s Map<String, Value>,
    path: &str,
) -> Option<&'s Map<String, Value>> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    resolved(root, of, DEEPEST).find_map(|schema| {
        let field = schema.get("properties")?.get(name)?;
        match (field.as_object(), rest) {
            (Some(field), Some(rest)) => find(root, field, rest),
            (Some(field), None) => resolved(root, field, DEEPEST).last(),
            // `true` accepts everything.
            (None, None) if field == &Value::Bool(true) => Some(&*ANYTHING),
            (None, _) => None,
        }
    })
}

/// A schema and the schemas that it refers to or combines, itself first.
pub(crate) fn resolved<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
    depth: usize,
) -> Box<dyn Iterator<Item = &'s Map<String, Value>> + 's> {
    let Some(depth) = depth.checked_sub(1) else { return Box::new(std::iter::empty()) };
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| at(root, target));
    let combined = ["allOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array());
    let others = target.into_iter().chain(combined.flatten().filter_map(Value::as_object));
    let others = others.flat_map(move |other| resolved(root, other, depth));
    Box::new(std::iter::once(schema).chain(others))
}

/// The place in the same schema to which a reference points.
fn at<'s>(root: &'s Map<String, Value>, reference: &str) -> Option<&'s Map<String, Value>> {
    let mut names = reference.strip_prefix('#')?.split('/').skip(1);
    let unescaped = |name: &str| name.replace("%24", "$").replace("~1", "/").replace("~0", "~");
    names.try_fold(root, |at, name| at.get(&unescaped(name))?.as_object())
}

#[cfg(test)]
mod tests {
    use authority_model::{
        proto::registry::{PresentedFact, PresentedList, ToolPresentation},
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

    fn schema() -> Option<Value> {
        Some(json!({
            "type": "object", "required": ["payee"],
            "$defs": {"item": {"type": "object", "properties": {"text": {}, "net": {"type": "number"}}}},
            "properties": {
                "payee": {"type": "string"}, "note": {"type": "string"}, "any": true,
                "to": {"type": "object", "properties": {"iban": {"type": "string"}}},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }))
    }

    fn fact(path: &str) -> PresentedFact {
        PresentedFact { path: path.to_owned(), label: "X".to_owned(), role: None }
    }

    fn list(path: &str, columns: &[&str]) -> PresentedList {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        PresentedList { path: path.to_owned(), columns }
    }

    #[test]
    fn paths_of_the_schema_are_accepted() {
        let presentation = ToolPresentation {
            title: "Pay {amount} to {payee} ({to.iban})".to_owned(),
            facts: ["payee", "to.iban", "tags", "any", "amount"].map(fact).to_vec(),
            lists: vec![list("lines", &["text", "net"])],
            agent_words: vec!["note".to_owned()],
        };
        assert!(faults(presentation.clone(), schema()).is_empty());
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
        for (presentation, field, problem) in [
            (of_fact("payer"), "facts[0].path", "`payer` is not a field of `input_schema`"),
            (of_fact("to.bic"), "facts[0].path", "`to.bic` is not a field"),
            (of_fact("to"), "facts[0].path", "is an object; name one of its fields"),
            (of_fact("lines"), "facts[0].path", "name it in `lists`"),
            (of_fact("a..b"), "facts[0].path", "with dots between them"),
            (of_list("payee", &["x"]), "lists[0].path", "is no list; name it in `facts`"),
            (of_list("lines", &["gross"]), "lists[0].columns[0]", "of the items of `lines`"),
            (words("remark", "Pay"), "agent_words[0]", "`remark` is not a field"),
            (words("note", "Pay {note}"), "title", "the title cannot contain it"),
            (titled("Pay {payee"), "title", "write a field's path as `{path}`"),
            (titled("Pay payee}"), "title", "write a field's path as `{path}`"),
            (titled("Pay {}"), "title", "must be names"),
            (titled("Pay {payer}"), "title", "`payer` is not a field of `input_schema`"),
        ] {
            let faults = faults(presentation, schema());
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].0, format!("presentation.{field}"));
            assert!(faults[0].1.contains(problem), "{faults:?}");
        }
        let twice = ToolPresentation { facts: vec![fact("payee"), fact("payee")], ..titled("Pay") };
        assert!(faults(twice, schema())[0].1.contains("name each field once"));
    }
}
