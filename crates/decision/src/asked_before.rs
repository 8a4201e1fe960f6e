//! What takes the place of a hold that nothing meets: its question was declined, or its subject has as many open
//! requests as its tenant permits. Never of an allow, nor of another denial.

use super::{
    case::Case,
    facts::{Declined, OpenRequests},
    moment,
    reason::Reason,
    rules::Rules,
    trace_step::{Outcome, Step},
};

/// Why a hold is a denial instead.
pub(super) enum Refusal<'a> {
    Declined(&'a Declined),
    LimitReached(OpenRequests),
}

impl<'a> Refusal<'a> {
    /// `None` if nothing is held, or something denies it anyway; and if an approval meets what is asked of people,
    /// since that comes first.
    pub(super) fn of(case: &Case<'a>, rules: &Rules<'_>) -> Option<Self> {
        let held = rules.denials.is_empty() && !rules.holds.is_empty();
        if !held || rules.approval.is_some() {
            return None;
        }
        if let Some(declined) = &case.facts.declined {
            return Some(Self::Declined(declined));
        }
        // What people cannot resolve opens no request.
        let open = case.facts.open_requests.filter(|_| !rules.needed.is_nobody());
        open.filter(|open| open.pending >= open.limit).map(Self::LimitReached)
    }

    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Declined(_) => Reason::ApprovalDeclined,
            Self::LimitReached(_) => Reason::ApprovalLimitReached,
        }
    }

    /// With `explain`.
    pub(super) fn step(&self) -> Step {
        let (kind, id, detail) = match self {
            Self::Declined(declined) => (
                "approval",
                declined.approval_id.clone(),
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
        let (kind, reason_code) = (kind.to_owned(), Some(self.reason()));
        Step { kind, id, outcome: Outcome::Refuse, reason_code, detail }
    }
}
