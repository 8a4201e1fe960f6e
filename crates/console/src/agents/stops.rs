//! What stops a principal now, in so far as this person may read it.

use tonic::Status;

use crate::{names::Names, rpc, stop::in_force, view::View};

/// A stop that is in force.
pub(super) struct Stop {
    pub(super) id: String,
    /// In a few words: `invoice-bot`, `payment.* of invoice-bot`.
    pub(super) what: String,
    pub(super) reason: String,
}

/// The stops that concern any of these ids, of principals and delegations. One that names neither concerns everybody.
pub(super) async fn on(view: &View, tenant: &str, ids: &[String]) -> Result<Vec<Stop>, Status> {
    if !view.may(rpc::LIST_STOP_SIGNALS) || !view.may(rpc::LIST_QUARANTINES) {
        return Ok(Vec::new());
    }
    let mut stopped = in_force(view, Some(tenant.to_owned())).await?;
    let concerns = |named: &Option<String>| named.as_ref().is_none_or(|id| ids.contains(id));
    stopped.retain(|stop| concerns(&stop.subject) && concerns(&stop.delegation));
    let subjects = stopped.iter().filter_map(|stop| stop.subject.clone());
    let names = Names::of(view, subjects.collect()).await;
    let stops = stopped.into_iter().map(|stop| Stop {
        what: stop.what(&names),
        id: stop.id,
        reason: stop.reason,
    });
    Ok(stops.collect())
}
