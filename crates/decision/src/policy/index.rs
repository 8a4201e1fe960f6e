//! A tenant's policies at one revision, indexed by the requests that they can match.
//!
//! If three of two hundred policies can match, a decision should cost as much as with three
//! policies. A policy is indexed by the actions of its statements' scopes or, if these do not limit
//! it, by its applies-to rows. A policy without limits is a candidate for every request.

use std::{collections::HashMap, sync::Arc};

use authority_ids::EntityRef;

use super::{
    compiled::CompiledPolicy,
    statement::ActionScope,
    target::{Aspects, Target},
};
use crate::{
    levels::PrincipalClass,
    pattern::{Pattern, prefixes},
};

/// The look-up keys for finding policies.
#[derive(Clone, Copy, Debug)]
pub struct PolicyKeys<'a> {
    pub action: &'a str,
    pub purpose: Option<&'a str>,
    pub principal_class: Option<PrincipalClass>,
    /// The kind of the named resource.
    pub resource_kind: Option<&'a str>,
}

type Entry = usize;

/// Policies, indexed by the requests that they can match. Each list has indices into
/// `policies`.
#[derive(Debug, Default)]
pub struct PolicyIndex {
    /// Sorted by id.
    policies: Vec<Arc<CompiledPolicy>>,
    always: Vec<Entry>,
    by_action: HashMap<String, Vec<Entry>>,
    /// Policies by prefix, for every action below the prefix.
    by_prefix: HashMap<String, Vec<Entry>>,
    by_purpose: HashMap<String, Vec<Entry>>,
    by_principal_class: HashMap<PrincipalClass, Vec<Entry>>,
    by_resource_kind: HashMap<String, Vec<Entry>>,
}

impl PolicyIndex {
    pub fn new(mut policies: Vec<Arc<CompiledPolicy>>) -> Self {
        policies.sort_by(|a, b| a.reference.id.cmp(&b.reference.id));
        let mut index = Self::default();
        for (entry, policy) in policies.iter().enumerate() {
            index.enter(entry, policy);
        }
        index.policies = policies;
        index
    }

    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// Returns all policies, in order of id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CompiledPolicy>> {
        self.policies.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Returns the policy with this id.
    pub fn get(&self, id: &EntityRef) -> Option<&Arc<CompiledPolicy>> {
        let place = self.policies.binary_search_by(|one| one.reference.id.cmp(id));
        place.ok().and_then(|place| self.policies.get(place))
    }

    fn enter(&mut self, entry: Entry, policy: &CompiledPolicy) {
        if let Some(scopes) = policy.scopes() {
            for scope in scopes {
                self.enter_scope(entry, scope);
            }
            return;
        }
        let rows = &policy.reference.applies_to;
        let narrows = |row: &Target| match row {
            Target::Action(pattern) => *pattern != Pattern::All,
            Target::Purpose(_) | Target::PrincipalClass(_) | Target::ResourceKind(_) => true,
            _ => false,
        };
        if rows.is_empty() || !rows.iter().all(narrows) {
            self.always.push(entry);
            return;
        }
        for row in rows {
            match row {
                Target::Action(Pattern::Exact(name)) => put(&mut self.by_action, name, entry),
                Target::Action(Pattern::Below(prefix)) => put(&mut self.by_prefix, prefix, entry),
                Target::Purpose(slug) => put(&mut self.by_purpose, slug, entry),
                Target::ResourceKind(kind) => put(&mut self.by_resource_kind, kind, entry),
                Target::PrincipalClass(class) => {
                    self.by_principal_class.entry(*class).or_default().push(entry);
                }
                _ => {}
            }
        }
    }

    fn enter_scope(&mut self, entry: Entry, scope: &ActionScope) {
        match scope {
            ActionScope::Any => self.always.push(entry),
            ActionScope::Eq(name) => put(&mut self.by_action, name, entry),
            ActionScope::In(names) => {
                for name in names {
                    put(&mut self.by_action, name, entry);
                    put(&mut self.by_prefix, name, entry);
                }
            }
        }
    }

    /// Returns the policies that can apply to a request with these keys, in order of id.
    ///
    /// Conditions on the request's context, declarations or time are evaluated by the decision.
    pub fn candidates(&self, keys: PolicyKeys<'_>) -> impl Iterator<Item = &Arc<CompiledPolicy>> {
        let mut found = self.always.clone();
        let mut take = |list: Option<&Vec<Entry>>| found.extend(list.into_iter().flatten());
        take(self.by_action.get(keys.action));
        prefixes(keys.action).for_each(|prefix| take(self.by_prefix.get(prefix)));
        // A field that the request lacks matches every row on that field.
        match keys.purpose {
            Some(slug) => take(self.by_purpose.get(slug)),
            None => self.by_purpose.values().for_each(|list| take(Some(list))),
        }
        match keys.principal_class {
            Some(class) => take(self.by_principal_class.get(&class)),
            None => self.by_principal_class.values().for_each(|list| take(Some(list))),
        }
        match keys.resource_kind {
            Some(kind) => take(self.by_resource_kind.get(kind)),
            None => self.by_resource_kind.values().for_each(|list| take(Some(list))),
        }
        found.sort_unstable();
        found.dedup();
        let aspects = Aspects {
            action: keys.action,
            effect_classes: &[],
            risk_tiers: &[],
            principal_class: keys.principal_class,
            resource_kind: keys.resource_kind,
            purpose: keys.purpose,
            jurisdiction: None,
        };
        found.into_iter().filter_map(|entry| self.policies.get(entry)).filter(move |policy| {
            policy.applies(&aspects) && policy.statements(keys.action).next().is_some()
        })
    }
}

fn put(map: &mut HashMap<String, Vec<Entry>>, key: &str, entry: Entry) {
    map.entry(key.to_owned()).or_default().push(entry);
}
