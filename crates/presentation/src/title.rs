//! Titles: texts of a tool with the paths of fields in braces.

use serde_json::Value;

/// The maximum number of characters of a value in a title.
const LONGEST: usize = 60;

/// A part of a title: a text, and the path of the field that follows it.
pub(crate) struct Part<'t> {
    pub(crate) text: &'t str,
    pub(crate) path: Option<&'t str>,
}

/// The parts of a title. `None` if its braces do not match.
pub(crate) fn parts(title: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = title;
    while let Some((text, after)) = rest.split_once('{') {
        let (path, after) = after.split_once('}')?;
        if text.contains('}') || path.contains('{') {
            return None;
        }
        parts.push(Part { text, path: Some(path) });
        rest = after;
    }
    if rest.contains('}') {
        return None;
    }
    parts.push(Part { text: rest, path: None });
    Some(parts)
}

/// Fills in a title. `None` if its braces do not match, or if a field in it has no value.
pub(crate) fn filled(title: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    for part in parts(title)? {
        filled.push_str(part.text);
        if let Some(path) = part.path {
            filled.push_str(&value(path)?);
        }
    }
    Some(filled)
}

/// A value as a title shows it. `None` if it is a list, an object or blank.
pub(crate) fn in_title(value: &Value) -> Option<String> {
    let line = one_line(&match value {
        Value::Object(_) | Value::Array(_) => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    if line.trim().is_empty() {
        return None;
    }
    // Words of the agent must not read like words of the title.
    let is_free = value.is_string() && line.contains(char::is_whitespace);
    Some(if is_free { format!("“{}”", line.replace(['“', '”'], "\"")) } else { line })
}

/// A text on one line, cut at the maximum length.
fn one_line(text: &str) -> String {
    let line: String =
        text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST).chain(['…']).collect()
}
