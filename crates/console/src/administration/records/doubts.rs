//! Warnings that a form shows before it is submitted.
//!
//! A delegation's form warns if it has no limit, if an action may be misspelt, or that narrowing can't be
//! undone. The form of a rule for requests lists the requirements that would end.

use crate::kit::prelude::*;

/// The members that limit a delegation, and the member for the delegation above it.
const LIMITS: [&str; 11] = [
    "max_amount",
    "max_total_amount",
    "max_uses",
    "max_risk_tier",
    "purposes",
    "jurisdictions",
    "resource_ids",
    "workspace_ids",
    "hours",
    "expires_at",
    "parent_id",
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
            (Some(_), _) => t::records::CREATE_UNLIMITED,
            (None, true) => t::records::CREATE_ANYWAY,
            (None, false) => t::records::NARROW,
        };
        let finally = (!is_new).then_some(t::records::NARROWING);
        let texts = finally.into_iter().chain(unlimited).map(str::to_owned);
        let texts: Vec<_> = texts.chain(misspelt).collect();
        (!texts.is_empty()).then(|| Self { text: texts.join(" "), label })
    }

    /// The warning about a change that makes requests easier to permit; `None` if the change loosens no rule.
    pub(super) fn of_milder(lines: &[String]) -> Option<Self> {
        let text = || t::records::less_required(lines.join(". "));
        (!lines.is_empty()).then(|| Self { text: text(), label: t::records::LOOSEN })
    }
}

/// The warning about a new delegation without limits. `None` if it has a limit, or if it is below
/// another delegation, since that delegation's limits apply.
pub(crate) fn without(values: &Map<String, Value>) -> Option<&'static str> {
    let is_limited = LIMITS.iter().any(|member| values.contains_key(*member));
    (!is_limited).then_some(t::records::WITHOUT_LIMITS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_limit_is_one() {
        let of = |values: Value| without(values.as_object().unwrap());
        let all = of(json!({"delegate_id": "svc:agent:acme:bot", "actions": ["*"]}));
        assert_eq!(all, Some(t::records::WITHOUT_LIMITS));
        for limit in ["max_amount", "purposes", "jurisdictions", "expires_at", "parent_id"] {
            assert_eq!(of(json!({limit: "x"})), None, "{limit}");
        }
    }
}
