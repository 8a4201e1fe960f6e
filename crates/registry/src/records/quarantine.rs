//! Quarantines. A quarantine suspends a part of a tenant's authority until a person releases the
//! quarantine.

use authority_model::{
    proto::registry::*, schema::quarantines, service::QuarantineService, state::QuarantineState,
};
use diesel::{dsl::sql, sql_types::Text};

use crate::{delegations::line::newest_id, flow::prelude::*, stops};
use authority_ids::{DelegationId, RecordId};

/// The beginning of a condition: a quarantine's delegation is in the same line as another
/// delegation. The id of the other delegation follows.
const IS_IN_LINE: &str = "(SELECT coalesce(line_id, id) FROM delegations \
     WHERE id = quarantines.delegation_id) \
     = (SELECT coalesce(line_id, id) FROM delegations WHERE id = ";

impl RecordRow for Quarantine {
    type List = ListQuarantinesRequest;
    const AUTHORITY: bool = true;
    const IS_STOP: bool = true;

    fn filtered(by: &ListQuarantinesRequest) -> quarantines::BoxedQuery<'_, Pg> {
        let mut query = quarantines::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(quarantines::state.eq(state));
        }
        if let Some(subject_id) = &by.subject_id {
            query = query.filter(quarantines::subject_id.eq(subject_id));
        }
        if let Some(action) = &by.action {
            query = query.filter(quarantines::action.eq(action));
        }
        if let Some(delegation_id) = &by.delegation_id {
            query = query.filter(sql::<Bool>(IS_IN_LINE).bind::<Text, _>(delegation_id).sql(")"));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if let Some(problem) = self.action.as_deref().and_then(rules::pattern) {
            found.add("action", problem);
        }
    }

    async fn resolve_tenant(
        &mut self,
        _db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        references::own_tenant(&mut self.tenant_id, Self::KIND, within)
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        // A caller that is bound to some agents can quarantine only these agents.
        if !tx.caller.acts_for(self.subject_id.as_deref().unwrap_or_default()) {
            return Err(Error::NotSubject);
        }
        let mut known = Known::of(row_id(self.tenant_id())?, Self::KIND);
        known.principal(tx.db, "subject_id", self.subject_id.as_deref()).await?;
        known.all()?;
        let Some(id) = &self.delegation_id else { return Ok(()) };
        let unknown = || Error::unknown("quarantine.delegation_id", id);
        let named = DelegationId::parse(id).map_err(|_| unknown())?;
        let newest = newest_id(tx.db, self.tenant_id(), named).await?.ok_or_else(unknown)?;
        self.delegation_id = Some(newest.into());
        Ok(())
    }
}

impl_queries!(Quarantine, quarantines);

impl Stops for Quarantine {
    fn lift<'c>(
        db: &'c mut Db,
        row: &Self,
        by: &str,
        reason: Option<&str>,
    ) -> QueryFuture<'c, Self> {
        diesel::update(quarantines::table.find(&row.id))
            .filter(quarantines::tenant_id.eq(row.tenant_id()))
            .set((
                quarantines::state.eq(QuarantineState::Released),
                quarantines::released_by.eq(by),
                quarantines::release_reason.eq(reason),
                quarantines::updated_at.eq(clock_timestamp()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl QuarantineService for Registry {
    async fn list_quarantines(
        &self,
        call: Request<ListQuarantinesRequest>,
    ) -> Reply<ListQuarantinesResponse> {
        self.list(call).await
    }

    async fn export_quarantines(
        &self,
        call: Request<ExportQuarantinesRequest>,
    ) -> Replies<ExportQuarantinesResponse> {
        self.export(call).await
    }

    async fn create_quarantine(&self, call: Request<CreateQuarantineRequest>) -> Reply<Quarantine> {
        self.create(call).await
    }

    async fn get_quarantine(&self, call: Request<GetQuarantineRequest>) -> Reply<Quarantine> {
        self.get(call).await
    }

    async fn release_quarantine(
        &self,
        call: Request<ReleaseQuarantineRequest>,
    ) -> Reply<Quarantine> {
        self.lift(call, |request| request.reason.clone()).await
    }

    async fn get_stop_impact(&self, call: Request<GetStopImpactRequest>) -> Reply<StopImpact> {
        stops::of(self, call).await
    }
}
