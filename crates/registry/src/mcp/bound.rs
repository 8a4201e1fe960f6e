//! The agents of an API key, for operations that such a key may use for its agents' tools only.

use authority_graph::TenantHandle;
use authority_ids::PrincipalRef;

use crate::flow::prelude::*;

/// The agents of an API key that is bound to agents.
pub(super) struct Bound {
    agents: Vec<PrincipalRef>,
    handle: Option<TenantHandle>,
}

impl Bound {
    /// Returns `None` for a caller that is not bound to agents.
    pub(super) fn of(
        registry: &Registry,
        caller: &Caller,
        tenant: &TenantId,
    ) -> Result<Option<Self>, Error> {
        let Some(agents) = caller.bound_to() else { return Ok(None) };
        let handle = registry.graph.tenant(tenant)?;
        Ok(Some(Self { agents: agents.to_vec(), handle }))
    }

    /// Whether an agent of the key may call a tool with these actions.
    pub(super) fn may_call(&self, actions: &[String]) -> bool {
        let Some(handle) = &self.handle else { return false };
        let graph = handle.read();
        let performs =
            |agent: &PrincipalRef| actions.iter().any(|action| graph.may_perform(agent, action));
        self.agents.iter().any(performs)
    }
}
