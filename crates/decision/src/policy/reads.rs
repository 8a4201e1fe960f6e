//! Finds the fields of Cedar's `context` that a statement reads.
//!
//! Most policies read one or two of a dozen fields; a field that is not read is not built. The
//! reads are found in the policy's JSON form (Cedar's documented policy format). There, a field is
//! read as `{".": {"left": {"Var": "context"}, "attr": NAME}}`, or tested by `has` in the same way.
//! Any other use of the context, as in `context == resource.wanted`, reads all of it.

use std::collections::BTreeSet;

use cedar_policy_core::parser::parse_policy_or_template_to_est;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    All,
    Only(BTreeSet<String>),
}

impl Reads {
    /// Returns the fields that a policy in its JSON form reads.
    pub(crate) fn of(policy: &Value) -> Self {
        let mut members = BTreeSet::new();
        if walk(policy, &mut members) { Self::Only(members) } else { Self::All }
    }

    pub(crate) fn reads(&self, member: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(members) => members.contains(member),
        }
    }
}

/// Returns the JSON form of a policy's text.
///
/// # Errors
/// The text is not a policy.
pub(super) fn json_form(text: &str) -> Result<Value, String> {
    let policy = parse_policy_or_template_to_est(text).map_err(|why| why.to_string())?;
    serde_json::to_value(policy).map_err(|why| why.to_string())
}

/// Collects the fields. Returns false if the context is used as a whole.
fn walk(json: &Value, members: &mut BTreeSet<String>) -> bool {
    match json {
        Value::Object(object) => {
            if is_context(json) {
                return false;
            }
            object.iter().all(|(operator, operands)| {
                let attribute = match operator.as_str() {
                    "." | "has" => attribute(operands),
                    _ => None,
                };
                match attribute {
                    Some(name) => {
                        members.insert(name.to_owned());
                        true
                    }
                    None => walk(operands, members),
                }
            })
        }
        Value::Array(items) => items.iter().all(|item| walk(item, members)),
        _ => true,
    }
}

fn is_context(json: &Value) -> bool {
    json.get("Var").and_then(Value::as_str) == Some("context")
}

/// Returns the name in exactly `{"left": {"Var": "context"}, "attr": NAME}`, or the first name of a
/// path.
fn attribute(operands: &Value) -> Option<&str> {
    let of_context = operands.get("left").is_some_and(is_context);
    let alone = operands.as_object().is_some_and(|members| members.len() == 2);
    // `context has a.b` has the whole path. Its first name is the context's field.
    let attribute = operands.get("attr")?;
    let name = attribute.as_str().or_else(|| attribute.get(0)?.as_str());
    name.filter(|_| of_context && alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(condition: &str) -> Reads {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        Reads::of(&json_form(&text).unwrap())
    }

    fn only(members: &[&str]) -> Reads {
        Reads::Only(members.iter().map(|&member| member.to_owned()).collect())
    }

    #[test]
    fn members_are_found_wherever_they_are_read() {
        for (condition, members) in [
            ("true", &[][..]),
            ("context.amount.greaterThan(decimal(\"1.0\"))", &["amount"]),
            ("context has now && principal.name like \"a*\"", &["now"]),
            ("context[\"n\\u{6f}w\"] > datetime(\"2026-01-01\")", &["now"]),
            (
                "context has input.a.b && context.input.a.b == context.purpose",
                &["input", "purpose"],
            ),
            (
                "[context.currency, {\"x\": context.delegation}].contains(1)",
                &["currency", "delegation"],
            ),
            (
                "if context.risk_tier == \"high\" then true else !context.rollback_available",
                &["risk_tier", "rollback_available"],
            ),
            ("\"context\" == \"context.now\"", &[]),
        ] {
            assert_eq!(reads(condition), only(members), "{condition}");
        }
    }

    #[test]
    fn the_context_as_a_whole_reads_everything() {
        for condition in [
            "context == resource.wanted",
            "[context].contains(principal.likes)",
            "{\"a\": context} == principal.likes",
            "(if principal.flag then context else context.input).amount == 1",
            "{\".\": {\"left\": context, \"attr\": \"x\"}} == principal.likes",
            "{\"left\": context, \"attr\": \"x\"} == principal.likes",
            "context.hasTag(\"now\")",
        ] {
            assert_eq!(reads(condition), Reads::All, "{condition}");
        }
    }
}
