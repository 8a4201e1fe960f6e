//! Finds comparisons of `context.jurisdiction` with a hyphenated text. Policies must not have them.
//!
//! Policies see the country as `jurisdiction` and a subdivision as `subdivision`. Such a comparison
//! can never be true: a forbid for `DE-BY` would never match. The search works on the policy's JSON
//! form (Cedar's documented policy format).

use serde_json::Value;

/// The comparison operators in the JSON form.
const COMPARISONS: [&str; 6] = ["==", "!=", "contains", "containsAll", "containsAny", "like"];

/// Returns the problem if the policy, in its JSON form, has such a comparison.
pub(crate) fn fault(policy: &Value) -> Option<String> {
    match policy {
        Value::Object(members) => members.iter().find_map(|(operator, operands)| {
            let compares = COMPARISONS.contains(&operator.as_str());
            let own = if compares { compared(operands) } else { None };
            own.or_else(|| fault(operands))
        }),
        Value::Array(items) => items.iter().find_map(fault),
        _ => None,
    }
}

/// Returns the problem of a comparison if one side reads the jurisdiction and the other has such a
/// text.
fn compared(operands: &Value) -> Option<String> {
    let side = |name| operands.get(name).unwrap_or(&Value::Null);
    let (left, right) = (side("left"), side("right"));
    // The right side of `like` is a pattern.
    let right = if right.is_null() { side("pattern") } else { right };
    let text = if reads_jurisdiction(left) {
        hyphenated(right)?
    } else if reads_jurisdiction(right) {
        hyphenated(left)?
    } else {
        return None;
    };
    Some(format!(
        "`context.jurisdiction` is a country and never `{text}`; compare `context.subdivision`, \
         which is there where the request names one"
    ))
}

/// Whether the expression is `context.jurisdiction` or contains it, as in a set or a branch of an
/// `if`.
fn reads_jurisdiction(json: &Value) -> bool {
    let is_read = |members: &Value| {
        members.get("attr").and_then(Value::as_str) == Some("jurisdiction")
            && members.get("left").and_then(|left| left.get("Var")?.as_str()) == Some("context")
    };
    match json {
        Value::Object(members) => {
            members.get(".").is_some_and(is_read) || members.values().any(reads_jurisdiction)
        }
        Value::Array(items) => items.iter().any(reads_jurisdiction),
        _ => false,
    }
}

/// Returns a hyphenated text literal.
fn hyphenated(json: &Value) -> Option<&str> {
    match json {
        Value::Object(members) => {
            let literal = members.get("Value").or_else(|| members.get("Literal"));
            let text = literal.and_then(Value::as_str).filter(|text| text.contains('-'));
            text.or_else(|| members.values().find_map(hyphenated))
        }
        Value::Array(items) => items.iter().find_map(hyphenated),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::reads::json_form;

    fn is_faulty(condition: &str) -> bool {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        fault(&json_form(&text).unwrap()).is_some()
    }

    #[test]
    fn every_way_to_compare_it_with_a_hyphen_is_found() {
        for condition in [
            "context.jurisdiction == \"DE-BY\"",
            "\"DE-BY\" == context.jurisdiction",
            "context has jurisdiction && context.jurisdiction != \"DE-BY\"",
            "context[\"jurisdiction\"] == \"DE-BY\"",
            "[\"FR\", \"DE-BY\"].contains(context.jurisdiction)",
            "[context.jurisdiction].containsAny([\"DE-BY\"])",
            "[\"DE-BY\"].containsAll([context.jurisdiction])",
            "[context.jurisdiction] == [\"DE-BY\"]",
            "context.jurisdiction like \"DE-*\"",
            "!(context.purpose == \"x\" || context.jurisdiction == \"DE\\u{2d}BY\")",
            "(if context has jurisdiction then context.jurisdiction else \"\") == \"DE-BY\"",
        ] {
            assert!(is_faulty(condition), "{condition}");
        }
    }

    #[test]
    fn satisfiable_comparisons_are_no_fault() {
        for condition in [
            "context.jurisdiction == \"DE\"",
            "[\"FR\", \"DE\"].contains(context.jurisdiction)",
            "context.jurisdiction like \"D*\"",
            "context has subdivision && context.subdivision == \"DE-BY\"",
            "context.jurisdiction == \"DE\" && context.purpose == \"invoice-settlement\"",
            "context.input.jurisdiction == \"DE-BY\"",
            "principal.jurisdiction == \"DE-BY\"",
        ] {
            assert!(!is_faulty(condition), "{condition}");
        }
    }
}
