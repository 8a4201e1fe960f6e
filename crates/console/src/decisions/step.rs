//! The findings of a decision's stage, in words.

use authority_model::proto::runtime::Stage;

use crate::{
    administration::records::Link,
    kit::{text::CodeWithMeaning, view::View},
    texts as t,
};

/// A stage of the pipeline, for people.
pub(crate) struct StageView {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The API's word for the outcome, which also determines the colour.
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) reason: Option<CodeWithMeaning>,
    /// Findings that did not pass.
    pub(crate) notable: Vec<CheckView>,
    pub(crate) passed: Vec<CheckView>,
}

pub(crate) struct CheckView {
    /// The check in words. The ids link to their pages.
    pub(crate) check: Vec<Link>,
    pub(crate) detail: Option<Vec<Link>>,
    pub(crate) code: Option<String>,
}

pub(crate) fn step(view: &View, stage: Stage) -> StageView {
    let (name, about) = match stage.stage.as_str() {
        "authority" => (t::AUTHORITY, t::decisions::MAY_ACTOR),
        "purpose" => (t::PURPOSE, t::decisions::IS_PURPOSE),
        "rules" => (t::decisions::RULES, t::decisions::DO_RULES),
        _ => (t::decisions::DECISION, t::decisions::RESULT_OF_STAGES),
    };
    let (word, label) = match stage.outcome.as_str() {
        "pass" => ("approved", t::decisions::PASSED),
        "hold" => ("pending", t::decisions::HOLDS),
        _ => ("declined", t::decisions::REFUSED),
    };
    let (passed, notable) =
        stage.findings.into_iter().partition::<Vec<_>, _>(|finding| finding.outcome == "pass");
    let found = |finding: authority_model::proto::runtime::Finding| CheckView {
        check: Link::words(view, &in_words(&finding.check)),
        detail: finding.detail.map(|detail| Link::words(view, &detail)),
        code: finding.reason_code,
    };
    StageView {
        name,
        about,
        word,
        label,
        reason: stage.reason_code.map(|code| CodeWithMeaning::reason(&code)),
        notable: notable.into_iter().map(found).collect(),
        passed: passed.into_iter().map(found).collect(),
    }
}

/// The name of a check with spaces instead of underscores. An id in it stays unchanged.
fn in_words(check: &str) -> String {
    let word =
        |word: &str| if word.contains(':') { word.to_owned() } else { word.replace('_', " ") };
    check.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_a_check_is_not_changed() {
        for (check, expected) in [
            ("approval_threshold", "approval threshold"),
            (
                "anchor svc:ent:acme:reality_anchor:01a2136d",
                "anchor svc:ent:acme:reality_anchor:01a2136d",
            ),
            (
                "anchor_age svc:ent:acme:reality_anchor:1",
                "anchor age svc:ent:acme:reality_anchor:1",
            ),
        ] {
            assert_eq!(in_words(check), expected);
        }
    }
}
