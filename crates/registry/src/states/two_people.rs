//! Decides by the rules for approvals whether two people made a move.
//!
//! Several principals in the tenant may belong to one person. Both people must be active in the
//! tenant when the second person acts.

use authority_graph::{Barrier, Fence, Graph, Person, TenantHandle, hold_fence};

use crate::flow::{
    ineligible::{Ineligible, IneligibleReason},
    prelude::*,
};

/// The graph, which identifies people. The fence keeps it unchanged until the transaction ends.
pub(super) struct TwoPeople<'a> {
    graph: &'a Graph,
    /// The tenant of the state machine. `None` if the machine belongs to the installation: only the
    /// installation's owners use such a machine.
    tenant: Option<TenantHandle>,
}

impl<'a> TwoPeople<'a> {
    /// Takes the fence. Lock the records first: a wait for a record while the fence is held would
    /// delay every change.
    pub(super) async fn of(
        db: &mut Db,
        graph: &'a Graph,
        tenant_id: Option<&str>,
    ) -> Result<Self, Error> {
        let Some(tenant_id) = tenant_id else {
            hold_fence(db, Fence::Shared).await?;
            graph.catch_up().await;
            return Ok(Self { graph, tenant: None });
        };
        let tenant = graph.fenced(db, &row_id(tenant_id)?, Fence::Shared).await?;
        if tenant.is_none() {
            let rule = "the tenant was not found".to_owned();
            return Err(refused(IneligibleReason::Unreadable, rule));
        }
        Ok(Self { graph, tenant })
    }

    /// Refuses a person who is not active in the tenant.
    pub(super) fn admit(&self, who: Person<'_>) -> Result<(), Error> {
        if self.counts(who) {
            return Ok(());
        }
        Err(refused(IneligibleReason::Suspended, Barrier::Inactive.to_string()))
    }

    /// Whether the person counts. The tenant must not have suspended, revoked or deleted them, and
    /// they must not be pending.
    pub(super) fn counts(&self, who: Person<'_>) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| !tenant.read().is_inactive(who))
    }

    /// Whether `one` and `other` are the same person. For a machine of the installation, a match in
    /// any tenant counts.
    pub(super) fn are_one(&self, one: Person<'_>, other: Person<'_>) -> Result<bool, Error> {
        match &self.tenant {
            Some(tenant) => Ok(tenant.read().are_one(one, other)),
            None => Ok(self.graph.are_one(one, other)?),
        }
    }
}

fn refused(reason: IneligibleReason, rule: String) -> Error {
    Error::NotEligible(Ineligible { reason, rule, remedy: None })
}
