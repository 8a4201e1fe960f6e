//! The bounds that a denied request exceeded, in sentences with both values, as the stages' findings have them.

use authority_model::proto::runtime::GetDecisionResponse;

/// One sentence for each bound; none where no finding has the values, or the role does not read findings.
pub(super) fn exceeded(decision: &GetDecisionResponse) -> Vec<String> {
    let findings = decision.trace.iter().flat_map(|stage| &stage.findings);
    let refused = findings.filter(|found| {
        found.outcome == "refuse" && found.reason_code.as_deref() == Some(&*decision.reason_code)
    });
    let mut sentences: Vec<String> =
        refused.filter_map(|found| found.detail.as_deref()).flat_map(sentences).collect();
    sentences.dedup();
    sentences
}

/// The sentences of a detail: `max_amount 5000.00 EUR of <id>; asked 7000.00`, several joined by `. `.
fn sentences(detail: &str) -> Vec<String> {
    // A value may also contain a full stop and a space. The parts then do not have this form, and
    // none is shown.
    let parts: Option<Vec<String>> = detail.split(". ").map(sentence).collect();
    parts.unwrap_or_default()
}

fn sentence(part: &str) -> Option<String> {
    let (bound, asked) = part.split_once("; asked ")?;
    let (name, limit) = bound.split_once(' ')?;
    let (limit, _holder) = limit.rsplit_once(" of ")?;
    Some(match name {
        "max_amount" => format!("The amount is {asked}; the limit is {limit}."),
        "currency" => format!("The currency is {asked}; permitted is {limit}."),
        "jurisdictions" => format!("The place is {asked}; permitted is {limit}."),
        "purposes" => format!("The purpose is {asked}; permitted is {limit}."),
        "hours" => format!("It was asked {asked}; permitted is {limit}."),
        "max_uses" => format!("It was asked {asked} others; permitted are {limit}."),
        "max_total_amount" => format!("The amount is {asked}; the limit of all is {limit}."),
        "max_risk_tier" => format!("The risk is {asked}; the limit is {limit}."),
        _ => format!("{} is {asked}; permitted is {limit}.", name.replace('_', " ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_a_sentence_with_both_values() {
        for (detail, expected) in [
            (
                "max_amount 50000.00 EUR of svc:del:acme:1; asked 60000.00",
                vec!["The amount is 60000.00; the limit is 50000.00 EUR."],
            ),
            (
                "max_amount 5.00 EUR of a; asked 7.00. jurisdictions DE, FR of b; asked US",
                vec![
                    "The amount is 7.00; the limit is 5.00 EUR.",
                    "The place is US; permitted is DE, FR.",
                ],
            ),
            (
                "workspace_ids w-1 of a; asked none",
                vec!["workspace ids is none; permitted is w-1."],
            ),
            ("the subject is not in state active", vec![]),
        ] {
            assert_eq!(sentences(detail), expected, "{detail}");
        }
    }
}
