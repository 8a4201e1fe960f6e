//! Operations that the service refuses in a record's state. They are not offered. Other operations
//! are offered, and the service decides.
//!
//! The final states, and the states that an operation changes, are options in the protos.

use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};

use super::{
    describe::extension,
    message::{text, texts},
    to_json::json,
};
use crate::texts as t;

/// Operations of a kind that require a value of a member, each with the text for a missing value.
const NEEDS: [(&str, &str, &str, &str); 1] =
    [("delegation", "withdraw", "standing", t::kit::NO_STANDING)];

/// The final states of a record, in which it can no longer change.
pub(super) fn finals(record: &MessageDescriptor) -> Vec<String> {
    let field = ["state", "status"].iter().find_map(|name| record.get_field_by_name(name));
    let option = field.and_then(|field| extension(&field.options(), "authority.rest.v1.field"));
    option
        .as_ref()
        .and_then(|option| Some(texts(option.as_message()?, "final")))
        .unwrap_or_default()
}

/// The states in which a method can change the record. Empty: all states that are not final.
pub(super) fn changed_by(method: &MethodDescriptor) -> Vec<String> {
    let option = extension(&method.options(), "authority.rest.v1.rest");
    option
        .as_ref()
        .and_then(|option| Some(texts(option.as_message()?, "states")))
        .unwrap_or_default()
}

/// Why the operation is not possible now. `changed`: the states in which it can change a record.
pub(super) fn barrier(
    kind: &str,
    word: &str,
    (finals, changed): (&[String], &[String]),
    record: &DynamicMessage,
) -> Option<String> {
    let state = [text(record, "state"), text(record, "status")].concat();
    let is_final = finals.contains(&state);
    let is_open = if changed.is_empty() { !is_final } else { changed.contains(&state) };
    if !is_open {
        let why = if is_final { t::kit::in_final_state(state) } else { t::kit::in_state(state) };
        return Some(why);
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
        // A revoked link can still be deleted.
        assert!(!barred("consultant-links", "revoked").contains(&"delete"));
        assert!(barred("consultant-links", "revoked").contains(&"revoke"));
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
    fn final_states_are_those_of_the_protos() {
        let finals = |path: &str| Kind::at(path).unwrap().finals.join(" ");
        for (path, expected) in [
            ("api-keys", "revoked"),
            ("audit-streams", "sealed"),
            ("billing-accounts", "closed"),
            ("consultant-links", "revoked"),
            ("consultants", "retired"),
            ("delegations", "revoked"),
            ("external-apps", "revoked"),
            ("models", "retired"),
            ("policies", "retired"),
            ("principals", "revoked"),
            ("projects", "archived"),
            ("purposes", "retired"),
            ("quarantines", "released"),
            ("stop-signals", "lifted"),
            ("tenants", "deleted"),
            ("tools", "deprecated"),
            ("webhook-endpoints", "deleted"),
            ("white-label-configs", "archived"),
            ("workspaces", ""),
        ] {
            assert_eq!(finals(path), expected, "{path}");
        }
    }

    #[test]
    fn every_need_is_of_an_operation_and_a_member() {
        for (kind, word, member, _) in NEEDS {
            let kind = super::super::kind::KINDS.iter().find(|known| known.singular == kind);
            assert!(kind.unwrap().verb(word).is_some(), "{word}");
            assert!(kind.unwrap().record.get_field_by_name(member).is_some(), "{member}");
        }
    }
}
