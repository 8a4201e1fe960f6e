//! The bounds that a denied request exceeded, in sentences with both values.

use authority_model::proto::runtime::{ExceededBound, GetDecisionResponse};

use crate::{administration::budgets, kit::prelude::*};

/// A bound that the request exceeded, for people.
pub(super) struct Exceeded {
    pub(super) text: String,
    /// When its budget resets, if it has one.
    pub(super) resets: Option<Moment>,
}

/// Returns each exceeded bound. Empty if the role may not read findings.
pub(super) fn exceeded(decision: &GetDecisionResponse, now: DateTime<Utc>) -> Vec<Exceeded> {
    let findings = decision.trace.iter().flat_map(|stage| &stage.findings);
    let refused = findings.filter(|found| {
        found.outcome == "refuse" && found.reason_code.as_deref() == Some(&*decision.reason_code)
    });
    let shown = |bound: &ExceededBound| {
        let ends = bound.budget.as_ref().and_then(|budget| budget.resets_at);
        Exceeded { text: sentence(bound), resets: Moment::of_time(ends, now) }
    };
    let mut all: Vec<Exceeded> = refused.flat_map(|found| &found.exceeded).map(shown).collect();
    all.dedup_by(|one, other| one.text == other.text);
    all
}

fn sentence(exceeded: &ExceededBound) -> String {
    let asked = exceeded.asked.as_deref().unwrap_or(t::decisions::NONE);
    let currency = exceeded.currency.as_ref().map(|currency| format!(" {currency}"));
    let limit = format!("{}{}", exceeded.limit, currency.unwrap_or_default());
    let budget = exceeded.budget.as_ref().map(budgets::sentence).unwrap_or_default();
    match exceeded.bound.as_str() {
        "max_amount" => t::decisions::over_amount(asked, limit),
        "currency" => t::decisions::other_currency(asked, limit),
        "jurisdictions" => t::decisions::other_place(asked, limit),
        "purposes" => t::decisions::other_purpose(asked, limit),
        "hours" => t::decisions::other_time(asked, limit),
        "max_uses" => t::decisions::over_uses(budget),
        "max_total_amount" => t::decisions::over_total(asked, budget),
        "max_risk_tier" => t::decisions::over_risk(asked, limit),
        bound => t::decisions::other_bound(bound.replace('_', " "), asked, limit),
    }
}

#[cfg(test)]
mod tests {
    use authority_model::proto::runtime::Budget;

    use super::*;

    #[test]
    fn each_bound_is_a_sentence_with_both_values() {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let of = |bound: &str, limit: &str, currency: &str, asked: &str| ExceededBound {
            bound: bound.to_owned(),
            limit: limit.to_owned(),
            currency: text(currency),
            asked: text(asked),
            ..ExceededBound::default()
        };
        for (exceeded, expected) in [
            (
                of("max_amount", "50000.00", "EUR", "60000.00"),
                "The amount is 60000.00; the limit is 50000.00 EUR.",
            ),
            (of("jurisdictions", "DE, FR", "", "US"), "The place is US; permitted is DE, FR."),
            (of("workspace_ids", "w-1", "", ""), "workspace ids is none; permitted is w-1."),
        ] {
            assert_eq!(sentence(&exceeded), expected);
        }
        let budget = Budget {
            bound: "max_uses".to_owned(),
            limit: "20".to_owned(),
            used: text("20"),
            left: text("0"),
            ..Budget::default()
        };
        let uses = ExceededBound { budget: Some(budget), ..of("max_uses", "20", "", "1") };
        let expected =
            "The number of uses is limited. Before this request: 20 of 20 uses used, 0 uses left.";
        assert_eq!(sentence(&uses), expected);
    }
}
