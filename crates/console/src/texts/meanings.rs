//! The catalogue of scopes and roles: the permissions of each, in a sentence.

/// The scopes of API keys.
const SCOPES: [(&str, &str); 10] = [
    ("runtime:read", "Reads decisions, records and grants, and simulates decisions."),
    ("runtime:write", "Requests decisions, and reports their outcome."),
    ("runtime:stop", "Stops agents and quarantines actions. It cannot release them."),
    ("evidence:read", "Reads evidence and the log's proofs, and replays sealed decisions."),
    ("evidence:write", "Puts decisions into the tenant's log."),
    (
        "delegations:write",
        "Lets the agents that it names delegate a part of their authority, and revoke it. It must name them.",
    ),
    ("events:read", "Reads the tenant's events."),
    ("webhooks:write", "Manages webhook endpoints, and sends deliveries again."),
    ("reality:write", "Brings observations to the anchors that name this key."),
    ("tools:observe", "Reports the definitions of MCP servers' tools. It cannot pin them."),
];

/// The roles of people, which their sign-in has.
const ROLES: [(&str, &str); 7] = [
    ("owner", "Manages the whole installation, every tenant included."),
    (
        "admin",
        "Reads the tenant's decisions, records and history, approves, stops agents, ends delegations, and manages API keys \
         and webhooks. Makes agents, tools, purposes and policies.",
    ),
    ("approver", "Decides requests for approval, and reads the records that they need."),
    ("legal", "Decides requests for approval, including requests that need the role legal."),
    (
        "auditor",
        "Reads the tenant's decisions, records and history, and seals and replays decisions.",
    ),
    (
        "member",
        "Reads decisions by their ids, and moves records between states where a machine lets members.",
    ),
    ("viewer", "Reads decisions by their ids."),
];

/// The roles in a team. They grant no permissions.
const IN_TEAM: [(&str, &str); 6] = [
    ("owner", "Answers for the team."),
    ("admin", "Manages the team."),
    ("member", "Works in the team."),
    ("approver", "Decides for the team."),
    ("viewer", "Looks on."),
    ("auditor", "Reviews the team."),
];

/// The sentence of a person's role; empty for an unknown role.
pub(crate) fn role(word: &str) -> &'static str {
    of(&ROLES, word).unwrap_or_default()
}

/// The sentence for a word that a member of a kind can have.
pub(crate) fn meaning(kind: &str, member: &str, word: &str) -> Option<&'static str> {
    match (kind, member) {
        ("api_key", "scopes") => of(&SCOPES, word),
        ("member_of", "role") => of(&IN_TEAM, word),
        _ => None,
    }
}

/// A note about all of a member's words.
pub(crate) fn note(kind: &str, member: &str) -> Option<&'static str> {
    let is_role_in_team = (kind, member) == ("member_of", "role");
    is_role_in_team.then_some(
        "It says who is who in the team and grants nothing: what a person may do here comes from the role of their \
         sign-in, and what an agent may do from its delegations and grants.",
    )
}

fn of(list: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == word).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use authority_model::access::RULES;

    use super::*;
    use crate::kit::kinds::{Input, Kind, Member};

    fn words(list: &[(&'static str, &str)]) -> BTreeSet<String> {
        list.iter().map(|(word, _)| (*word).to_owned()).collect()
    }

    fn words_of(kind: &str, member: &str) -> BTreeSet<String> {
        let record = &Kind::at(kind).unwrap().record;
        match Member::of(&record.get_field_by_name(member).unwrap()).input {
            Input::Choice(words) | Input::Choices(words) => words.into_iter().collect(),
            _ => BTreeSet::new(),
        }
    }

    #[test]
    fn every_scope_has_its_sentence_and_opens_something() {
        let scopes = words(&SCOPES);
        assert_eq!(scopes, words_of("api-keys", "scopes"));
        let bindings = RULES.iter().flat_map(|(_, bindings)| bindings.iter());
        let opening =
            bindings.map(|binding| binding.access.scope).filter(|scope| !scope.is_empty());
        assert_eq!(scopes, opening.map(str::to_owned).collect());
    }

    #[test]
    fn every_role_has_its_sentence() {
        let bindings = RULES.iter().flat_map(|(_, bindings)| bindings.iter());
        for word in bindings.flat_map(|binding| binding.access.roles) {
            assert!(!role(word).is_empty(), "{word}");
        }
        assert_eq!(words(&IN_TEAM), words_of("member-of", "role"));
    }
}
