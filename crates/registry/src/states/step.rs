//! The rules of a machine: its validity, and one move from one state. Pure functions.

use std::collections::BTreeSet;

use authority_model::{
    proto::states::{StateMachine, StateRule},
    validate::Violations,
};

/// A move that the machine allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AllowedMove<'m> {
    /// The first move of a record, into the initial state.
    Begin(&'m str),
    /// A move by a rule.
    Ruled(&'m StateRule),
    /// A move in a machine without rules.
    Free(&'m str),
}

impl<'m> AllowedMove<'m> {
    pub(super) fn to(self) -> &'m str {
        match self {
            Self::Begin(state) | Self::Free(state) => state,
            Self::Ruled(rule) => &rule.to,
        }
    }

    pub(super) fn rule(self) -> Option<&'m StateRule> {
        match self {
            Self::Ruled(rule) => Some(rule),
            Self::Begin(_) | Self::Free(_) => None,
        }
    }
}

/// The requested move.
#[derive(Clone, Copy)]
pub(super) struct RequestedMove<'a> {
    pub trigger: Option<&'a str>,
    pub to: Option<&'a str>,
}

/// Returns the initial state of the machine's records. Every stored machine has one.
pub(super) fn initial(machine: &StateMachine) -> &str {
    machine.initial_state.as_deref().unwrap_or_default()
}

/// Returns the move out of `at`, or the reason why there is none. `at` is `None` for a new record.
pub(super) fn step<'m>(
    machine: &'m StateMachine,
    at: Option<&str>,
    asked: RequestedMove<'_>,
) -> Result<AllowedMove<'m>, String> {
    let first = initial(machine);
    if at.is_none() && asked.trigger.is_none() && asked.to == Some(first) {
        return Ok(AllowedMove::Begin(first));
    }
    let here = at.unwrap_or(first);
    if machine.transitions.is_empty() {
        return free(machine, here, asked);
    }
    let out: Vec<&StateRule> = machine
        .transitions
        .iter()
        .filter(|rule| rule.from.iter().any(|from| from == here))
        .collect();
    let meant: Vec<_> = out
        .iter()
        .filter(|rule| asked.trigger.is_none_or(|trigger| rule.trigger == trigger))
        .filter(|rule| asked.to.is_none_or(|to| rule.to == to))
        .collect();
    match meant[..] {
        [rule] => Ok(AllowedMove::Ruled(rule)),
        [] if out.is_empty() => Err(format!("no move leads out of `{here}`")),
        [] => Err(format!("out of `{here}` the machine allows {}", listed(&out))),
        [..] => Err(format!("several moves lead there; name the `trigger`: {}", listed(&out))),
    }
}

fn free<'m>(
    machine: &'m StateMachine,
    here: &str,
    asked: RequestedMove<'_>,
) -> Result<AllowedMove<'m>, String> {
    if machine.final_states.iter().any(|state| state == here) {
        return Err(format!("`{here}` is a final state"));
    }
    let to = asked.to.filter(|to| asked.trigger.is_none() && *to != here);
    let to = to.and_then(|to| machine.states.iter().find(|state| *state == to));
    to.map(|state| AllowedMove::Free(state)).ok_or_else(|| {
        format!("the machine has no rules: set `to_state` to another of its states than `{here}`")
    })
}

fn listed(rules: &[&StateRule]) -> String {
    let each = rules.iter().map(|rule| format!("`{}` to `{}`", rule.trigger, rule.to));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the kinds of evidence that a rule requires but `given` lacks.
pub(super) fn missing<'m>(rule: &'m StateRule, given: &[String]) -> Vec<&'m str> {
    let is_given = |kind: &&String| {
        let of_kind = |reference: &String| {
            reference
                .strip_prefix(kind.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.starts_with(':'))
        };
        given.iter().any(of_kind)
    };
    rule.required_evidence.iter().filter(|kind| !is_given(kind)).map(String::as_str).collect()
}

/// Reports inconsistencies of a machine.
pub(super) fn check(machine: &StateMachine, found: &mut Violations) {
    let known = |state: &String| machine.states.contains(state);
    if machine.initial_state.as_ref().is_some_and(|state| !known(state)) {
        found.add("initial_state", "must be one of `states`");
    }
    for (index, state) in machine.final_states.iter().enumerate() {
        if !known(state) {
            found.add(&format!("final_states[{index}]"), "must be one of `states`");
        }
    }
    let mut taken = BTreeSet::new();
    for (index, rule) in machine.transitions.iter().enumerate() {
        let at = |member: &str| format!("transitions[{index}].{member}");
        if !known(&rule.to) {
            found.add(&at("to"), "must be one of `states`");
        }
        for (place, from) in rule.from.iter().enumerate() {
            if !known(from) {
                found.add(&at(&format!("from[{place}]")), "must be one of `states`");
            } else if !taken.insert((from, &rule.trigger)) {
                let problem = format!("`{from}` has another move with this trigger");
                found.add(&at("trigger"), problem);
            }
        }
        if let Some(compensated) = &rule.compensates
            && !machine.transitions.iter().any(|other| other.trigger == *compensated)
        {
            found.add(&at("compensates"), "must be the trigger of a move of this machine");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(trigger: &str, from: &[&str], to: &str) -> StateRule {
        StateRule {
            trigger: trigger.to_owned(),
            from: from.iter().map(|&state| state.to_owned()).collect(),
            to: to.to_owned(),
            ..StateRule::default()
        }
    }

    fn machine(rules: Vec<StateRule>) -> StateMachine {
        StateMachine {
            states: ["draft", "sent", "paid", "void"].map(str::to_owned).to_vec(),
            initial_state: Some("draft".to_owned()),
            final_states: vec!["void".to_owned()],
            transitions: rules,
            ..StateMachine::default()
        }
    }

    fn to<'m>(machine: &'m StateMachine, at: Option<&str>, state: &str) -> Result<&'m str, String> {
        step(machine, at, RequestedMove { trigger: None, to: Some(state) }).map(AllowedMove::to)
    }

    #[test]
    fn rules_alone_say_what_is_allowed() {
        let ruled = machine(vec![
            rule("send", &["draft"], "sent"),
            rule("pay", &["sent"], "paid"),
            rule("cancel", &["draft", "sent"], "void"),
            rule("lose", &["sent"], "void"),
        ]);
        assert_eq!(to(&ruled, None, "draft"), Ok("draft"));
        assert_eq!(to(&ruled, None, "sent"), Ok("sent"));
        assert_eq!(to(&ruled, Some("draft"), "sent"), Ok("sent"));
        let why = to(&ruled, Some("draft"), "paid").unwrap_err();
        assert_eq!(why, "out of `draft` the machine allows `send` to `sent`, `cancel` to `void`");
        assert!(to(&ruled, Some("draft"), "draft").is_err());
        assert!(to(&ruled, Some("sent"), "void").unwrap_err().contains("name the `trigger`"));
        let lose = RequestedMove { trigger: Some("lose"), to: None };
        assert_eq!(step(&ruled, Some("sent"), lose).map(AllowedMove::to), Ok("void"));
        let other = RequestedMove { trigger: Some("lose"), to: Some("paid") };
        assert!(step(&ruled, Some("sent"), other).is_err());
        assert_eq!(to(&ruled, Some("void"), "draft").unwrap_err(), "no move leads out of `void`");
    }

    #[test]
    fn without_rules_all_but_final_states_are_left() {
        let open = machine(Vec::new());
        assert_eq!(to(&open, Some("sent"), "draft"), Ok("draft"));
        assert!(to(&open, Some("sent"), "sent").is_err());
        assert!(to(&open, Some("sent"), "nowhere").is_err());
        assert!(to(&open, Some("void"), "draft").is_err());
        let named = RequestedMove { trigger: Some("send"), to: Some("draft") };
        assert!(step(&open, Some("sent"), named).is_err());
    }

    #[test]
    fn evidence_is_matched_by_kind() {
        let needs = StateRule {
            required_evidence: vec!["invoice".to_owned(), "receipt".to_owned()],
            ..rule("pay", &["sent"], "paid")
        };
        let given = |refs: &[&str]| refs.iter().map(|&r| r.to_owned()).collect::<Vec<_>>();
        assert_eq!(missing(&needs, &given(&["invoice:1", "receipt:x:2"])), Vec::<&str>::new());
        assert_eq!(missing(&needs, &given(&["invoice:", "receipts:2"])), ["invoice", "receipt"]);
    }

    #[test]
    fn a_machine_must_fit_together() {
        let mut found = Violations::default();
        let bad = StateMachine {
            initial_state: Some("gone".to_owned()),
            transitions: vec![
                rule("send", &["draft"], "nowhere"),
                rule("send", &["draft"], "sent"),
                StateRule { compensates: Some("x".to_owned()), ..rule("undo", &["sent"], "draft") },
            ],
            ..machine(Vec::new())
        };
        check(&bad, &mut found);
        let fields: Vec<_> = found.list.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "initial_state",
                "transitions[0].to",
                "transitions[1].trigger",
                "transitions[2].compensates",
            ]
        );
    }
}
