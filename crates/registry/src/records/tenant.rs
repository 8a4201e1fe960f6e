//! Tenants: the organisations that this installation serves.

use authority_model::{
    proto::registry::*, schema::tenants, service::TenantService, state::TenantState,
};

use serde_json::Value;

use crate::{flow::prelude::*, messages::check_defaults};
use authority_decision::validation::ContextSchema;
use authority_graph::time_zones;

/// The default number of days that events are kept.
const EVENT_RETENTION_DAYS: i32 = 30;
/// The default number of approval requests that one agent may have pending.
const OPEN_REQUESTS: i32 = 500;

impl RecordRow for Tenant {
    type List = ListTenantsRequest;
    const AUTHORITY: bool = true;

    /// Returns active tenants unless the request sets `state` or `deleted`. Deleted tenants are
    /// left out by default.
    fn filtered(by: &ListTenantsRequest) -> tenants::BoxedQuery<'_, Pg> {
        let mut query = tenants::table.into_boxed();
        match by.state.as_deref() {
            Some(state) => query = query.filter(tenants::state.eq(state)),
            None if by.deleted => {}
            None => query = query.filter(tenants::state.eq(TenantState::Active)),
        }
        if !by.deleted && by.state.as_deref() != Some(TenantState::Deleted.as_str()) {
            query = query.filter(tenants::deleted_at.is_null());
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        if self.slug.is_none() {
            self.slug = Some(names::slug(&self.name)).filter(|slug| !slug.is_empty());
        }
        names::or(&mut self.env, "sandbox");
        names::or(&mut self.contract_status, "lead");
        names::or(&mut self.sla_tier, "standard");
        names::or(&mut self.region, "eu-west");
        names::or(&mut self.durability, "strict");
        names::or(&mut self.receipts, "public");
        names::or(&mut self.policy_validation, "enforce");
        names::or(&mut self.time_zone, time_zones::UTC);
        self.event_retention_days.get_or_insert(EVENT_RETENTION_DAYS);
        self.cite_ready_approval.get_or_insert(true);
        self.open_requests_per_agent.get_or_insert(OPEN_REQUESTS);
    }

    fn validate_record(&self, found: &mut Violations) {
        if self.slug.is_none() {
            found.add("slug", "is required: `name` has no ASCII letter or digit for it");
        }
        if self.known_state() == Some(TenantState::Deleted) {
            found.add("state", "cannot be `deleted`; use DELETE");
        }
        if let Some(fault) = self.time_zone.as_deref().and_then(time_zones::fault) {
            found.add("time_zone", fault);
        }
        if let Some(defaults) = &self.message_defaults {
            check_defaults(defaults, found);
        }
        // Contexts must be erased before their decisions are archived.
        if let Some(kept) = &self.retention
            && let Some((contexts, decisions)) = kept.contexts_days.zip(kept.decisions_days)
            && contexts > decisions
        {
            let problem =
                "must not be more than `decisions_days`, after which contexts are archived";
            found.add("retention.contexts_days", problem);
        }
        if let Some(declared) = &self.context_schema
            && let Err((path, problem)) = ContextSchema::of(Value::Object(declared.0.clone()))
        {
            let path = if path.is_empty() { path } else { format!(".{path}") };
            found.add(&format!("context_schema{path}"), problem);
        }
    }

    async fn tenant_slug(&self, _db: &mut Db, _within: Option<&TenantId>) -> Result<String, Error> {
        Ok(self.slug.clone().unwrap_or_default())
    }

    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        TenantId::from_slug(slug).map(String::from)
    }

    fn address(id: &str) -> String {
        TenantId::complete(id).into()
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if self.known_state() != Some(TenantState::Active) || self.activated_at.is_some() {
            return Ok(());
        }
        self.activated_at = Some(tx.now.into());
        // An update never writes fields that only the server sets.
        if was.is_some() {
            diesel::update(tenants::table.find(&self.id))
                .set(tenants::activated_at.eq(self.activated_at))
                .execute(tx.db)
                .await?;
        }
        Ok(())
    }
}

impl_queries!(Tenant, tenants);

impl Entity for Tenant {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(TenantState::Deleted);
}

impl_save!(Tenant, tenants);

impl End for Tenant {
    fn end<'c>(db: &'c mut Db, row: &'c Self, state: TenantState) -> QueryFuture<'c, Self> {
        diesel::update(tenants::table.find(&row.id))
            .filter(tenants::tenant_id.eq(row.tenant_id()))
            .set((
                tenants::state.eq(state),
                tenants::updated_at.eq(clock_timestamp()),
                tenants::deleted_at.eq(clock_timestamp().nullable()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl TenantService for Registry {
    async fn list_tenants(&self, call: Request<ListTenantsRequest>) -> Reply<ListTenantsResponse> {
        self.list(call).await
    }

    async fn create_tenant(&self, call: Request<CreateTenantRequest>) -> Reply<Tenant> {
        self.create(call).await
    }

    async fn get_tenant(&self, call: Request<GetTenantRequest>) -> Reply<Tenant> {
        self.get(call).await
    }

    async fn update_tenant(&self, call: Request<UpdateTenantRequest>) -> Reply<Tenant> {
        self.update(call).await
    }

    async fn delete_tenant(
        &self,
        call: Request<DeleteTenantRequest>,
    ) -> Reply<DeleteTenantResponse> {
        self.delete(call).await
    }
}
