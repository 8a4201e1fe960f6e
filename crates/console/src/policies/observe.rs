//! Observing versions: their counts, and the forms that start and end an observation.

use authority_ids::EntityRef;
use authority_model::proto::registry::{
    ObservePolicyRequest, PolicyObservation, UnobservePolicyRequest,
};

use super::present::{address, change};
use crate::kit::prelude::*;

/// What decisions would have been with a version in force.
pub(super) struct Observed {
    pub(super) since: Moment,
    pub(super) counts: PolicyObservation,
}

impl Observed {
    pub(super) fn of(counts: PolicyObservation, view: &View) -> Option<Self> {
        Some(Self { since: Moment::of_time(counts.since, view.now)?, counts })
    }

    /// The number of counted decisions.
    pub(super) fn total(&self) -> i64 {
        let counts = &self.counts;
        counts.would_allow + counts.would_require_approval + counts.would_deny
    }
}

pub(super) async fn begin(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_OBSERVING, begun(&view, &id, &form).await)
}

async fn begun(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let version = form.text("version").parse();
    let version = version.map_err(|_| Status::not_found(t::policies::NO_VERSION))?;
    let request = ObservePolicyRequest { id: id.into(), version: Some(version) };
    let known = (form.text("key"), form.text("tag"));
    let policy = change(view, rpc::OBSERVE_POLICY, &request, known).await?;
    Ok(see_done(view, &address(&policy.id), "observe"))
}

pub(super) async fn end(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::policies::NOT_ENDED, ended(&view, &id, &form).await)
}

async fn ended(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let request = UnobservePolicyRequest { id: id.into() };
    let known = (form.text("key"), form.text("tag"));
    let policy = change(view, rpc::UNOBSERVE_POLICY, &request, known).await?;
    Ok(see_done(view, &address(&policy.id), "unobserve"))
}
