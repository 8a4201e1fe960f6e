//! The short texts of a question's context, such as whom it pays and for which invoice: they tell requests of the same
//! amount apart. They stand beside the amount, and the table of all members has them too.

use serde_json::{Map, Value};

use super::request::{Argument, quoted};

/// The most of them.
const MOST: usize = 3;
/// The most characters of a name, and of a value, of which none is cut.
const LONGEST: usize = 48;
/// Members that stand elsewhere, or tell little.
const OTHERS: [&str; 4] = ["amount", "currency", "jurisdiction", "subdivision"];
/// Words in names of members that say to whom and for what: those come first.
const FIRST: [&str; 12] = [
    "payee",
    "beneficiary",
    "recipient",
    "creditor",
    "supplier",
    "vendor",
    "merchant",
    "customer",
    "iban",
    "account",
    "invoice",
    "order",
];

/// At most three, always in the same order: those that say to whom, then outer members before inner ones, by name.
pub(crate) fn headline(context: &Map<String, Value>) -> Vec<Argument> {
    let mut found = Vec::new();
    let outer = context.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    for (name, value) in outer {
        add(&mut found, 0, quoted(name), value);
    }
    found.sort_by(|(depth, one), (other_depth, other)| {
        let key = |depth: usize, path: &str| (rank(path), depth, path.to_owned());
        key(*depth, &one.path).cmp(&key(*other_depth, &other.path))
    });
    found.into_iter().map(|(_, row)| row).take(MOST).collect()
}

fn add(found: &mut Vec<(usize, Argument)>, depth: usize, path: String, value: &Value) {
    let is_short = |text: &str| !text.trim().is_empty() && text.chars().count() <= LONGEST;
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                add(found, depth + 1, format!("{path}.{}", quoted(name)), value);
            }
        }
        Value::String(text) if is_short(text) && is_short(&path) => {
            found.push((depth, Argument::new(path, text.clone())));
        }
        _ => {}
    }
}

fn rank(path: &str) -> usize {
    let path = path.to_lowercase();
    FIRST.iter().position(|word| path.contains(word)).unwrap_or(FIRST.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(context: &Value) -> Vec<(String, String)> {
        let rows = headline(context.as_object().unwrap());
        rows.into_iter().map(|row| (row.path, row.value)).collect()
    }

    #[test]
    fn short_texts_say_to_whom_and_for_what() {
        let shown = of(&json!({
            "amount": 5, "currency": "EUR", "jurisdiction": "DE", "approved": true, "count": 7,
            "note": "x".repeat(LONGEST + 1), "blank": " ", "cost_centre": "4711", "list": ["a"],
            "supplier": {"name": "Müller", "iban": "DE89"}, "invoice": "RE-417",
        }));
        let expected =
            [("supplier.iban", "DE89"), ("supplier.name", "Müller"), ("invoice", "RE-417")];
        assert_eq!(shown, expected.map(|(path, value)| (path.to_owned(), value.to_owned())));
        // With no name that is known, outer members come first, by name.
        let paths = of(&json!({"b": {"a": "1"}, "c": "2", "a": "3", "z.\"": "4"}));
        let paths: Vec<_> = paths.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["\"z.\\\"\"", "a", "c"]);
        assert!(of(&json!({})).is_empty());
    }
}
