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
pub(crate) fn quoted(name: &str) -> String {
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
pub(crate) fn input<'c>(
    context: &'c Map<String, Value>,
    is_in_arguments: bool,
) -> Option<&'c Map<String, Value>> {
    if is_in_arguments { context.get("arguments")?.as_object() } else { Some(context) }
}
