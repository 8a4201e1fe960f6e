//! Operations that the service refuses in a record's state. They are not offered. Other operations
//! are offered, and the service decides.

use prost_reflect::DynamicMessage;

use super::message::{json, text};

/// The final state of each kind, in which a record can no longer change.
const FINAL: [(&str, &str); 12] = [
    ("api_key", "revoked"),
    ("audit_stream", "sealed"),
    ("billing_account", "closed"),
    ("delegation", "revoked"),
    ("external_app", "revoked"),
    ("model", "retired"),
    ("policy", "retired"),
    ("principal", "revoked"),
    ("project", "archived"),
    ("purpose", "retired"),
    ("tenant", "deleted"),
    ("tool", "deprecated"),
];

/// Operations of a kind that only records in these states take.
const ONLY: [(&str, &str, &[&str]); 5] = [
    ("delegation", "renew", &["active"]),
    ("delegation", "suspend", &["active"]),
    ("delegation", "reinstate", &["suspended"]),
    ("webhook_endpoint", "pause", &["active"]),
    ("webhook_endpoint", "enable", &["paused", "disabled"]),
];

/// Operations of a kind that require a value of a member, each with the reason why it is missing.
const NEEDS: [(&str, &str, &str, &str); 1] =
    [("delegation", "withdraw", "standing", "it has no standing approval")];

/// Whether no record of this kind leaves the state.
pub(super) fn is_final(kind: &str, state: &str) -> bool {
    FINAL.contains(&(kind, state))
}

/// Why the operation is not for this record now.
pub(super) fn barrier(kind: &str, word: &str, record: &DynamicMessage) -> Option<String> {
    let state = [text(record, "state"), text(record, "status")].concat();
    if is_final(kind, &state) {
        return Some(format!("it is {state}, which is final"));
    }
    let only = ONLY.iter().find(|(known, verb, _)| *known == kind && *verb == word);
    if only.is_some_and(|(.., states)| !states.contains(&state.as_str())) {
        return Some(format!("it is {state}"));
    }
    let (.., member, why) =
        NEEDS.iter().find(|(known, verb, ..)| *known == kind && *verb == word)?;
    (!json(record).contains_key(*member)).then(|| (*why).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Input, Member, Shape, Written, kind::Kind, message::set_text},
        *,
    };

    #[test]
    fn what_a_state_does_not_take_is_barred() {
        let barred = |path: &str, state: &str| {
            let kind = Kind::at(path).unwrap();
            let mut record = DynamicMessage::new(kind.record.clone());
            set_text(&mut record, "state", state);
            set_text(&mut record, "status", state);
            let words = kind.operations.iter().map(|operation| operation.word.as_str());
            words.filter(|word| kind.barrier(word, &record).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(barred("delegations", "active"), ["reinstate", "withdraw"]);
        assert_eq!(barred("delegations", "suspended"), ["suspend", "renew", "withdraw"]);
        assert_eq!(barred("webhook-endpoints", "active"), ["enable"]);
        assert_eq!(barred("webhook-endpoints", "paused"), ["pause"]);
        assert_eq!(barred("tools", "active"), Vec::<&str>::new());
        assert_eq!(barred("tools", "deprecated"), ["create", "update", "delete"]);
    }

    #[test]
    fn what_nothing_takes_back_is_known() {
        let finals = |path: &str| {
            let kind = Kind::at(path).unwrap();
            let edit = kind.operations.iter().find(|operation| operation.shape == Shape::Edit);
            let members = Member::all(&edit.unwrap().form());
            let mut found = Vec::new();
            for member in members.iter().filter(|member| member.written == Written::Always) {
                let words = match &member.input {
                    Input::Choice(words) => words.clone(),
                    _ => vec!["true".to_owned()],
                };
                found.extend(words.into_iter().filter(|word| kind.is_final(member, word)));
            }
            found
        };
        for (path, states) in [
            ("principals", ["revoked"].as_slice()),
            ("tenants", &["deleted"]),
            ("audit-streams", &["sealed"]),
            ("billing-accounts", &["closed"]),
            ("consultants", &["retired"]),
            ("certifications", &["true"]),
            ("tools", &[]),
        ] {
            assert_eq!(finals(path), states, "{path}");
        }
        for (path, words) in [
            ("api-keys", ["revoke"].as_slice()),
            ("delegations", &["revoke"]),
            ("tenants", &["delete"]),
            ("consultant-links", &["delete", "revoke"]),
        ] {
            let operations = Kind::at(path).unwrap().operations.iter();
            let mut ends: Vec<_> = operations
                .filter(|operation| operation.ends_for_good())
                .map(|operation| operation.word.as_str())
                .collect();
            ends.sort_unstable();
            assert_eq!(ends, words, "{path}");
        }
    }

    #[test]
    fn every_rule_is_of_a_state_and_an_operation_that_there_are() {
        let of = |singular: &str| {
            super::super::kind::KINDS.iter().find(|kind| kind.singular == singular).unwrap()
        };
        for (kind, state) in FINAL {
            let record = &of(kind).record;
            let member = record.get_field_by_name("state");
            let member = member.or_else(|| record.get_field_by_name("status")).unwrap();
            let words = match super::super::Member::of(&member).input {
                super::super::Input::Choice(words) => words,
                _ => Vec::new(),
            };
            assert!(words.iter().any(|word| word == state), "{kind} {state}: {words:?}");
        }
        for (kind, word, _) in ONLY {
            assert!(of(kind).verb(word).is_some(), "{kind} {word}");
        }
        for (kind, word, member, _) in NEEDS {
            assert!(of(kind).verb(word).is_some(), "{kind} {word}");
            assert!(of(kind).record.get_field_by_name(member).is_some(), "{kind} {member}");
        }
    }
}
