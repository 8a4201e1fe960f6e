//! The example of a request as a command.

use serde_json::Value;

use super::{
    document::{Document, DocumentOperation, contents},
    prose::text,
};

/// Returns the example of the request as a `curl` command. An API key is in `$KEY`, a person's
/// token in `$TOKEN`.
pub(super) fn curl<'a>(document: Document<'a>, found: &DocumentOperation<'a>) -> String {
    let body = contents(&found.content["requestBody"])
        .find_map(|(media, content)| Some((media, content.get("example")?)));
    let usual = if body.is_some() { "post" } else { "get" };
    let method = if found.method == usual {
        String::new()
    } else {
        format!(" -X {}", found.method.to_uppercase())
    };
    let is_stream = found
        .responses(document, true)
        .any(|(_, response)| response["content"].get("text/event-stream").is_some());
    let unbuffered = if is_stream { " -N" } else { "" };
    let mut parts = vec![format!("curl{unbuffered}{method} {}", quoted(&address(document, found)))];
    let schemes = found.content["security"].as_array().into_iter().flatten();
    let schemes: Vec<_> = schemes.filter_map(Value::as_object).flat_map(|one| one.keys()).collect();
    if !schemes.is_empty() {
        let is_key = schemes.iter().any(|scheme| *scheme == "api_key");
        let token = if is_key { "$KEY" } else { "$TOKEN" };
        parts.push(format!("-H \"Authorization: Bearer {token}\""));
    }
    if let Some((media, example)) = body {
        parts.push(format!("-H {}", quoted(&format!("Content-Type: {media}"))));
        let example = serde_json::to_string_pretty(example).unwrap_or_default();
        parts.push(format!("-d {}", quoted(&example)));
    }
    parts.join(" \\\n  ")
}

/// The URL of the example, with the required parameters.
fn address<'a>(document: Document<'a>, found: &DocumentOperation<'a>) -> String {
    let (mut path, mut query) = (found.path.to_owned(), Vec::new());
    for parameter in found.parameters(document).filter(|one| one["required"] == true) {
        let (name, example) = (text(&parameter["name"]), &parameter["example"]);
        let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        if parameter["in"] == "path" {
            path = path.replace(&format!("{{{name}}}"), &example);
        } else {
            query.push(format!("{name}={example}"));
        }
    }
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{path}{mark}{}", document.url(), query.join("&"))
}

/// Quotes an argument for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
