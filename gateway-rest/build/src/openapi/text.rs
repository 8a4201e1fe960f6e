//! Writes a document as JSON text.

use serde_json::Value;

/// The media type that comes before all others: generators of clients take the first one, and can
/// read server-sent events but no lines.
const FIRST: &str = "text/event-stream";

/// Returns the text of an `OpenAPI` document. Streams have server-sent events first, even if the
/// members of `document` are sorted.
pub fn text(document: &Value) -> String {
    let mut written = String::new();
    write(document, &mut written);
    written
}

fn write(value: &Value, to: &mut String) {
    match value {
        Value::Object(members) => {
            let first = members.get_key_value(FIRST);
            let rest = members.iter().filter(|(name, _)| *name != FIRST);
            let mut opening = '{';
            for (name, value) in first.into_iter().chain(rest) {
                to.push(opening);
                to.push_str(&Value::from(name.as_str()).to_string());
                to.push(':');
                write(value, to);
                opening = ',';
            }
            to.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            to.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    to.push(',');
                }
                write(item, to);
            }
            to.push(']');
        }
        other => to.push_str(&other.to_string()),
    }
}
