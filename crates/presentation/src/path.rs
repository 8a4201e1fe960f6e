//! Paths of fields: names with dots between them.

use serde_json::{Map, Value};

/// Fields of the context that every tool accepts, wherever its own input is.
pub(crate) const ALWAYS: [&str; 3] = ["amount", "currency", "jurisdiction"];

/// Whether a name needs no quotes in a path.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    !name.is_empty() && name.chars().all(plain)
}

/// A name as it stands in a path: as JSON if it could be mistaken for parts of the path.
pub fn quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { Value::from(name).to_string() }
}

/// The value at a path.
pub(crate) fn value_at<'v>(input: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut names = path.split('.');
    let mut value = input.get(names.next()?)?;
    for name in names {
        value = value.as_object()?.get(name)?;
    }
    Some(value)
}

/// The part of a context that a tool's schema describes.
pub(crate) fn input(
    context: &Map<String, Value>,
    is_in_arguments: bool,
) -> Option<&Map<String, Value>> {
    if is_in_arguments { context.get("arguments")?.as_object() } else { Some(context) }
}

/// Whether a place is the leaf or contains the leaf.
pub(crate) fn is_covered(leaf: &str, is_place: impl Fn(&str) -> bool) -> bool {
    let mut ends = leaf.match_indices('.').map(|(end, _)| end).chain([leaf.len()]);
    ends.any(|end| leaf.get(..end).is_some_and(&is_place))
}

/// All values that are not null, each with its path. A list is one value.
pub(crate) fn leaves<'v>(
    fields: &'v Map<String, Value>,
    prefix: &str,
    found: &mut Vec<(String, &'v Value)>,
) {
    for (name, value) in fields {
        let path = format!("{prefix}{}", quoted(name));
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                leaves(fields, &format!("{path}."), found);
            }
            Value::Null => {}
            _ => found.push((path, value)),
        }
    }
}
