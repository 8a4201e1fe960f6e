//! The outcome of approving a request now, or of using an approved one now, if the agent would not
//! be allowed.

use authority_model::proto::{
    approval::{Approval, ApprovalPolicy},
    runtime::Decision,
};

use super::summary::{State, Summary};
use crate::kit::{
    prelude::*,
    text::{outcome, people, reason},
};

/// The decision if all required people had approved.
pub(super) struct WouldBe {
    pub(super) word: &'static str,
    pub(super) reason: String,
    pub(super) code: String,
    /// How many people must approve until then.
    pub(super) missing: i32,
    /// For a request that stays held: the number of people required now, whether it is higher than
    /// at the time of the request, the required roles, and the names of the policies.
    people: i32,
    pub(super) asks_for_more: bool,
    roles: Vec<String>,
    pub(super) policies: Vec<Safe<String>>,
    effect: Effect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    /// Current authority denies the action. An approval makes the request void.
    Voids,
    /// The request is held for a reason that an approval does not resolve.
    StaysHeld,
    /// Current authority requires more people than at the time of the request.
    NeedsMore,
}

/// The code of a hold that only a new snapshot resolves.
const REVALIDATION: &str = "reality_revalidation_required";

impl WouldBe {
    /// `None` if the decision is unknown or the request is no longer pending.
    pub(super) fn of(approval: &Approval, now: DateTime<Utc>) -> Option<Self> {
        Self::in_state("pending", approval, now)
    }

    /// The decision for an approved request, if citing it now would not permit the action: its
    /// approvers may no longer count, or authority has changed.
    pub(super) fn useless(approval: &Approval, now: DateTime<Utc>) -> Option<Self> {
        Self::in_state("approved", approval, now).filter(|would_be| !would_be.permits())
    }

    fn in_state(word: &str, approval: &Approval, now: DateTime<Utc>) -> Option<Self> {
        let would_be = approval.would_be.as_ref();
        let would_be = would_be.filter(|_| State::of(approval, now).word == word)?;
        let effect = match Decision::try_from(would_be.decision) {
            Ok(Decision::Deny) => Effect::Voids,
            Ok(Decision::RequireApproval) if would_be.reason_code == REVALIDATION => {
                Effect::StaysHeld
            }
            Ok(Decision::RequireApproval) => Effect::NeedsMore,
            _ => Effect::None,
        };
        Some(Self {
            word: outcome(would_be.decision),
            reason: reason(&would_be.reason_code),
            code: would_be.reason_code.clone(),
            missing: missing(approval),
            people: would_be.needed.unwrap_or_default(),
            asks_for_more: would_be.needed.is_some_and(|now| now > approval.needed),
            roles: would_be.roles.clone(),
            policies: would_be.policies.iter().map(name).collect(),
            effect,
        })
    }

    /// `2 people, legal among them`.
    pub(super) fn in_words(&self) -> String {
        people(self.people, &self.roles)
    }

    /// Describes the decision that would follow. The request was opened for `needed` approvals.
    pub(super) fn sentence(&self, needed: i32) -> Safe<String> {
        match self.missing {
            _ if !self.permits() && !self.voids() => t::inbox::with_all(self.word),
            2.. => t::inbox::with_more(self.missing, self.word),
            _ if needed > 1 => t::inbox::with_one_more(self.word),
            _ => t::inbox::if_approved_now(self.word),
        }
    }

    pub(super) fn voids(&self) -> bool {
        self.effect == Effect::Voids
    }

    /// Whether the agent may do it, once everybody needed has approved.
    pub(super) fn permits(&self) -> bool {
        self.effect == Effect::None
    }

    /// The effect of this person's approval, up to the time at which it ends. `None` if approvals
    /// alone would not permit the action.
    pub(super) fn after_approval(&self, summary: &Summary) -> Option<Safe<String>> {
        let until = summary.expires.as_ref().filter(|_| self.permits())?.time();
        Some(match self.missing {
            ..=1 => t::inbox::effect(&summary.agent, until),
            more => t::inbox::effect_after(more - 1, &summary.agent, until),
        })
    }

    pub(super) fn stays_held(&self) -> bool {
        self.effect == Effect::StaysHeld
    }

    pub(super) fn needs_more(&self) -> bool {
        self.effect == Effect::NeedsMore
    }
}

/// What people call a policy that holds a request.
fn name(policy: &ApprovalPolicy) -> Safe<String> {
    t::strong(policy.name.as_ref().unwrap_or(&policy.statement))
}

/// The number of missing people, at least one for each required role.
fn missing(approval: &Approval) -> i32 {
    let given = |role: &&String| {
        approval.acts.iter().any(|act| act.verdict == "approve" && act.role == **role)
    };
    let roles = approval.roles.iter().filter(|role| !given(role)).count();
    let people = approval.needed.saturating_sub(approval.given);
    people.max(i32::try_from(roles).unwrap_or(i32::MAX)).max(1)
}

/// Whether an approval would only make the request void.
pub(super) fn would_be_void(approval: &Approval, now: DateTime<Utc>) -> bool {
    WouldBe::of(approval, now).is_some_and(|would_be| would_be.voids())
}

#[cfg(test)]
mod tests {
    use authority_model::proto::approval;
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_role_that_is_missing_needs_a_person() {
        let role = |role: &str| approval::ApprovalAct {
            role: role.to_owned(),
            verdict: "approve".to_owned(),
            ..approval::ApprovalAct::default()
        };
        let of = |needed, roles: &[&str], acts: &[&str]| Approval {
            needed,
            given: i32::try_from(acts.len()).unwrap(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            acts: acts.iter().map(|name| role(name)).collect(),
            ..Approval::default()
        };
        for (approval, expected) in [
            (of(1, &[], &[]), 1),
            (of(2, &[], &[]), 2),
            (of(2, &[], &["approver"]), 1),
            (of(2, &["legal"], &["approver"]), 1),
            (of(1, &["legal", "approver"], &[]), 2),
        ] {
            assert_eq!(missing(&approval), expected, "{approval:?}");
        }
    }

    #[test]
    fn what_an_approval_would_not_achieve_is_known() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let of = |state: &str, decision: Decision, code: &str| Approval {
            state: state.to_owned(),
            expires_at: Some((now + TimeDelta::hours(1)).into()),
            would_be: Some(approval::WouldBe {
                decision: decision.into(),
                reason_code: code.to_owned(),
                ..approval::WouldBe::default()
            }),
            ..Approval::default()
        };
        for (decision, code, effect) in [
            (Decision::Allow, "permission_granted", Effect::None),
            (Decision::AllowWithConstraints, "permission_granted", Effect::None),
            (Decision::Deny, "actor_stopped", Effect::Voids),
            (Decision::RequireApproval, "approval_threshold_breach", Effect::NeedsMore),
            (Decision::RequireApproval, "oversight_required", Effect::NeedsMore),
            (Decision::RequireApproval, REVALIDATION, Effect::StaysHeld),
        ] {
            let approval = of("pending", decision, code);
            assert!(WouldBe::of(&approval, now).unwrap().effect == effect, "{code}");
            assert_eq!(would_be_void(&approval, now), effect == Effect::Voids, "{code}");
            let approved = of("approved", decision, code);
            assert!(WouldBe::of(&approved, now).is_none());
            assert_eq!(
                WouldBe::useless(&approved, now).is_none(),
                effect == Effect::None,
                "{code}"
            );
            assert!(WouldBe::useless(&approval, now).is_none());
        }
        assert!(
            WouldBe::of(&Approval { would_be: None, ..of("pending", Decision::Deny, "") }, now)
                .is_none()
        );
    }
}
