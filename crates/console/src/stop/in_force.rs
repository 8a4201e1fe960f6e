//! The stop signals and quarantines in force.

use authority_model::proto::registry::{
    ListQuarantinesRequest, ListQuarantinesResponse, ListStopSignalsRequest,
    ListStopSignalsResponse,
};
use tonic::Status;

use super::stopped::Stopped;
use crate::{rpc, view::View};

/// Records on a page of the API, and the pages that are read of each sort.
const PAGE: i32 = 500;
const PAGES: usize = 4;

/// Signals and quarantines in force, the newest first.
pub(crate) struct InForce {
    pub(crate) stopped: Vec<Stopped>,
    /// Whether there are more, newer than these.
    pub(crate) cut: bool,
}

/// The stops of a tenant; of all tenants without one.
pub(crate) async fn in_force(view: &View, tenant_id: Option<String>) -> Result<InForce, Status> {
    of(view, tenant_id, None).await
}

/// The stops that name a principal.
pub(crate) async fn in_force_on(view: &View, subject: &str) -> Result<InForce, Status> {
    of(view, None, Some(subject.to_owned())).await
}

async fn of(
    view: &View,
    tenant_id: Option<String>,
    subject: Option<String>,
) -> Result<InForce, Status> {
    let (signals, quarantines) = tokio::try_join!(
        signals(view, tenant_id.clone(), subject.clone()),
        quarantines(view, tenant_id, subject),
    )?;
    let cut = signals.cut || quarantines.cut;
    let mut stopped = signals.stopped;
    stopped.extend(quarantines.stopped);
    stopped.sort_by_key(|stopped| std::cmp::Reverse(stopped.at));
    Ok(InForce { stopped, cut })
}

async fn signals(
    view: &View,
    tenant_id: Option<String>,
    actor_id: Option<String>,
) -> Result<InForce, Status> {
    let mut request = ListStopSignalsRequest {
        tenant_id,
        actor_id,
        state: Some("active".to_owned()),
        limit: Some(PAGE),
        ..ListStopSignalsRequest::default()
    };
    let mut stopped = Vec::new();
    for _ in 0..PAGES {
        let listed: ListStopSignalsResponse =
            view.calls.call(rpc::LIST_STOP_SIGNALS, &request).await?;
        stopped.extend(listed.stop_signals.into_iter().map(Stopped::from));
        let Some(next) = listed.next_page_token else {
            return Ok(InForce { stopped, cut: false });
        };
        request.page_token = next;
    }
    Ok(InForce { stopped, cut: true })
}

async fn quarantines(
    view: &View,
    tenant_id: Option<String>,
    subject_id: Option<String>,
) -> Result<InForce, Status> {
    let mut request = ListQuarantinesRequest {
        tenant_id,
        subject_id,
        state: Some("active".to_owned()),
        limit: Some(PAGE),
        ..ListQuarantinesRequest::default()
    };
    let mut stopped = Vec::new();
    for _ in 0..PAGES {
        let listed: ListQuarantinesResponse =
            view.calls.call(rpc::LIST_QUARANTINES, &request).await?;
        stopped.extend(listed.quarantines.into_iter().map(Stopped::from));
        let Some(next) = listed.next_page_token else {
            return Ok(InForce { stopped, cut: false });
        };
        request.page_token = next;
    }
    Ok(InForce { stopped, cut: true })
}
