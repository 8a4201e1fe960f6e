//! The approvals of a held decision, and the state of its request. Only a pending request can be
//! approved or declined.

use authority_ids::{ApprovalRef, DecisionRef};
use authority_ledger::spending::{APPROVE, DECLINE, WITHDRAW};
use authority_model::{
    proto::approval::{ApprovalAct, ApprovalPolicy},
    state::ApprovalState,
};
use chrono::{DateTime, Utc};

use super::{
    read::Approval,
    show::{Moment, visible},
};

pub(super) struct People {
    pub(super) id: ApprovalRef,
    pub(super) needed: String,
    /// The number of given and of required approvals: `1 of 2`.
    pub(super) progress: String,
    pub(super) given: Vec<GivenApproval>,
    /// The approvals that are still missing while the request is pending.
    pub(super) missing: Vec<&'static str>,
    /// The policies that held the decision.
    pub(super) policies: Vec<Policy>,
    pub(super) state: State,
    /// The final state, shown next to the headline; `None` while the request is pending.
    pub(super) became: Option<&'static str>,
    /// The held decision.
    pub(super) held: DecisionRef,
    /// The decision that used the approval.
    pub(super) used_by: Option<DecisionRef>,
    /// The address at which people decide the request, while it is pending.
    pub(super) decide: Option<String>,
}

pub(super) struct Policy {
    /// The policy's current name.
    pub(super) name: Option<String>,
    pub(super) statement: String,
    pub(super) advice: Option<String>,
}

pub(super) struct GivenApproval {
    pub(super) role: String,
    pub(super) at: Moment,
}

/// The state of the request as text, and the time at the end of the text.
pub(super) struct State {
    pub(super) words: String,
    pub(super) at: Moment,
}

impl People {
    pub(super) fn of(approval: Approval, console: bool, now: DateTime<Utc>) -> Self {
        let approving: Vec<_> = approval.acts.iter().filter(|act| act.verdict == APPROVE).collect();
        let needed = usize::try_from(approval.needed).unwrap_or_default();
        let legal = approval.roles.iter().any(|role| role == LEGAL);
        let waits = state(&approval, now) == Some(ApprovalState::Pending);
        let given = approving.iter().filter_map(|act| {
            Some(GivenApproval { role: act.role.clone(), at: Moment::of(act.at?.moment()?) })
        });
        Self {
            needed: match (needed, legal) {
                (1, false) => "1 person".to_owned(),
                (1, true) => "1 person for legal".to_owned(),
                (count, false) => format!("{count} people"),
                (count, true) => format!("{count} people, one of them for legal"),
            },
            progress: format!("{} of {needed}", approving.len().min(needed)),
            given: given.collect(),
            missing: if waits { missing(&approving, needed, legal) } else { Vec::new() },
            policies: approval.policies.iter().map(policy).collect(),
            state: State::of(&approval, now),
            became: became(state(&approval, now)),
            held: approval.decision_id,
            used_by: approval.used_by.map(DecisionRef::from),
            decide: (waits && console).then(|| format!("/console/approvals/{}", approval.id)),
            id: approval.id,
        }
    }
}

/// A role that may be required among the approvers.
const LEGAL: &str = "legal";

fn missing(approving: &[&ApprovalAct], needed: usize, legal: bool) -> Vec<&'static str> {
    let mut open = needed.saturating_sub(approving.len());
    let mut missing = Vec::new();
    if legal && !approving.iter().any(|act| act.role == LEGAL) {
        missing.push("a person for legal");
        open = open.saturating_sub(1);
    }
    missing.extend(std::iter::repeat_n("any approver", open));
    missing
}

fn policy(policy: &ApprovalPolicy) -> Policy {
    Policy {
        name: policy.name.as_deref().map(visible),
        statement: visible(&policy.statement),
        advice: policy.advice.as_deref().map(visible),
    }
}

/// The request's state. A request after its expiry time is expired, even if that is not stored yet.
/// `None` if the state is unknown.
fn state(approval: &Approval, now: DateTime<Utc>) -> Option<ApprovalState> {
    match approval.state.parse().ok()? {
        ApprovalState::Pending | ApprovalState::Approved if approval.expires_at <= now => {
            Some(ApprovalState::Expired)
        }
        state => Some(state),
    }
}

impl State {
    fn of(approval: &Approval, now: DateTime<Utc>) -> Self {
        let withdrawn = approval.acts.last().is_some_and(|act| act.verdict == WITHDRAW);
        let (words, at) = match state(approval, now) {
            Some(ApprovalState::Pending) => ("Waits for approval, until", approval.expires_at),
            Some(ApprovalState::Approved) => {
                ("Approved and not used yet; it can be used until", approval.expires_at)
            }
            Some(ApprovalState::Used) => ("Used on", approval.updated_at),
            Some(ApprovalState::Declined) => ("Declined", approval.updated_at),
            Some(ApprovalState::Expired) => ("Expired on", approval.expires_at),
            Some(ApprovalState::Void) if withdrawn => {
                ("The approval was withdrawn on", approval.updated_at)
            }
            Some(ApprovalState::Void) => {
                ("Void: it was no longer permitted when it was approved, on", approval.updated_at)
            }
            None => ("Ended on", approval.updated_at),
        };
        // A declined request may have been reopened later.
        let mut acts = approval.acts.iter().rev();
        let role = acts.find(|act| act.verdict == DECLINE).map(|act| &act.role);
        let words = match role {
            Some(role) if words == "Declined" => format!("Declined as {role}, on"),
            _ if words == "Declined" => "Declined on".to_owned(),
            _ => words.to_owned(),
        };
        Self { words, at: Moment::of(at) }
    }
}

/// The final state in a few words.
fn became(state: Option<ApprovalState>) -> Option<&'static str> {
    Some(match state? {
        ApprovalState::Pending => return None,
        ApprovalState::Approved => "approved, not used yet",
        ApprovalState::Used => "approved and used",
        ApprovalState::Declined => "declined",
        ApprovalState::Expired => "expired",
        ApprovalState::Void => "void",
    })
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn approval(state: &str, verdicts: &[&str]) -> Approval {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let act = |verdict: &&str| ApprovalAct {
            verdict: (*verdict).to_owned(),
            role: "admin".to_owned(),
            ..<_>::default()
        };
        Approval {
            id: "svc:approval:1".into(),
            needed: 2,
            roles: vec![LEGAL.to_owned()],
            acts: verdicts.iter().map(act).collect(),
            state: state.to_owned(),
            policies: Vec::new(),
            decision_id: "svc:decision:1".into(),
            used_by: None,
            expires_at: at + TimeDelta::hours(24),
            updated_at: at,
        }
    }

    #[test]
    fn only_a_request_that_waits_is_open_for_anybody() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::hours(1);
        for (state, verdicts, hours, words) in [
            ("pending", &["approve"][..], 0, "Waits for approval, until"),
            ("pending", &[], 24, "Expired on"),
            ("expired", &[], 0, "Expired on"),
            ("declined", &["approve", "decline"], 0, "Declined as admin, on"),
            ("approved", &["approve", "approve"], 0, "Approved and not used yet"),
            ("approved", &["approve", "approve"], 24, "Expired on"),
            ("used", &["approve", "approve"], 0, "Used on"),
            ("void", &["approve", "approve"], 0, "Void: "),
            ("void", &["approve", "approve", "withdraw"], 0, "The approval was withdrawn on"),
            ("other", &[], 0, "Ended on"),
        ] {
            let people = People::of(approval(state, verdicts), true, now + TimeDelta::hours(hours));
            assert!(people.state.words.starts_with(words), "{state}: {}", people.state.words);
            let waits = words.starts_with("Waits");
            assert_eq!(
                (people.decide.is_some(), !people.missing.is_empty(), people.became.is_none()),
                (waits, waits, waits || state == "other"),
                "{state}"
            );
        }
    }
}
