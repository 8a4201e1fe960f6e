//! Denials that replace a hold: the question was declined, or its subject has too many open
//! requests.
//!
//! Such a denial applies only if the request would be held and its approval doesn't suffice. It
//! never replaces an allow or another denial.

use crate::{
    authority::{
        case::Case,
        trace_step::{Outcome, TraceStep},
    },
    facts::records::{Declined, OpenRequests},
    moment,
    reason::Reason,
    rules::combined::Rules,
};

/// The reason why a hold becomes a denial.
pub(crate) enum Refusal<'a> {
    Declined(&'a Declined),
    LimitReached(OpenRequests),
}

impl<'a> Refusal<'a> {
    /// Checks a request that would be held.
    ///
    /// Returns `None` if it isn't held, if it is denied for another reason, or if an approval
    /// suffices: the approval comes first.
    pub(crate) fn of(case: &Case<'a>, rules: &Rules<'_>) -> Option<Self> {
        let held = rules.denials.is_empty() && !rules.holds.is_empty();
        if !held || rules.approval.is_some() {
            return None;
        }
        if let Some(declined) = &case.facts.declined {
            return Some(Self::Declined(declined));
        }
        // A hold that people can't resolve does not open a request.
        let open = case.facts.open_requests.filter(|_| !rules.needed.is_nobody());
        open.filter(|open| open.pending >= open.limit).map(Self::LimitReached)
    }

    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Declined(_) => Reason::ApprovalDeclined,
            Self::LimitReached(_) => Reason::ApprovalLimitReached,
        }
    }

    /// Returns the step to show with `explain`.
    pub(crate) fn step(&self) -> TraceStep {
        let (kind, id, detail) = match self {
            Self::Declined(declined) => (
                "approval",
                String::from(&declined.approval_id),
                format!(
                    "was declined at {}; the question is denied for a while, or until a person reopens it",
                    moment::text(declined.at)
                ),
            ),
            Self::LimitReached(open) => (
                "open_requests",
                String::new(),
                format!(
                    "{} requests of the subject are pending, and the tenant permits {}",
                    open.pending, open.limit
                ),
            ),
        };
        TraceStep::new(kind, id, Outcome::Refuse, Some(self.reason()), detail)
    }
}
