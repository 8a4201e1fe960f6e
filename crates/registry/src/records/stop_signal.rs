//! Stop signals: an agent may not act until a person lifts the signal.

use authority_model::{
    proto::registry::*, schema::stop_signals, service::StopSignalService, state::StopSignalState,
};

use crate::flow::prelude::*;
use authority_ids::RecordId;

impl RecordRow for StopSignal {
    type List = ListStopSignalsRequest;
    const AUTHORITY: bool = true;
    const IS_STOP: bool = true;

    fn filtered(by: &ListStopSignalsRequest) -> stop_signals::BoxedQuery<'_, Pg> {
        let mut query = stop_signals::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(stop_signals::state.eq(state));
        }
        if let Some(actor_id) = &by.actor_id {
            query = query.filter(stop_signals::actor_id.eq(actor_id));
        }
        query
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
        if !tx.caller.acts_for(&self.actor_id) {
            return Err(Error::NotSubject);
        }
        let mut known = Known::of(row_id(self.tenant_id())?, Self::KIND);
        known.principal(tx.db, "actor_id", Some(&self.actor_id)).await?;
        known.all()
    }
}

impl_queries!(StopSignal, stop_signals);

impl Stops for StopSignal {
    fn lift<'c>(
        db: &'c mut Db,
        row: &Self,
        by: &str,
        reason: Option<&str>,
    ) -> QueryFuture<'c, Self> {
        diesel::update(stop_signals::table.find(&row.id))
            .filter(stop_signals::tenant_id.eq(row.tenant_id()))
            .set((
                stop_signals::state.eq(StopSignalState::Lifted),
                stop_signals::lifted_by.eq(by),
                stop_signals::lift_reason.eq(reason),
                stop_signals::updated_at.eq(clock_timestamp()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl StopSignalService for Registry {
    async fn list_stop_signals(
        &self,
        call: Request<ListStopSignalsRequest>,
    ) -> Reply<ListStopSignalsResponse> {
        self.list(call).await
    }

    async fn export_stop_signals(
        &self,
        call: Request<ExportStopSignalsRequest>,
    ) -> Replies<ExportStopSignalsResponse> {
        self.export(call).await
    }

    async fn create_stop_signal(
        &self,
        call: Request<CreateStopSignalRequest>,
    ) -> Reply<StopSignal> {
        self.create(call).await
    }

    async fn get_stop_signal(&self, call: Request<GetStopSignalRequest>) -> Reply<StopSignal> {
        self.get(call).await
    }

    async fn lift_stop_signal(&self, call: Request<LiftStopSignalRequest>) -> Reply<StopSignal> {
        self.lift(call, |request| request.reason.clone()).await
    }
}
