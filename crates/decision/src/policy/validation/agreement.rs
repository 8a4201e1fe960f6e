//! Combines the input types that several tools declare for an action.
//!
//! A field is kept if all tools that declare it agree on its type. Joining is associative,
//! commutative and idempotent: the graph joins once for each action pattern.

use std::collections::BTreeMap;

use super::members::{Member, Members};

/// The fields of one or more tools; `None` if two tools declare different types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement(BTreeMap<String, Option<Member>>);

impl Agreement {
    /// Starts from the fields of one tool.
    pub fn of(members: &Members) -> Self {
        Self(members.iter().map(|(name, member)| (name.clone(), Some(member.clone()))).collect())
    }

    /// Joins the fields of two groups of tools. A field that either group lacks becomes optional.
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

    /// The fields that have a type on which policies can rely.
    pub fn members(self) -> Members {
        self.0.into_iter().filter_map(|(name, member)| Some((name, member?))).collect()
    }
}
