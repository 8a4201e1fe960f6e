//! The record of an endpoint: its list, defaults and rules.

use authority_model::{proto::events::*, schema::webhook_endpoints, state::WebhookEndpointState};
use authority_webhook::{
    retry::{DEFAULT_DELAYS, DEFAULT_JITTER},
    signing::Suite,
};

use super::{position, rules};
use crate::flow::prelude::*;
use authority_ids::RecordId;

/// The record type in an endpoint's ID: `svc:endpoint:…`.
const ID_KIND: &str = "endpoint";
/// Whether an endpoint is disabled or its deliveries fail.
const FAILS: &str = "(webhook_endpoints.state = 'disabled' OR EXISTS ( \
     SELECT FROM webhook_cursors c \
     WHERE c.endpoint_id = webhook_endpoints.id AND c.failing_since IS NOT NULL))";
/// The default number of deliveries per second.
const RATE: i32 = 100;

impl RecordRow for WebhookEndpoint {
    type List = ListWebhookEndpointsRequest;
    /// The graph contains the on-demand event types that the endpoint selects. Once the response to
    /// a write is sent, every event of these types is recorded.
    const AUTHORITY: bool = true;

    fn filtered(by: &ListWebhookEndpointsRequest) -> webhook_endpoints::BoxedQuery<'_, Pg> {
        let mut query = webhook_endpoints::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(webhook_endpoints::state.eq(state));
        } else if !by.deleted {
            query = query.filter(webhook_endpoints::deleted_at.is_null());
        }
        if by.failing {
            query = query.filter(diesel::dsl::sql::<Bool>(FAILS));
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        let policy = self.retry_policy.get_or_insert_default();
        if policy.strategy.is_none() && policy.schedule_seconds.is_empty() {
            policy.schedule_seconds = DEFAULT_DELAYS.map(u32::cast_signed).to_vec();
        }
        names::or(&mut policy.strategy, "schedule");
        policy.jitter.get_or_insert(DEFAULT_JITTER);
        if self.signing_suites.is_empty() {
            self.signing_suites = Suite::DEFAULT.iter().map(ToString::to_string).collect();
        }
        self.rate_limit_per_second.get_or_insert(RATE);
        self.headers.get_or_insert_default();
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::events(self, found);
        rules::retry_policy(self, found);
    }

    async fn resolve_tenant(
        &mut self,
        _db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        references::own_tenant(&mut self.tenant_id, Self::KIND, within)
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(ID_KIND, new_id()).into())
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        position::fill_computed(registry, caller, rows).await
    }
}

impl_queries!(WebhookEndpoint, webhook_endpoints);

impl Entity for WebhookEndpoint {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(WebhookEndpointState::Deleted);
}

impl_save!(WebhookEndpoint, webhook_endpoints);
impl_end!(WebhookEndpoint, webhook_endpoints);
