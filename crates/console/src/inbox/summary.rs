//! The parts of a sentence that describes a request.

use authority_decision::Reason;
use authority_model::{
    proto::approval::{Approval, ApprovalPolicy},
    wire::Time,
};

use super::presented::Presented;
use crate::kit::{
    prelude::*,
    text::{self, reason},
};

/// A request, as lists and confirmations show it.
pub(crate) struct Summary {
    pub(crate) id: String,
    /// The tenant's slug.
    pub(super) tenant: String,
    pub(super) agent: String,
    pub(super) action: String,
    pub(super) amount: Option<Amount>,
    /// The request as people see it.
    pub(super) presented: Presented,
    pub(super) purpose: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) reason_code: String,
    /// The reason code's sentence.
    pub(super) reason: String,
    /// Why it was held: the policies that held it, or else the reason code's sentence.
    pub(super) why: String,
    pub(super) asked: Option<Moment>,
    pub(super) expires: Option<Moment>,
    /// The time until which the same request is denied, if it was declined.
    denied_until: Option<Moment>,
    pub(super) state: State,
    /// How many people must approve, as the request was opened.
    pub(super) needed: i32,
    /// How many have.
    given: i32,
    /// `1 of 2 approvals`.
    pub(super) progress: String,
    /// Roles that the approvers must include.
    pub(super) roles: String,
    pub(super) request_digest: String,
}

/// The state of a request, for people.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct State {
    /// As the API has it; also the colour.
    pub(super) word: String,
    pub(super) label: &'static str,
    pub(super) is_pending: bool,
}

impl State {
    /// A request past its expiry time is expired, even if the state is not stored yet.
    pub(super) fn of(approval: &Approval, now: DateTime<Utc>) -> Self {
        let ended = approval.expires_at.and_then(Time::moment).is_none_or(|end| end <= now);
        let word = match approval.state.as_str() {
            "pending" | "approved" if ended => "expired",
            word => word,
        };
        Self { word: word.to_owned(), label: text::state(word), is_pending: word == "pending" }
    }

    /// Whether the state can no longer change.
    pub(super) fn is_final(&self) -> bool {
        !["pending", "approved"].contains(&self.word.as_str())
    }
}

impl Summary {
    pub(crate) fn of(approval: &Approval, now: DateTime<Utc>) -> Self {
        let question = approval.request.as_ref().map(|request| &request.0);
        let member = |name: &str| {
            let text = question?.get(name)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let context = question.and_then(|question| question.get("context")?.as_object());
        Self {
            id: approval.id.clone(),
            tenant: short(&approval.tenant_id).to_owned(),
            agent: short(&approval.subject).to_owned(),
            action: approval.action.clone(),
            amount: context.and_then(Amount::of),
            presented: Presented::of(approval),
            purpose: member("purpose"),
            resource: member("resource_id"),
            reason_code: approval.reason_code.clone(),
            reason: reason(&approval.reason_code),
            why: why(approval),
            asked: Moment::of_time(approval.created_at, now),
            expires: Moment::of_time(approval.expires_at, now),
            denied_until: Moment::of_time(approval.declined_until, now),
            state: State::of(approval, now),
            needed: approval.needed,
            given: approval.given,
            progress: t::inbox::given(approval.needed, approval.given),
            roles: approval.roles.join(", "),
            request_digest: approval.request_digest.clone(),
        }
    }

    /// The last part of its id.
    pub(super) fn short_id(&self) -> &str {
        short(&self.id)
    }

    /// The outcome if no person answers, or the final outcome.
    pub(super) fn fate(&self) -> String {
        let at = self.expires.as_ref().map(|at| at.shown.as_str()).unwrap_or_default();
        match self.state.word.as_str() {
            "pending" => t::inbox::ends_undecided(at),
            "approved" => t::inbox::usable_until(at),
            "expired" if self.given >= self.needed => t::inbox::expired_unused(at),
            "expired" => t::inbox::expired_undecided(at),
            "declined" => match &self.denied_until {
                Some(until) => t::inbox::denied_until(&until.shown),
                None => t::inbox::WAS_DECLINED.to_owned(),
            },
            "used" => t::inbox::WAS_USED.to_owned(),
            _ => String::new(),
        }
    }

    /// `1 of 2`.
    pub(super) fn given_of_needed(&self) -> String {
        t::inbox::given_of(self.given, self.needed)
    }

    /// The heading of the reason why it was held.
    pub(super) fn why_heading(&self) -> &'static str {
        if self.state.is_pending { t::inbox::WHY_WAITS } else { t::inbox::WHY_HELD }
    }

    /// In one line, for a page's title.
    pub(super) fn line(&self) -> String {
        match &self.amount {
            Some(amount) => format!("{}: {}, {}", self.agent, self.action, amount.plain()),
            None => format!("{}: {}", self.agent, self.action),
        }
    }
}

/// Why it was held, for people: the name and the advice of each policy that held it.
fn why(approval: &Approval) -> String {
    let policy = |policy: &ApprovalPolicy| {
        text::policy(policy.name.as_deref().unwrap_or(&policy.statement), policy.advice.as_deref())
    };
    let policies: Vec<String> = approval.policies.iter().map(policy).collect();
    let sentence = reason(&approval.reason_code);
    if policies.is_empty() {
        return sentence;
    }
    let held = t::held_by(policies.join("; "));
    match Reason::from_word(&approval.reason_code) {
        // The policies are more specific than these codes.
        Some(Reason::Own(_) | Reason::ApprovalThresholdBreach) | None => held,
        Some(_) => format!("{sentence}. {held}"),
    }
}

/// Whether the question was erased.
pub(super) fn is_erased(approval: &Approval) -> bool {
    approval.request.as_ref().is_none_or(|request| request.0.values().all(Value::is_null))
}
