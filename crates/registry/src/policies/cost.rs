//! Refuses a write if the active policies would exceed a decision's limit of evaluation steps.
//!
//! The check uses the policies in this node's graph. The graph includes every write that the node
//! has confirmed.

use std::sync::Arc;

use authority_ids::EntityRef;
use authority_model::{proto::registry::Policy, schema::applies_to, wire::Time};
use chrono::{DateTime, Utc};

use crate::flow::prelude::*;
use authority_decision::{
    CompiledPolicy, PolicyReference, Target,
    cost_bound::{Exceeded, exceeded},
    moment::Window,
};
use authority_store as store;

/// A policy as it would apply after the write.
pub(crate) struct InForce {
    pub(crate) tenant_id: String,
    /// The ID of the policy that it replaces. Empty for a new policy.
    pub(crate) id: EntityRef,
    /// The new text, or `None` for the active text.
    pub(crate) text: Option<String>,
    pub(crate) applies_to: Vec<String>,
    pub(crate) effective: Window,
}

impl InForce {
    /// The policy with this text.
    pub(crate) fn of(policy: &Policy, text: Option<String>) -> Self {
        Self {
            tenant_id: policy.tenant_id.clone(),
            id: policy.id.as_str().into(),
            text,
            applies_to: policy.applies_to.clone(),
            effective: window(policy.effective_from, policy.effective_until),
        }
    }

    /// # Errors
    /// Every decision that the policy applies to would be denied.
    pub(crate) async fn check(self, registry: &Registry) -> Result<(), Error> {
        match self.exceeds(registry).await? {
            Some(found) => Err(Error::NotAllowed(found.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the requests that would all be denied because of their cost, if there are any.
    ///
    /// # Errors
    /// Too many checks are running already.
    pub(crate) async fn exceeds(self, registry: &Registry) -> Result<Option<Exceeded>, Error> {
        let Ok(tenant_id) = TenantId::parse(&self.tenant_id) else { return Ok(None) };
        // An outdated graph serves no decisions. A write need not wait for it.
        let Ok(Some(handle)) = registry.graph.tenant(&tenant_id) else { return Ok(None) };
        // If a policy can't be read, every decision is denied anyway.
        let before: Vec<Arc<CompiledPolicy>> =
            handle.read().policies().map(|all| all.iter().cloned().collect()).unwrap_or_default();
        let now = registry.clock.now();
        let tenant = self.tenant_id.clone();
        Ok(registry.pool.run(&tenant, move |_| self.compared(&before, now)).await?)
    }

    fn compared(self, before: &[Arc<CompiledPolicy>], now: DateTime<Utc>) -> Option<Exceeded> {
        let read: Vec<Target> =
            self.applies_to.iter().filter_map(|target| target.parse().ok()).collect();
        // An unreadable target makes the policy apply to everything, like in decisions.
        let targets = if read.len() == self.applies_to.len() { read } else { Vec::new() };
        let own = before.iter().find(|one| one.reference.id == self.id);
        let changed = match self.text {
            None => own?.applied_to(targets, self.effective),
            Some(text) => {
                let reference = PolicyReference {
                    id: self.id.clone(),
                    version: 0,
                    sha256: String::new(),
                    applies_to: targets,
                    effective: self.effective,
                };
                // An unreadable text is refused elsewhere.
                CompiledPolicy::compile(reference, &text).ok()?
            }
        };
        let others = before.iter().filter(|one| one.reference.id != self.id).cloned();
        let after: Vec<_> = others.chain([Arc::new(changed)]).collect();
        exceeded(before, &after, now)
    }
}

pub(crate) fn window(from: Option<Time>, until: Option<Time>) -> Window {
    Window { from: from.and_then(Time::moment), until: until.and_then(Time::moment) }
}

/// Returns the targets of a policy, except the entry `without`.
pub(crate) async fn targets(
    registry: &Registry,
    caller: &Caller,
    policy_id: &str,
    without: Option<&str>,
) -> Result<Vec<String>, Error> {
    let (policy_id, without) = (policy_id.to_owned(), without.unwrap_or_default().to_owned());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<String> = applies_to::table
            .filter(applies_to::policy_id.eq(&policy_id))
            .filter(applies_to::id.ne(&without))
            .order((applies_to::created_at, applies_to::id))
            .select(applies_to::target_class)
            .load(db)
            .await?;
        Ok::<_, store::Error>(rows)
    });
    Ok(read.await?)
}
