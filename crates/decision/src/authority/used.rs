//! The authority under which an action is permitted, as a verdict names it.

use authority_ids::DelegationRef;
use serde::{Deserialize, Serialize};

/// The authority that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityUsed {
    pub kind: AuthorityKind,
    pub id: String,
    /// The ids of a delegation's chain, from the delegation up. Empty for other authorities.
    pub chain: Vec<DelegationRef>,
}

/// The kind of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorityKind {
    Delegation,
    Uses,
    ActsIn,
}

impl AuthorityKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delegation => "delegation",
            Self::Uses => "uses",
            Self::ActsIn => "acts_in",
        }
    }
}
