//! The current stops of a principal, as far as this person may read them.

use authority_ids::{PrincipalRef, TenantId};

use crate::{
    kit::prelude::*,
    stop::{Active, InForce, in_force, in_force_on, named},
};

/// The stops that concern an agent or a delegation.
#[derive(Default)]
pub(super) struct Stops {
    pub(super) stops: Vec<Active>,
    /// The number of the tenant's stops that are not considered. They may concern others.
    pub(super) more: usize,
}

/// The stops that concern any of these ids of principals and delegations. A stop without a
/// principal and a delegation concerns all agents. The stops on `agent` itself are requested by its
/// id if the tenant has too many stops to read.
pub(super) async fn on(
    view: &View,
    tenant: &TenantId,
    agent: Option<&PrincipalRef>,
    ids: &[String],
) -> Result<Stops, Status> {
    if !view.may(rpc::LIST_STOP_SIGNALS) || !view.may(rpc::LIST_QUARANTINES) {
        return Ok(Stops::default());
    }
    let InForce { mut stopped, more } = in_force(view, Some(tenant)).await?;
    if let Some(agent) = agent.filter(|_| more > 0) {
        let known = stopped.len();
        for stop in in_force_on(view, agent).await?.stopped {
            if !stopped.iter().take(known).any(|one| one.id == stop.id) {
                stopped.push(stop);
            }
        }
    }
    let concerns = |named: &Option<String>| named.as_ref().is_none_or(|id| ids.contains(id));
    stopped.retain(|stop| concerns(&stop.subject) && concerns(&stop.delegation));
    Ok(Stops { stops: named(view, stopped).await, more })
}
