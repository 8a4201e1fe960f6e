//! The stop signals and quarantines in force.

use authority_ids::TenantId;
use authority_model::proto::registry::{ListQuarantinesRequest, ListStopSignalsRequest};

use super::stopped::Stopped;
use crate::kit::prelude::*;

/// The number of records on a page of the API, and of pages read for signals and for quarantines.
const PAGE: i32 = 500;
const PAGES: usize = 4;

/// Signals and quarantines in force, the newest first.
pub(crate) struct InForce {
    pub(crate) stopped: Vec<Stopped>,
    /// The number of newer stops that are not in the list.
    pub(crate) more: usize,
}

/// A stop in force, as lists show it.
pub(crate) struct Active {
    pub(crate) id: String,
    /// The stopped authority: `invoice-bot`, `payment.* of invoice-bot`.
    pub(crate) what: String,
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) at: Option<Moment>,
}

/// The stops with the names of their principals.
pub(crate) async fn named(view: &View, stopped: Vec<Stopped>) -> Vec<Active> {
    let subjects = stopped.iter().filter_map(|stopped| stopped.subject.clone());
    let names = Names::to_call(view, subjects.collect()).await;
    let active = stopped.into_iter().map(|stopped| Active {
        what: stopped.what(&names),
        at: Moment::of_time(stopped.at, view.now),
        id: stopped.id,
        reason: stopped.reason,
        by: stopped.by,
    });
    active.collect()
}

/// The stops of a tenant, or of all tenants if none is given.
pub(crate) async fn in_force(view: &View, tenant: Option<&TenantId>) -> Result<InForce, Status> {
    let tenant_id = tenant.map(String::from);
    let signals = ListStopSignalsRequest {
        tenant_id: tenant_id.clone(),
        ..ListStopSignalsRequest::default()
    };
    let quarantines = ListQuarantinesRequest { tenant_id, ..ListQuarantinesRequest::default() };
    of(view, signals, quarantines).await
}

/// The stops that name a principal.
pub(crate) async fn in_force_on(view: &View, subject: &str) -> Result<InForce, Status> {
    let subject_id = Some(subject.to_owned());
    let signals = ListStopSignalsRequest {
        actor_id: subject_id.clone(),
        ..ListStopSignalsRequest::default()
    };
    let quarantines = ListQuarantinesRequest { subject_id, ..ListQuarantinesRequest::default() };
    of(view, signals, quarantines).await
}

async fn of(
    view: &View,
    signals: ListStopSignalsRequest,
    quarantines: ListQuarantinesRequest,
) -> Result<InForce, Status> {
    let (signals, quarantines) =
        tokio::try_join!(all_signals(view, signals), all_quarantines(view, quarantines))?;
    let more = signals.more + quarantines.more;
    let mut stopped = signals.stopped;
    stopped.extend(quarantines.stopped);
    stopped.sort_by_key(|stopped| std::cmp::Reverse(stopped.at));
    Ok(InForce { stopped, more })
}

async fn all_signals(view: &View, asked: ListStopSignalsRequest) -> Result<InForce, Status> {
    let state = Some("active".to_owned());
    let mut request = ListStopSignalsRequest { state, limit: Some(PAGE), count: true, ..asked };
    let (mut stopped, mut total) = (Vec::new(), 0);
    for _ in 0..PAGES {
        let listed = view.calls.call(&request).await?;
        stopped.extend(listed.stop_signals.into_iter().map(Stopped::from));
        total = listed.total.unwrap_or(total);
        let Some(next) = listed.next_page_token else {
            return Ok(InForce { stopped, more: 0 });
        };
        (request.page_token, request.count) = (next, false);
    }
    let more = usize::try_from(total).unwrap_or_default().saturating_sub(stopped.len());
    Ok(InForce { stopped, more })
}

async fn all_quarantines(view: &View, asked: ListQuarantinesRequest) -> Result<InForce, Status> {
    let state = Some("active".to_owned());
    let mut request = ListQuarantinesRequest { state, limit: Some(PAGE), count: true, ..asked };
    let (mut stopped, mut total) = (Vec::new(), 0);
    for _ in 0..PAGES {
        let listed = view.calls.call(&request).await?;
        stopped.extend(listed.quarantines.into_iter().map(Stopped::from));
        total = listed.total.unwrap_or(total);
        let Some(next) = listed.next_page_token else {
            return Ok(InForce { stopped, more: 0 });
        };
        (request.page_token, request.count) = (next, false);
    }
    let more = usize::try_from(total).unwrap_or_default().saturating_sub(stopped.len());
    Ok(InForce { stopped, more })
}
