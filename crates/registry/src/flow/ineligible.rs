//! The refusal of a person's act on an approval: the rule, and the people who could act instead.

use std::fmt;

/// The parts of a refusal. A page shows the rule first.
#[derive(Clone, Debug)]
pub struct Ineligible {
    pub reason: IneligibleReason,
    pub rule: String,
    /// Roles and conditions, no names. `None` if no other person is needed.
    pub remedy: Option<String>,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IneligibleReason {
    /// The person's role decides no requests.
    Role,
    ActedAlready,
    /// The person made the request.
    Asker,
    /// The person created or rotated the API key that made the request.
    KeyMaker,
    /// The person is the agent.
    Subject,
    Owner,
    Delegator,
    Suspended,
    /// The tenant, the chain of delegations or the requesting API key cannot be read.
    Unreadable,
}

impl IneligibleReason {
    /// Returns the reason's code in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::ActedAlready => "acted_already",
            Self::Asker => "asker",
            Self::KeyMaker => "key_maker",
            Self::Subject => "subject",
            Self::Owner => "owner",
            Self::Delegator => "delegator",
            Self::Suspended => "suspended",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Ineligible {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.rule)?;
        self.remedy.iter().try_for_each(|remedy| write!(to, "; {remedy}"))
    }
}
