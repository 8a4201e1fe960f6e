//! Names of members that some parsers take for others.
//!
//! Go's `encoding/json`, for one, matches names without regard to case. The relay and such a server
//! would then read different messages.

use std::collections::HashSet;

use serde_json::Value;

/// The members of a message that have a meaning.
const MESSAGE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
/// The members of a request's parameters that have a meaning.
const PARAMS: [&str; 7] =
    ["name", "arguments", "task", "requestState", "inputResponses", "requestId", "_meta"];

/// Returns the first name that differs only in case from another name in its object, or from the name of
/// a member with a meaning.
pub(crate) fn ambiguous(message: &Value) -> Option<&str> {
    let Value::Object(members) = message else { return None };
    let params = members.get("params").and_then(Value::as_object);
    let poses = members.keys().find(|name| poses_as(name, &MESSAGE));
    let poses = poses.or_else(|| params?.keys().find(|name| poses_as(name, &PARAMS)));
    poses.map(String::as_str).or_else(|| doubled(message))
}

fn poses_as(name: &str, known: &[&str]) -> bool {
    known.iter().any(|known| *known != name && folded(known) == folded(name))
}

fn doubled(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(doubled),
        Value::Object(members) => {
            let mut seen = HashSet::new();
            members.iter().find_map(|(name, value)| {
                if seen.insert(folded(name)) { doubled(value) } else { Some(name.as_str()) }
            })
        }
        _ => None,
    }
}

/// Both directions are needed: the long s (U+017F) has a capital S, and the Kelvin sign a small k.
fn folded(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_differ_only_in_case_are_found() {
        for message in [
            json!({"method": "ping", "METHOD": "tools/call"}),
            json!({"Method": "tools/call"}),
            json!({"re\u{17f}ult": {}}),
            json!({"params": {"Name": "delete"}}),
            json!({"params": {"InputResponses": {}}}),
            json!({"params": {"arguments": {"amount": 1, "Amount": 1_000_000}}}),
            json!({"params": {"arguments": {"all": [{"k": 1, "\u{212a}": 2}]}}}),
        ] {
            assert!(ambiguous(&message).is_some(), "{message}");
        }
        let plain = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "a", "arguments": {"Name": "b", "Method": {"ID": 1, "params": 2}}}});
        assert_eq!(ambiguous(&plain), None);
    }
}
