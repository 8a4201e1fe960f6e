//! The tenant data that a text is checked against: the existing names, and the requirements of
//! tools.

use std::collections::{BTreeMap, BTreeSet};

use super::place::FieldPath;
use crate::{
    pattern::{Pattern, is_below, prefixes},
    policy::{statement::ActionScope, target::Target},
};

/// The types of objects that a name in a policy can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameKind {
    /// Exactly this action.
    Action,
    /// This action and all actions below it.
    Actions,
    Team,
    Principal,
    Resource,
    ResourceKind,
    Purpose,
    Delegation,
}

/// A name in a policy's text or target that may or may not exist in a tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub kind: NameKind,
    pub name: String,
}

impl Name {
    pub fn new(kind: NameKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }

    /// Returns the name in a target.
    pub fn of_target(target: &Target) -> Option<Self> {
        let (kind, name) = match target {
            Target::Action(Pattern::Exact(name)) => (NameKind::Action, name),
            Target::Action(Pattern::Below(prefix)) => (NameKind::Actions, prefix),
            Target::ResourceKind(kind) => (NameKind::ResourceKind, kind),
            Target::Purpose(slug) => (NameKind::Purpose, slug),
            _ => return None,
        };
        Some(Self::new(kind, name))
    }

    /// Whether a pattern of actions covers any action of this name.
    pub fn is_covered_by(&self, pattern: &Pattern) -> bool {
        match (self.kind, pattern) {
            (NameKind::Actions, Pattern::Exact(action)) => {
                *action == self.name || is_below(action, &self.name)
            }
            (NameKind::Actions, Pattern::Below(prefix)) => {
                *prefix == self.name || is_below(prefix, &self.name) || is_below(&self.name, prefix)
            }
            _ => pattern.covers(&self.name),
        }
    }

    /// Describes the problem that the tenant lacks the name.
    pub fn problem(&self) -> String {
        let name = &self.name;
        match self.kind {
            NameKind::Action => {
                format!("no tool, purpose, delegation or other grant covers the action `{name}`")
            }
            NameKind::Actions => format!(
                "no tool, purpose, delegation or other grant covers `{name}` or an action below it"
            ),
            NameKind::Team => format!("the tenant has no team `{name}`"),
            NameKind::Principal => format!("the tenant has no principal `{name}`"),
            NameKind::Resource => format!("the tenant has no resource `{name}`"),
            NameKind::ResourceKind => format!("the tenant has no resource of the kind `{name}`"),
            NameKind::Purpose => format!("the tenant has no purpose `{name}`"),
            NameKind::Delegation => format!("the tenant has no delegation `{name}`"),
        }
    }
}

/// The tenant's names and tools. By default, every name counts as known and tools have no
/// requirements.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The names that the tenant lacks, each with a similar known name, if any.
    pub missing: BTreeMap<Name, Option<String>>,
    /// The delegations that renew another one, each with the first delegation of its line.
    pub renewed: BTreeMap<String, String>,
    /// Exact actions that are granted or admitted, to suggest similar names.
    pub actions: BTreeSet<String>,
    /// The live tools: their actions, and the fields that they require.
    pub tools: Vec<(Vec<Pattern>, Vec<String>)>,
}

impl Known {
    /// Whether every action of the scope has a live tool, and all these tools require the field.
    pub(super) fn requires(&self, scope: &ActionScope, place: &FieldPath) -> bool {
        let Some(member) = place.required_as() else { return false };
        let requires = |own: &Vec<String>| own.iter().any(|one| one == member);
        let names: Vec<Name> = match scope {
            ActionScope::Any => return self.all_require(None, member),
            ActionScope::Eq(name) => vec![Name::new(NameKind::Action, name)],
            ActionScope::In(names) => {
                names.iter().map(|name| Name::new(NameKind::Actions, name)).collect()
            }
        };
        names.iter().all(|name| {
            let performs =
                |actions: &Vec<Pattern>| actions.iter().any(|one| name.is_covered_by(one));
            let mut tools = self.tools.iter().filter(|(actions, _)| performs(actions));
            tools.all(|(_, own)| requires(own)) && self.all_require(Some(name), member)
        })
    }

    /// Whether each action of the name has tools and all of them require the field.
    ///
    /// Without a name, this must be true for every action.
    fn all_require(&self, name: Option<&Name>, member: &str) -> bool {
        let requiring = self.tools.iter().filter(|(_, own)| own.iter().any(|one| one == member));
        let mut patterns = requiring.flat_map(|(actions, _)| actions);
        match name {
            None => {
                let every = self.tools.iter().all(|(_, own)| own.iter().any(|one| one == member));
                every && patterns.any(|one| *one == Pattern::All)
            }
            Some(Name { kind: NameKind::Actions, name }) => {
                let (mut itself, mut below) = (false, false);
                for pattern in patterns {
                    itself |= pattern.covers(name);
                    below |= match pattern {
                        Pattern::All => true,
                        Pattern::Below(prefix) => {
                            prefix == name || prefixes(name).any(|outer| outer == prefix)
                        }
                        Pattern::Exact(_) => false,
                    };
                }
                itself && below
            }
            Some(Name { name, .. }) => patterns.any(|pattern| pattern.covers(name)),
        }
    }
}
