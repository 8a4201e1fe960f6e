//! Warnings that a form shows before it is submitted.
//!
//! A delegation's form warns if it has no limit, if an action may be misspelt, or that narrowing can't be
//! undone. The form of a rule for requests lists the requirements that would end.

use crate::kit::prelude::*;

/// Groups of members that limit a delegation. Each has the permission that follows if all members
/// of the group are missing.
const LIMITS: [(&[&str], &str); 4] = [
    (&["max_amount", "max_total_amount", "max_uses", "max_risk_tier"], "any amount"),
    (&["purposes"], "any purpose"),
    (&["jurisdictions", "resource_ids", "workspace_ids", "hours"], "everywhere"),
    (&["expires_at"], "for ever"),
];

/// Members that name the parties.
pub(super) const PARTIES: [&str; 3] = ["tenant_id", "delegator_id", "delegate_id"];

/// The name of the form's field for the warning that the person has confirmed.
pub(super) const CONFIRMED: &str = "said";

/// A warning that the person must confirm.
pub(super) struct Doubt {
    pub(super) text: String,
    /// The label of the button that confirms and sends the form.
    pub(super) label: &'static str,
}

impl Doubt {
    /// The warning for a new delegation, or for narrowing one.
    pub(super) fn of(
        values: &Map<String, Value>,
        is_new: bool,
        misspelt: Vec<String>,
    ) -> Option<Self> {
        let unlimited = without(values).filter(|_| is_new);
        let label = match (&unlimited, is_new) {
            (Some(_), _) => "Create without limits",
            (None, true) => "Create all the same",
            (None, false) => "Narrow for good",
        };
        let finally = "What is narrowed cannot be widened again.".to_owned();
        let finally = (!is_new).then_some(finally);
        let texts: Vec<_> = finally.into_iter().chain(unlimited).chain(misspelt).collect();
        (!texts.is_empty()).then(|| Self { text: texts.join(" "), label })
    }

    /// The warning about a change that makes requests easier to permit; `None` if the change loosens no rule.
    pub(super) fn of_milder(lines: &[String]) -> Option<Self> {
        let text = || format!("Less will be asked of requests: {}.", lines.join(". "));
        (!lines.is_empty()).then(|| Self { text: text(), label: "Loosen it" })
    }
}

/// The limits that a new delegation lacks. `None` if it has a limit, or if it is below another
/// delegation, since that delegation's limits apply.
pub(crate) fn without(values: &Map<String, Value>) -> Option<String> {
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
