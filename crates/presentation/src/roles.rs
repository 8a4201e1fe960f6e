//! The values of declared roles, by which requests are compared.

use std::collections::BTreeSet;

use authority_decision::hidden::is_hidden;
use authority_model::proto::registry::Tool;
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

use crate::path::{ALWAYS, input, value_at};

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

/// The maximum number of values of a request. An agent chooses how many a list has.
const MOST: usize = 256;

/// Returns each role's values in a context, each once, in the form in which they are compared.
pub fn role_values<'p>(
    paths: impl IntoIterator<Item = &'p RolePath>,
    context: &Map<String, Value>,
) -> BTreeSet<(String, String)> {
    let mut values = BTreeSet::new();
    for RolePath { role, path, is_in_arguments } in paths {
        let own = input(context, *is_in_arguments).and_then(|input| value_at(input, path));
        let general = || value_at(context, path).filter(|_| ALWAYS.contains(&path.as_str()));
        let Some(value) = own.or_else(general) else { continue };
        let each = match value {
            Value::Array(items) => items.as_slice(),
            value => std::slice::from_ref(value),
        };
        let texts = each.iter().filter_map(text).map(|text| compared(role, &text));
        values.extend(texts.filter(|text| !text.is_empty()).map(|text| (role.clone(), text)));
    }
    values.into_iter().take(MOST).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The form in which a value is compared: NFC, without invisible characters and needless blanks.
/// Accounts are compared without blanks and in capitals.
fn compared(role: &str, value: &str) -> String {
    let seen: String = value
        .nfc()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| !is_hidden(*letter))
        .collect();
    let words = seen.split(' ').filter(|word| !word.is_empty());
    if role == "account" {
        words.collect::<String>().to_uppercase()
    } else {
        words.collect::<Vec<_>>().join(" ")
    }
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
        let context = json!({"to": {"name": " Mu\u{308}ller\u{a0} AG\u{200b}"}, "iban": "de89 3704",
            "note": "x", "payee": "y"});
        assert_eq!(
            values(&tool, &context),
            [pair("account", "DE893704"), pair("payee", "Müller AG")]
        );
        let several = json!({"iban": ["DE1", "DE1", 7, null, {"a": 1}], "to": {"name": " "}});
        assert_eq!(values(&tool, &several), [pair("account", "7"), pair("account", "DE1")]);
        assert!(values(&tool, &json!({"to": "x"})).is_empty());
    }

    #[test]
    fn a_path_is_within_the_tools_own_input() {
        let tool = tool(&[("payee", Some("payee"))], Some("arguments"));
        let context = json!({"payee": "outer", "arguments": {"payee": "inner"}});
        assert_eq!(values(&tool, &context), [("payee".to_owned(), "inner".to_owned())]);
        assert!(values(&tool, &json!({"payee": "outer"})).is_empty());
    }
}
