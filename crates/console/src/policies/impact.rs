//! The effect of a text on the tenant's last decisions, compared with the active policies.

use std::collections::BTreeMap;

use authority_ids::DecisionRef;
use authority_model::proto::{
    registry::Policy,
    runtime::{
        CandidatePolicy, ChangedDecision, ImpactPoliciesRequest, InspectDecisionRequest, Outcome,
    },
};

use crate::kit::{prelude::*, text};

/// The number of newest decisions against which a text is run.
const LAST: i32 = 200;
/// The maximum number of changed decisions with an amount. Each amount takes a call.
const AMOUNTS: usize = 20;

/// The effect on the last decisions.
pub(super) struct Impact {
    /// Decisions that the text was run against.
    pub(super) run: u32,
    pub(super) changed_total: u32,
    /// Decisions that could not be decided again.
    pub(super) unreadable: u32,
    /// The changes of the listed decisions, in a sentence; empty if there are none.
    pub(super) summary: String,
    /// The newest changed decisions.
    pub(super) changed: Vec<Changed>,
}

/// A decision that would have another outcome.
pub(super) struct Changed {
    pub(super) id: DecisionRef,
    pub(super) agent: String,
    pub(super) action: String,
    /// `None` if it has no amount or was not read.
    pub(super) amount: Option<Amount>,
    pub(super) at: Option<Moment>,
    pub(super) before: Verdict,
    pub(super) after: Verdict,
}

/// An outcome. If both outcomes have the same word, only the differing part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) word: &'static str,
    /// `2 people, legal among them`, if people are needed.
    pub(super) people: Option<String>,
    pub(super) reason_code: Option<String>,
    /// Obligations and stop conditions.
    pub(super) terms: Vec<String>,
}

impl Impact {
    pub(super) fn has_more(&self) -> bool {
        usize::try_from(self.changed_total).is_ok_and(|total| total > self.changed.len())
    }

    pub(super) fn has_amounts(&self) -> bool {
        self.changed.iter().any(|changed| changed.amount.is_some())
    }
}

/// Runs the text instead of the policy's current text against the tenant's last decisions.
///
/// # Errors
/// The errors of the operation.
pub(super) async fn run(view: &View, policy: &Policy, cedar: &str) -> Result<Impact, Status> {
    let candidate = CandidatePolicy {
        policy_id: Some(policy.id.clone()),
        cedar: cedar.to_owned(),
        applies_to: Vec::new(),
    };
    with(view, policy, candidate).await
}

/// Makes the last decisions again with a candidate, added or in the place of its policy.
///
/// # Errors
/// The errors of the operation.
pub(super) async fn with(
    view: &View,
    policy: &Policy,
    candidate: CandidatePolicy,
) -> Result<Impact, Status> {
    let request = ImpactPoliciesRequest {
        candidate_policies: vec![candidate],
        ..ImpactPoliciesRequest::default()
    };
    of_change(view, policy, request).await
}

/// Makes the last decisions again without the policy.
///
/// # Errors
/// The errors of the operation.
pub(super) async fn without(view: &View, policy: &Policy) -> Result<Impact, Status> {
    let request = ImpactPoliciesRequest {
        without_policies: vec![policy.id.clone()],
        ..ImpactPoliciesRequest::default()
    };
    of_change(view, policy, request).await
}

/// Makes the last decisions of the policy's tenant again, with the change in `request`.
async fn of_change(
    view: &View,
    policy: &Policy,
    mut request: ImpactPoliciesRequest,
) -> Result<Impact, Status> {
    request.tenant_id = Some(policy.tenant_id.clone());
    request.last = Some(LAST);
    request.compared_with = Some("present".to_owned());
    let found = view.calls.call(&request).await?;
    let mut changed: Vec<_> = found.changed.into_iter().map(|one| changed(view, one)).collect();
    let newest = changed.iter().take(AMOUNTS).map(|changed| changed.id.clone());
    let amounts = some_at_once(newest.map(|id| amount(view, id))).await;
    for (changed, amount) in changed.iter_mut().zip(amounts) {
        changed.amount = amount;
    }
    Ok(Impact {
        run: found.considered.saturating_sub(found.unreadable),
        changed_total: found.changed_total,
        unreadable: found.unreadable,
        summary: summary(&changed),
        changed,
    })
}

fn changed(view: &View, changed: ChangedDecision) -> Changed {
    let (before, after) =
        compared(changed.before.unwrap_or_default(), changed.after.unwrap_or_default());
    Changed {
        agent: short(&changed.subject).to_owned(),
        at: Moment::of_time(changed.evaluated_at, view.now),
        amount: None,
        before,
        after,
        id: changed.decision_id.into(),
        action: changed.action,
    }
}

/// The amount in a decision's request.
async fn amount(view: &View, decision_id: DecisionRef) -> Option<Amount> {
    if !view.may(rpc::INSPECT_DECISION) {
        return None;
    }
    let request = InspectDecisionRequest { decision_id: decision_id.into(), context: true };
    let read = view.calls.call(&request).await;
    Amount::of(&read.ok()?.context?.value?.0)
}

/// Both outcomes, with what differs.
fn compared(before: Outcome, after: Outcome) -> (Verdict, Verdict) {
    let (mut before, mut after) = (verdict(before), verdict(after));
    if before.word == after.word {
        if before.people == after.people {
            (before.people, after.people) = (None, None);
        }
        if before.reason_code == after.reason_code {
            (before.reason_code, after.reason_code) = (None, None);
        }
        let all = before.terms.clone();
        before.terms.retain(|term| !after.terms.contains(term));
        after.terms.retain(|term| !all.contains(term));
    }
    (before, after)
}

fn verdict(outcome: Outcome) -> Verdict {
    let people = outcome.approvals_needed;
    let people = people.map(|needed| text::people(needed.count, &needed.roles));
    Verdict {
        word: text::outcome(outcome.decision),
        reason_code: Some(outcome.reason_code),
        people,
        terms: [outcome.obligations, outcome.stop_conditions].concat(),
    }
}

/// The numbers of decisions with each new outcome, and the differences in the others.
fn summary(changed: &[Changed]) -> String {
    if changed.is_empty() {
        return String::new();
    }
    let newly = |word| {
        let becomes = |one: &&Changed| one.after.word == word && one.before.word != word;
        changed.iter().filter(becomes).count()
    };
    let mut parts = Vec::new();
    for word in ["allowed", "denied", "held"] {
        match newly(word) {
            0 => {}
            count => parts.push(t::policies::newly(count, word)),
        }
    }
    if newly("allowed") + newly("denied") == 0 {
        parts.insert(0, t::policies::NONE_NEWLY.to_owned());
    }
    let mut same: BTreeMap<(&str, Difference<'_>), usize> = BTreeMap::new();
    for one in changed.iter().filter(|one| one.before.word == one.after.word) {
        *same.entry((one.after.word, difference(&one.before, &one.after))).or_default() += 1;
    }
    for ((word, difference), count) in same {
        parts.push(difference.words(count, word));
    }
    format!("{}.", text::capitalized(&parts.join("; ")))
}

/// What differs in two outcomes with the same word, in the order of the summary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Difference<'a> {
    People { after: &'a str, before: Option<&'a str> },
    Reason,
    Conditions,
}

fn difference<'a>(before: &'a Verdict, after: &'a Verdict) -> Difference<'a> {
    match &after.people {
        Some(people) => Difference::People { after: people, before: before.people.as_deref() },
        None if before.terms.is_empty() && after.terms.is_empty() => Difference::Reason,
        None => Difference::Conditions,
    }
}

impl Difference<'_> {
    /// The difference of this number of decisions, in words.
    fn words(&self, count: usize, outcome: &str) -> String {
        match self {
            Self::People { after, before: Some(before) } => {
                t::policies::stays_needs_instead(count, outcome, after, before)
            }
            Self::People { after, before: None } => t::policies::stays_needs(count, outcome, after),
            Self::Reason => t::policies::stays_other_reason(count, outcome),
            Self::Conditions => t::policies::stays_other_conditions(count, outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use authority_model::proto::runtime::{ApprovalsNeeded, Decision};

    use super::*;

    fn outcome(decision: Decision, people: u32, terms: &[&str]) -> Outcome {
        let needed = ApprovalsNeeded { count: people, roles: Vec::new() };
        Outcome {
            decision: decision.into(),
            reason_code: "approval_threshold_breach".to_owned(),
            obligations: terms.iter().map(|term| (*term).to_owned()).collect(),
            approvals_needed: (people > 0).then_some(needed),
            ..Outcome::default()
        }
    }

    fn of((before, after): (Verdict, Verdict)) -> Changed {
        let (id, agent, action) = (DecisionRef::default(), String::new(), String::new());
        Changed { id, agent, action, amount: None, at: None, before, after }
    }

    #[test]
    fn what_differs_is_said_where_the_word_does_not() {
        use Decision::{Allow, Deny, RequireApproval};
        let held = |people| outcome(RequireApproval, people, &["log_action"]);
        let (before, after) = compared(held(1), held(2));
        assert_eq!((before.word, before.people.as_deref()), ("held", Some("1 person")));
        assert_eq!((after.word, after.people.as_deref()), ("held", Some("2 people")));
        assert!(after.terms.is_empty() && after.reason_code.is_none());
        let more = || outcome(RequireApproval, 1, &["log_action", "notify_owner"]);
        let (before, after) = compared(held(1), more());
        assert_eq!((before.people, before.terms), (None, Vec::<String>::new()));
        assert_eq!(after.terms, ["notify_owner"]);

        let two: Vec<_> = (0..7).map(|_| of(compared(held(1), held(2)))).collect();
        assert_eq!(
            summary(&two),
            "None is newly allowed or denied; 7 stay held but need 2 people instead of 1 person."
        );
        let mixed = [
            of(compared(outcome(Allow, 0, &[]), outcome(Deny, 0, &[]))),
            of(compared(held(1), more())),
        ];
        assert_eq!(summary(&mixed), "1 is newly denied; 1 stays held with other conditions.");
        assert_eq!(summary(&[]), "");
    }
}
