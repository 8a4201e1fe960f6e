//! Stable drift events: reality differs from the assumptions. An event's effect applies until the
//! event is resolved.

use authority_api::identity::caller;
use authority_decision::reality::Severity;
use authority_ids::RecordId;
use authority_model::{
    proto::reality::*,
    schema::{reality_coupling_checks, stable_drift_events},
    service::DriftEventService,
};
use tonic::Response;

use super::{
    assumed::REPORTED, drift_found::ID_KIND, drift_moves, freshness, objects::size, refers,
};
use crate::flow::{operations::Reply, prelude::*};

impl RecordRow for DriftEvent {
    type List = ListDriftEventsRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListDriftEventsRequest) -> stable_drift_events::BoxedQuery<'_, Pg> {
        let mut query = stable_drift_events::table.into_boxed();
        if !by.deleted {
            query = query.filter(stable_drift_events::deleted_at.is_null());
        }
        if let Some(status) = &by.status {
            query = query.filter(stable_drift_events::status.eq(status));
        }
        if let Some(severity) = &by.severity {
            query = query.filter(stable_drift_events::severity.eq(severity));
        }
        if let Some(drift_type) = &by.drift_type {
            query = query.filter(stable_drift_events::drift_type.eq(drift_type));
        }
        if let Some(since) = by.since {
            query = query.filter(stable_drift_events::detected_at.ge(since));
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        // An invalid value is refused by its own rule.
        let severity = Severity::from_word(&self.severity).unwrap_or(Severity::Critical);
        names::or(&mut self.recommended_runtime_effect, severity.effect().word());
    }

    fn validate_record(&self, found: &mut Violations) {
        for (field, object) in
            [("expected_state", &self.expected_state), ("observed_state", &self.observed_state)]
        {
            object.iter().for_each(|object| size(field, object, found));
        }
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(ID_KIND, new_id()).into())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let now = freshness::database_now(tx.db).await?;
        if *self.detected_at.get_or_insert(now) > now {
            return Err(Error::field("drift_event.detected_at", "is in the future"));
        }
        let tenant = row_id(&self.tenant_id)?;
        let subject = refers::subject(tx.db, Self::KIND, &tenant, &self.action_id).await?;
        self.action = subject.action;
        self.subject_id = subject.subject_id;
        REPORTED.clone_into(&mut self.result_source);
        let mut known = Known::of(tenant, Self::KIND);
        let check: Vec<String> = reality_coupling_checks::table
            .filter(reality_coupling_checks::tenant_id.eq(&self.tenant_id))
            .filter(reality_coupling_checks::id.eq(&self.check_id))
            .filter(reality_coupling_checks::deleted_at.is_null())
            .select(reality_coupling_checks::id)
            .load(tx.db)
            .await?;
        known.compare("check_id", &[&self.check_id], &check);
        known.principal(tx.db, "actor_entity_id", self.actor_entity_id.as_deref()).await?;
        let principal = self.principal_entity_id.as_deref();
        refers::party(&mut known, tx.db, "principal_entity_id", principal).await?;
        refers::ANCHORS
            .each(&mut known, tx.db, "anchors_implicated", &self.anchors_implicated)
            .await?;
        known.all()
    }
}

impl_queries!(DriftEvent, stable_drift_events, newest first);
impl_soft_delete!(DriftEvent, stable_drift_events);

#[tonic::async_trait]
impl DriftEventService for Registry {
    async fn list_drift_events(
        &self,
        call: Request<ListDriftEventsRequest>,
    ) -> Reply<ListDriftEventsResponse> {
        self.list(call).await
    }

    async fn create_drift_event(
        &self,
        call: Request<CreateDriftEventRequest>,
    ) -> Reply<DriftEvent> {
        self.create(call).await
    }

    async fn get_drift_event(&self, call: Request<GetDriftEventRequest>) -> Reply<DriftEvent> {
        self.get(call).await
    }

    async fn delete_drift_event(
        &self,
        call: Request<DeleteDriftEventRequest>,
    ) -> Reply<DeleteDriftEventResponse> {
        let caller = caller(&call)?;
        let (id, row) = drift_moves::delete(self, &caller, call).await?;
        Ok(Response::new(DeleteDriftEventResponse { id, drift_event: Some(row) }))
    }

    async fn acknowledge_drift_event(
        &self,
        call: Request<AcknowledgeDriftEventRequest>,
    ) -> Reply<DriftEvent> {
        let note = call.get_ref().note.clone();
        drift_moves::act(self, call, drift_moves::Move::Acknowledge, note).await
    }

    async fn resolve_drift_event(
        &self,
        call: Request<ResolveDriftEventRequest>,
    ) -> Reply<DriftEvent> {
        let request = call.get_ref();
        let resolves = drift_moves::Move::resolving(&request.resolution);
        let rationale = request.rationale.clone();
        drift_moves::act(self, call, resolves, rationale).await
    }

    async fn quarantine_drift_event(
        &self,
        call: Request<QuarantineDriftEventRequest>,
    ) -> Reply<DriftEvent> {
        let reason = call.get_ref().reason.clone();
        drift_moves::act(self, call, drift_moves::Move::Quarantine, reason).await
    }
}
