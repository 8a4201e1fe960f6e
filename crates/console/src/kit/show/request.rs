//! All members of a question as rows of a table, in full.

use authority_presentation::quoted;
use serde_json::{Map, Value};

/// The maximum number of a value's characters that are shown without a click.
const SHOWN: usize = 240;

/// A member of a question.
pub(crate) struct Argument {
    /// Its place: `context.supplier.name`.
    pub(crate) path: String,
    /// The value; a text without its quotes.
    pub(crate) value: String,
    /// The beginning and the length of a long value. The page has the whole value.
    pub(crate) cut: Option<(String, usize)>,
}

impl Argument {
    pub(crate) fn new(path: impl Into<String>, value: String) -> Self {
        let length = value.chars().count();
        let cut = (length > SHOWN).then(|| (value.chars().take(SHOWN).collect(), length));
        Self { path: path.into(), value, cut }
    }
}

/// The maximum number of characters of a short value.
const SHORT: usize = 80;

/// The rows of `question`. The rows of the context come first, since they describe the action. Of
/// these, the amount comes first, then short members, then long members and inner members.
pub(crate) fn arguments(question: &Map<String, Value>) -> Vec<Argument> {
    let mut rows = Vec::new();
    let (first, rest): (Vec<_>, Vec<_>) = question.iter().partition(|(name, _)| *name == "context");
    for (name, value) in first {
        add(&mut rows, name.clone(), value);
    }
    rows.sort_by_key(place);
    for (name, value) in rest {
        add(&mut rows, name.clone(), value);
    }
    rows
}

fn place(row: &Argument) -> usize {
    match row.path.strip_prefix("context.").unwrap_or(&row.path) {
        "amount" => 0,
        "currency" => 1,
        path if path.contains(['.', '[']) || row.value.chars().count() > SHORT => 3,
        _ => 2,
    }
}

fn add(rows: &mut Vec<Argument>, path: String, value: &Value) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                add(rows, format!("{path}.{}", quoted(name)), value);
            }
        }
        // A list of plain values is one row.
        Value::Array(items) if has_members(items) => {
            for (index, value) in items.iter().enumerate() {
                add(rows, format!("{path}[{index}]"), value);
            }
        }
        Value::String(text) if !text.is_empty() => rows.push(Argument::new(path, text.clone())),
        other => rows.push(Argument::new(path, other.to_string())),
    }
}

fn has_members(items: &[Value]) -> bool {
    items.iter().any(|item| item.is_object() || item.is_array())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_is_a_row_and_none_is_cut_off() {
        let long = "x".repeat(1000);
        let question = json!({
            "action": "payment.execute",
            "context": {"amount": 5, "supplier": {"name": "A"}, "batch": {"a.b": ["c", "d"]},
                "lines": [{"text": long}], "payees": ["B", "C"], "accounts": [], "none": null, "empty": {}, "blank": ""},
        });
        let rows = arguments(question.as_object().unwrap());
        let shown: Vec<_> = rows.iter().map(|r| (r.path.as_str(), r.value.as_str())).collect();
        for expected in [
            ("action", "payment.execute"),
            ("context.amount", "5"),
            ("context.supplier.name", "A"),
            ("context.batch.\"a.b\"", "[\"c\",\"d\"]"),
            ("context.lines[0].text", &long),
            ("context.payees", "[\"B\",\"C\"]"),
            ("context.accounts", "[]"),
            ("context.none", "null"),
            ("context.empty", "{}"),
            ("context.blank", "\"\""),
        ] {
            assert!(shown.contains(&expected), "{expected:?} in {shown:?}");
        }
        // The amount, then short members, then long or inner ones.
        let context: Vec<_> =
            shown.iter().map_while(|row| row.0.strip_prefix("context.")).collect();
        let (short, inner) = context.split_at(6);
        assert_eq!(short[0], "amount");
        assert!(
            ["none", "empty", "blank", "payees"].iter().all(|name| short.contains(name)),
            "{context:?}"
        );
        assert!(inner.iter().all(|path| path.contains(['.', '['])), "{context:?}");
        let cut = rows.iter().find_map(|row| row.cut.as_ref()).unwrap();
        assert_eq!((cut.0.len(), cut.1), (SHOWN, 1000));
    }
}
