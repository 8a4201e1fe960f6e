//! A changed set of policies, with added, replaced and removed policies.
//!
//! Gathered facts contain only those policies of the tenant that could apply to their request. They
//! lack the added policies. This module finds the added policies that can apply, with the same
//! index ([`PolicyIndex`]).

use std::{collections::BTreeSet, sync::Arc};

use authority_ids::EntityRef;

use super::gathered::Gathered;
use crate::{
    policy::{
        compiled::CompiledPolicy,
        index::{PolicyIndex, PolicyKeys},
    },
    request::draft::Draft,
};

/// A change of a tenant's policies, compiled and indexed once for any number of requests.
#[derive(Debug, Default)]
pub struct PolicyChange {
    added: PolicyIndex,
    /// The ids of removed policies.
    gone: BTreeSet<EntityRef>,
    /// Whether all gathered policies are removed.
    replaces_all: bool,
}

impl PolicyChange {
    /// Adds `added`, which replace policies with the same ids, and removes `gone`.
    pub fn new(added: Vec<Arc<CompiledPolicy>>, gone: impl IntoIterator<Item = EntityRef>) -> Self {
        let replaced = added.iter().map(|policy| policy.reference.id.clone());
        let gone = replaced.chain(gone).collect();
        Self { added: PolicyIndex::new(added), gone, replaces_all: false }
    }

    /// Keeps only these policies.
    pub fn only(policies: Vec<Arc<CompiledPolicy>>) -> Self {
        Self { added: PolicyIndex::new(policies), gone: BTreeSet::new(), replaces_all: true }
    }

    pub fn is_nothing(&self) -> bool {
        self.gone.is_empty() && !self.replaces_all
    }

    /// Returns the facts as they would have been gathered for this request under the change.
    pub fn applied(&self, request: &Draft, gathered: &Arc<Gathered>) -> Arc<Gathered> {
        if self.is_nothing() {
            return Arc::clone(gathered);
        }
        let keys = PolicyKeys {
            action: &request.action,
            purpose: request.purpose.as_deref(),
            principal_class: gathered.subject.as_ref().map(|subject| subject.class),
            resource_kind: gathered.resource.as_ref().map(|resource| resource.kind.as_str()),
        };
        let stays = |policy: &&Arc<CompiledPolicy>| {
            !self.replaces_all && !self.gone.contains(&policy.reference.id)
        };
        let kept = gathered.policies.iter().filter(stays);
        let mut policies: Vec<_> = kept.chain(self.added.candidates(keys)).cloned().collect();
        policies.sort_by(|one, other| one.reference.id.cmp(&other.reference.id));
        let observing = gathered.observing.clone();
        Arc::new(Gathered::clone(gathered).with_policies(policies, observing))
    }
}
