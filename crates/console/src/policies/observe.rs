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
    pub(super) ended: Option<Moment>,
    pub(super) counted: Option<Moment>,
    pub(super) allow: i64,
    pub(super) hold: i64,
    pub(super) deny: i64,
    pub(super) changed: i64,
}

impl Observed {
    pub(super) fn of(observation: &PolicyObservation, view: &View) -> Option<Self> {
        Some(Self {
            since: Moment::of_time(observation.since, view.now)?,
            ended: Moment::of_time(observation.ended_at, view.now),
            counted: Moment::of_time(observation.counted_until, view.now),
            allow: observation.would_allow,
            hold: observation.would_require_approval,
            deny: observation.would_deny,
            changed: observation.would_change,
        })
    }

    /// The number of counted decisions.
    pub(super) fn total(&self) -> i64 {
        self.allow.saturating_add(self.hold).saturating_add(self.deny)
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
