//! What several tools declare of an action's input together: members that those which declare them type alike.
//!
//! Joining is associative, commutative and idempotent, so that the graph joins once for each action pattern.

use std::collections::BTreeMap;

use super::members::{Member, Members};

/// The members of one tool or several; `None` if two of them type it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement(BTreeMap<String, Option<Member>>);

impl Agreement {
    /// Of one tool.
    pub fn of(members: &Members) -> Self {
        Self(members.iter().map(|(name, member)| (name.clone(), Some(member.clone()))).collect())
    }

    /// Of these tools and others. What one of them does not declare is not required.
    #[must_use]
    pub fn joined(mut self, mut other: Self) -> Self {
        for (name, own) in &mut self.0 {
            match (own.as_mut(), other.0.remove(name)) {
                (Some(own), None) => own.required = false,
                (Some(own), Some(Some(known))) if own.kind == known.kind => {
                    own.required &= known.required;
                }
                _ => *own = None,
            }
        }
        for (name, mut member) in other.0 {
            if let Some(member) = &mut member {
                member.required = false;
            }
            self.0.insert(name, member);
        }
        self
    }

    /// The members that policies are typed by.
    pub fn members(self) -> Members {
        self.0.into_iter().filter_map(|(name, member)| Some((name, member?))).collect()
    }
}
