//! Words that several pages share.

use std::fmt::Display;

use authority_decision::{Reason, sentences};
use authority_model::proto::runtime::Decision;

use crate::texts as t;

/// States of approval requests, and their words in the filter.
pub(crate) const STATES: [(&str, &str); 6] = [
    ("pending", "Waiting"),
    ("approved", "Approved, not used yet"),
    ("used", "Approved and used"),
    ("declined", "Declined"),
    ("expired", "Expired"),
    ("void", "Void"),
];

/// The words for a state of an approval request.
pub(crate) fn state(state: &str) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("Unknown", |(_, words)| words)
}

/// The result of an act, for the person who performed it.
pub(crate) fn done(verb: &str, state: &str) -> Option<&'static str> {
    Some(match (verb, state) {
        ("approve", "approved") => {
            "You approved this. The agent may do it once, when it asks again."
        }
        ("approve", "pending") => "You approved this. It still needs somebody else.",
        ("approve", "used") => "You approved this, and the agent has used it.",
        ("approve", "void") => {
            "You approved this, but present authority no longer permits it: the request is void."
        }
        ("decline", "declined") => "You declined this.",
        ("withdraw", "void") => "You withdrew this approval. The agent can no longer use it.",
        _ => return None,
    })
}

/// The people that a request needs: `2 people, legal among them`.
pub(crate) fn people(count: impl Display, roles: &[String]) -> String {
    let people = t::inbox::people(count);
    if roles.is_empty() { people } else { t::inbox::people_with(people, roles.join(", ")) }
}

/// The sentence of a reason code; empty for an unknown code. A tenant's own code becomes words.
pub(crate) fn reason(code: &str) -> String {
    match Reason::from_word(code) {
        Some(Reason::Own(own)) => {
            let word = own.word();
            capitalized(&word.strip_prefix("x_").unwrap_or(word).replace('_', " "))
        }
        known => capitalized(known.map_or("", Reason::sentence)),
    }
}

/// A policy that decided, for people: its name and its advice.
pub(crate) fn policy(name: &str, advice: Option<&str>) -> String {
    match advice {
        Some(advice) => t::policy_advice(name, advice.trim_end_matches('.')),
        None => t::policy_name(name),
    }
}

/// Returns the text with a capital letter at its start.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

/// A decision's word for people.
pub(crate) fn outcome(decision: i32) -> &'static str {
    match Decision::try_from(decision) {
        Ok(Decision::Allow | Decision::AllowWithConstraints) => "allowed",
        Ok(Decision::RequireApproval) => "held",
        Ok(Decision::Deny) => "denied",
        _ => "unknown",
    }
}

/// The words for a kind of authority.
pub(crate) fn authority(kind: &str) -> &'static str {
    match kind {
        "delegation" => "Delegation",
        "uses" => "Right of use",
        "acts_in" => "Work in a workspace",
        _ => "Authority",
    }
}

/// A code with its meaning.
pub(crate) struct CodeWithMeaning {
    pub(crate) code: String,
    pub(crate) sentence: String,
}

impl CodeWithMeaning {
    pub(crate) fn reason(code: &str) -> Self {
        Self { code: code.to_owned(), sentence: format!("{}.", reason(code)) }
    }

    pub(crate) fn obligation(code: &str) -> Self {
        let known = sentences::obligation(code);
        Self::of(code, known.unwrap_or("An obligation of the tenant's own."))
    }

    pub(crate) fn stop(code: &str) -> Self {
        let known = sentences::stop_condition(code);
        Self::of(code, known.unwrap_or("A condition of the tenant's own, which the agent watches."))
    }

    fn of(code: &str, sentence: &str) -> Self {
        Self { code: code.to_owned(), sentence: sentence.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_own_reason_is_read_as_words() {
        for (code, expected) in [
            ("x_change_window", "Change window"),
            ("x_4", "4"),
            ("purpose_unknown", "No purpose of this tenant has that slug"),
            ("x_", ""),
            ("unheard_of", ""),
        ] {
            assert_eq!(reason(code), expected);
        }
    }
}
