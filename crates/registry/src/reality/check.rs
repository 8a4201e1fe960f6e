//! Coupling checks: an action's assumptions about anchors, and a run's findings.

use authority_api::identity::caller;
use authority_ids::RecordId;
use authority_model::{
    proto::reality::*, schema::reality_coupling_checks, service::CouplingCheckService, wire::Time,
};
use serde_json::Value;

use super::{
    assumed::{REPORTED, assumptions},
    decide,
    objects::check,
    overriding, refers, run,
    snapshot_rules::is_pointer,
};
use crate::flow::{operations::Reply, prelude::*};

impl RecordRow for CouplingCheck {
    type List = ListCouplingChecksRequest;
    /// Decisions depend on a check through its override.
    const AUTHORITY: bool = true;

    fn filtered(by: &ListCouplingChecksRequest) -> reality_coupling_checks::BoxedQuery<'_, Pg> {
        let mut query = reality_coupling_checks::table.into_boxed();
        if !by.deleted {
            query = query.filter(reality_coupling_checks::deleted_at.is_null());
        }
        if let Some(action_id) = &by.action_id {
            query = query.filter(reality_coupling_checks::action_id.eq(action_id));
        }
        if let Some(result) = &by.coupling_result {
            query = query.filter(reality_coupling_checks::coupling_result.eq(result));
        }
        if let Some(since) = by.since {
            query = query.filter(reality_coupling_checks::evaluated_at.ge(since).assume_not_null());
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn validate_record(&self, found: &mut Violations) {
        for (index, assumption) in self.assumptions.iter().enumerate() {
            check(&format!("assumptions[{index}]"), Some(assumption), found, |object| {
                if object.text("anchor_id", 300).is_none() {
                    object.found.add("anchor_id", "is required");
                }
                object.text("expected_content_hash", 200);
                object.integer("max_age_seconds", 0, i64::from(u32::MAX));
                let path = object.members.get("path").filter(|path| !path.is_null());
                if path.is_some_and(|path| !path.as_str().is_some_and(is_pointer)) {
                    object.found.add("path", "must be a JSON Pointer (RFC 6901), such as `/a/b`");
                }
                match object.members.get("equals") {
                    Some(Value::Null) => {
                        object.found.add("equals", "must not be null; omit it to accept any value");
                    }
                    Some(_) if path.is_none() => object.found.add("equals", "needs `path`"),
                    _ => {}
                }
            });
        }
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let tenant = row_id(&self.tenant_id)?;
        let subject = refers::subject(tx.db, Self::KIND, &tenant, &self.action_id).await?;
        self.action = subject.action;
        self.subject_id = subject.subject_id;
        REPORTED.clone_into(&mut self.result_source);
        let mut known = Known::of(tenant, Self::KIND);
        known.principal(tx.db, "actor_entity_id", self.actor_entity_id.as_deref()).await?;
        let principal = self.principal_entity_id.as_deref();
        refers::party(&mut known, tx.db, "principal_entity_id", principal).await?;
        let grant = self.purpose_grant_id.as_ref();
        refers::DELEGATIONS.one(&mut known, tx.db, "purpose_grant_id", grant).await?;
        let drift = self.drift_event_id.as_ref();
        refers::DRIFT_EVENTS.one(&mut known, tx.db, "drift_event_id", drift).await?;
        refers::ANCHORS
            .each(&mut known, tx.db, "anchors_consulted", &self.anchors_consulted)
            .await?;
        refers::SNAPSHOTS.each(&mut known, tx.db, "snapshot_refs", &self.snapshot_refs).await?;
        let assumed: Vec<String> =
            assumptions(self).into_iter().map(|assumed| assumed.anchor_id.into()).collect();
        refers::ANCHORS.each(&mut known, tx.db, "assumptions", &assumed).await?;
        known.all()
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        overriding::end(tx.db, self).await
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        let overridden = rows.iter().filter(|row| row.r#override.is_some());
        let overridden: Vec<String> = overridden.map(|row| row.id.clone()).collect();
        if overridden.is_empty() {
            return Ok(());
        }
        let now = Time::from(registry.clock.now());
        let found = async move |db: &mut Db| overriding::in_force(db, overridden).await;
        let in_force = registry.store.read_tx(&caller.scope(), found).await?;
        rows.iter_mut().for_each(|row| overriding::show(row, &in_force, now));
        Ok(())
    }
}

impl_queries!(CouplingCheck, reality_coupling_checks, newest first);
impl_soft_delete!(CouplingCheck, reality_coupling_checks);

#[tonic::async_trait]
impl CouplingCheckService for Registry {
    async fn list_coupling_checks(
        &self,
        call: Request<ListCouplingChecksRequest>,
    ) -> Reply<ListCouplingChecksResponse> {
        self.list(call).await
    }

    async fn create_coupling_check(
        &self,
        call: Request<CreateCouplingCheckRequest>,
    ) -> Reply<CouplingCheck> {
        self.create(call).await
    }

    async fn get_coupling_check(
        &self,
        call: Request<GetCouplingCheckRequest>,
    ) -> Reply<CouplingCheck> {
        let caller = caller(&call)?;
        let found = self.get(call).await?;
        self.completed(&caller, found).await
    }

    async fn delete_coupling_check(
        &self,
        call: Request<DeleteCouplingCheckRequest>,
    ) -> Reply<DeleteCouplingCheckResponse> {
        self.soft_delete(call).await
    }

    async fn run_coupling_check(
        &self,
        call: Request<RunCouplingCheckRequest>,
    ) -> Reply<CouplingCheck> {
        run::check(self, call).await
    }

    async fn decide_coupling_check(
        &self,
        call: Request<DecideCouplingCheckRequest>,
    ) -> Reply<CouplingCheck> {
        decide::decide(self, call).await
    }
}
