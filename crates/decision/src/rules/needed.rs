//! The approvals that an action needs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{facts::records::Signature, levels::Oversight};

/// The legal role.
pub(crate) const LEGAL: &str = "legal";

/// The number of people, and whether a person with the legal role must be among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) count: u32,
    pub(crate) legal: bool,
    /// At least one person must have approved after this time, when the reviewed finding began.
    pub(crate) after: Option<DateTime<Utc>>,
}

impl Needed {
    pub(crate) fn people(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    /// Requires one person, who reviews a finding that began at `since`.
    pub(crate) fn review(since: DateTime<Utc>) -> Self {
        Self { after: Some(since), ..Self::people(1) }
    }

    pub(crate) fn oversight(level: Oversight) -> Self {
        match level {
            // A prohibited action is refused. People cannot approve it.
            Oversight::None | Oversight::Prohibited => Self::default(),
            Oversight::SingleApprover => Self::people(1),
            Oversight::TwoPerson => Self::people(2),
            Oversight::TwoPersonWithLegal => Self { legal: true, ..Self::people(2) },
        }
    }

    /// Adds the approvals that another hold needs. One approval serves all holds: the highest
    /// number of people counts.
    pub(crate) fn take(&mut self, other: Self) {
        self.count = self.count.max(other.count);
        self.legal |= other.legal;
        self.after = self.after.max(other.after);
    }

    pub(crate) fn is_nobody(self) -> bool {
        self.count == 0
    }

    /// Whether the signatures are enough.
    ///
    /// A person who signed twice counts once. A person who signed in their own interest counts only
    /// if one person is needed, never if two are.
    pub(crate) fn is_met_by(self, given: &[Signature]) -> bool {
        let counted = || given.iter().filter(|signature| self.count < 2 || !signature.own_interest);
        let mut people: Vec<&str> = counted().map(|signature| signature.by.as_str()).collect();
        people.sort_unstable();
        people.dedup();
        let enough = u32::try_from(people.len()).is_ok_and(|count| count >= self.count);
        let is_later = |after| move |one: &Signature| one.at.is_some_and(|at| at > after);
        enough
            && (!self.legal || counted().any(|signature| signature.role == LEGAL))
            && self.after.is_none_or(|after| counted().any(is_later(after)))
    }

    pub(crate) fn approvals_needed(self) -> Option<ApprovalsNeeded> {
        let roles = if self.legal { vec![LEGAL.to_owned()] } else { Vec::new() };
        (!self.is_nobody()).then_some(ApprovalsNeeded { count: self.count, roles })
    }
}

/// The people who must approve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalsNeeded {
    pub count: u32,
    /// Each of these roles must be held by at least one person.
    pub roles: Vec<String>,
}

impl ApprovalsNeeded {
    /// Whether the approvals are enough. A person who signed twice counts once.
    #[must_use]
    pub fn is_met_by(&self, given: &[Signature]) -> bool {
        let legal = self.roles.iter().any(|role| role == LEGAL);
        Needed { count: self.count, legal, after: None }.is_met_by(given)
    }
}
