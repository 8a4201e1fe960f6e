//! A delegation without any limit is made only after its form has said so.

use serde_json::{Map, Value};

/// Members that limit a delegation, with what it lets do without any of each group.
const LIMITS: [(&[&str], &str); 4] = [
    (&["max_amount", "max_total_amount", "max_uses", "max_risk_tier"], "any amount"),
    (&["purposes"], "any purpose"),
    (&["jurisdictions", "resource_ids", "workspace_ids", "hours"], "everywhere"),
    (&["expires_at"], "for ever"),
];

/// Members that say who is concerned.
pub(super) const PARTIES: [&str; 3] = ["tenant_id", "delegator_id", "delegate_id"];

/// What the form has where it has said so.
pub(super) const CONFIRMED: &str = "unlimited";

/// What a new delegation has no limits of; `None` if it has one, or is a part of another, whose limits hold.
pub(super) fn without(values: &Map<String, Value>) -> Option<String> {
    let has = |member: &str| values.contains_key(member);
    let is_limited = LIMITS.iter().flat_map(|(members, _)| *members).any(|member| has(member));
    if is_limited || has("parent_id") {
        return None;
    }
    let all = LIMITS.map(|(_, words)| words).join(", ");
    Some(format!("Without limits: {all}. Add one, or make it so."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_limit_is_one() {
        let of = |values: Value| without(values.as_object().unwrap());
        let all = of(json!({"delegate_id": "svc:agent:acme:bot", "actions": ["*"]}));
        assert_eq!(
            all.as_deref(),
            Some(
                "Without limits: any amount, any purpose, everywhere, for ever. Add one, or make it so."
            )
        );
        for limit in ["max_amount", "purposes", "jurisdictions", "expires_at", "parent_id"] {
            assert_eq!(of(json!({limit: "x"})), None, "{limit}");
        }
    }
}
