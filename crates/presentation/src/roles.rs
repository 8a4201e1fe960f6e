//! The values of declared roles, by which requests are compared.

use std::collections::{BTreeMap, BTreeSet};

use authority_decision::hidden::is_hidden;
use authority_model::proto::registry::Tool;
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

use crate::path::{ALWAYS, input, value_at};

/// The roles that a tool can declare.
pub const ROLES: [&str; 5] = ["payee", "account", "document", "recipient", "target"];

/// The role of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RolePath {
    role: String,
    path: String,
    is_in_arguments: bool,
}

/// Returns the roles that a tool declares.
pub fn role_paths(tool: &Tool) -> Vec<RolePath> {
    let is_in_arguments = tool.input_at.as_deref() == Some("arguments");
    let facts = tool.presentation.iter().flat_map(|presentation| &presentation.facts);
    let path = |fact: &authority_model::proto::registry::PresentedFact| {
        Some(RolePath { role: fact.role.clone()?, path: fact.path.clone(), is_in_arguments })
    };
    facts.filter_map(path).collect()
}

/// Returns each role's values in a context, each once, in the form in which they are compared.
pub fn role_values<'p>(
    paths: impl IntoIterator<Item = &'p RolePath>,
    context: &Map<String, Value>,
) -> BTreeSet<(String, String)> {
    let mut values = BTreeSet::new();
    for path in paths {
        let texts = texts_at(path, context);
        let texts = texts.iter().map(|text| compared(&path.role, text));
        values.extend(texts.filter(|text| !text.is_empty()).map(|text| (path.role.clone(), text)));
    }
    values
}

/// Returns each role's first values in a context as the request has them, each once, the roles in the
/// order of [`ROLES`]: up to `most` values of a role, of up to `longest` characters.
///
/// The agent determines the number of values. The limit keeps the comparisons few.
pub fn written_values<'p>(
    paths: impl IntoIterator<Item = &'p RolePath>,
    context: &Map<String, Value>,
    most: usize,
    longest: usize,
) -> Vec<(String, String)> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for path in paths {
        let values = found.entry(&path.role).or_default();
        // A longer text has a character after the last permitted one.
        let is_shown = |text: &str| !text.trim().is_empty() && text.chars().nth(longest).is_none();
        for text in texts_at(path, context) {
            if values.len() >= most {
                break;
            }
            if is_shown(&text) && !values.contains(&text) {
                values.push(text);
            }
        }
    }
    let mut ordered = Vec::new();
    for role in ROLES {
        let values = found.remove(role).unwrap_or_default();
        ordered.extend(values.into_iter().map(|value| (role.to_owned(), value)));
    }
    ordered
}

/// The texts and numbers at a role's path.
fn texts_at(path: &RolePath, context: &Map<String, Value>) -> Vec<String> {
    let RolePath { path, is_in_arguments, .. } = path;
    let own = input(context, *is_in_arguments).and_then(|input| value_at(input, path));
    let general = value_at(context, path).filter(|_| ALWAYS.contains(&path.as_str()));
    let mut texts = Vec::new();
    own.into_iter().chain(general).for_each(|value| add_texts(value, &mut texts));
    texts
}

/// Whether a text or number of a context has the value in the role's form, as [`role_values`] returns
/// it.
pub(crate) fn has_value(role: &str, value: &str, context: &Map<String, Value>) -> bool {
    let mut texts = Vec::new();
    context.values().for_each(|field| add_texts(field, &mut texts));
    texts.iter().any(|text| compared(role, text) == value)
}

/// Adds all texts and numbers in a value. A value within a list or an object is compared as well: an
/// agent cannot avoid a comparison by another shape.
fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add_texts(field, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The form in which a value is compared: NFKC, without case, invisible characters and needless
/// blanks. NFKC turns letters such as U+217C, a Roman numeral that looks like `l`, into plain ones.
/// Accounts are compared without any blanks.
pub(crate) fn compared(role: &str, value: &str) -> String {
    let is_seen = |letter: &char| letter.is_whitespace() || !is_hidden(*letter);
    let seen: String = value
        .chars()
        .filter(is_seen)
        .nfkc()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .flat_map(char::to_lowercase)
        .collect();
    let words = seen.split(' ').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(if role == "account" { "" } else { " " })
}

#[cfg(test)]
mod tests {
    use authority_model::proto::registry::{PresentedFact, ToolPresentation};
    use serde_json::json;

    use super::*;

    fn tool(facts: &[(&str, Option<&str>)], input_at: Option<&str>) -> Tool {
        let facts = facts.iter().map(|(path, role)| PresentedFact {
            path: (*path).to_owned(),
            label: "X".to_owned(),
            role: role.map(str::to_owned),
            block: None,
        });
        Tool {
            input_at: input_at.map(str::to_owned),
            presentation: Some(ToolPresentation {
                facts: facts.collect(),
                ..ToolPresentation::default()
            }),
            ..Tool::default()
        }
    }

    fn values(tool: &Tool, context: &Value) -> Vec<(String, String)> {
        role_values(&role_paths(tool), context.as_object().unwrap()).into_iter().collect()
    }

    #[test]
    fn only_declared_roles_have_values() {
        let tool =
            tool(&[("to.name", Some("payee")), ("iban", Some("account")), ("note", None)], None);
        let pair = |role: &str, value: &str| (role.to_owned(), value.to_owned());
        let context = json!({"to": {"name": " Mu\u{200b}\u{308}\u{217c}ler\u{a0} AG"}, "iban": "DE89 3704",
            "note": "x", "payee": "y"});
        assert_eq!(
            values(&tool, &context),
            [pair("account", "de893704"), pair("payee", "müller ag")]
        );
        let several = json!({"iban": ["DE1", "DE1", 7, null, {"a": 1}], "to": {"name": " "}});
        assert_eq!(
            values(&tool, &several),
            [pair("account", "1"), pair("account", "7"), pair("account", "de1")]
        );
        assert!(values(&tool, &json!({"to": "x"})).is_empty());
    }

    #[test]
    fn values_are_also_returned_as_written() {
        let tool = tool(&[("iban", Some("account")), ("to.name", Some("payee"))], None);
        let context =
            json!({"to": {"name": " Müller  AG"}, "iban": ["DE89 3704", "DE89 3704", " "]});
        let values = written_values(&role_paths(&tool), context.as_object().unwrap(), 8, 300);
        let pair = |role: &str, value: &str| (role.to_owned(), value.to_owned());
        assert_eq!(values, [pair("payee", " Müller  AG"), pair("account", "DE89 3704")]);
    }

    #[test]
    fn long_values_are_left_out_and_do_not_count() {
        let tool = tool(&[("iban", Some("account")), ("payee", Some("payee"))], None);
        let context = json!({"iban": ["ääää", "äää", " ", "DE1", "DE1", "DE2"], "payee": "Bo"});
        let values = written_values(&role_paths(&tool), context.as_object().unwrap(), 2, 3);
        let values: Vec<_> = values.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["Bo", "äää", "DE1"]);
    }

    /// A context of 256 KiB can have tens of thousands of values, and a list shows many decisions.
    #[test]
    fn many_values_take_little_time() {
        let tool = tool(&[("iban", Some("account")), ("more", Some("account"))], None);
        let numbers: Vec<u32> = (0..100_000).collect();
        let blanks = vec![" "; 100_000];
        for many in [json!(numbers), json!(blanks), json!(vec![1; 100_000])] {
            let context = json!({"iban": many, "more": many});
            let begun = std::time::Instant::now();
            let values = written_values(&role_paths(&tool), context.as_object().unwrap(), 8, 300);
            assert!(values.len() <= 8, "{values:?}");
            assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
        }
    }

    #[test]
    fn a_path_is_within_the_tools_own_input() {
        let tool = tool(&[("payee", Some("payee"))], Some("arguments"));
        let context = json!({"payee": "outer", "arguments": {"payee": "inner"}});
        assert_eq!(values(&tool, &context), [("payee".to_owned(), "inner".to_owned())]);
        assert!(values(&tool, &json!({"payee": "outer"})).is_empty());
    }
}
