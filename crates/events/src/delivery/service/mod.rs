//! The service of deliveries: lists of deliveries, test events, redrives and replays.

mod find;
mod progress;
mod redrive;
mod replays;
mod test_event;

pub use test_event::RATE_LIMIT as TEST_RATE_LIMIT;

use std::sync::Arc;

use authority_api::{
    error::ApiError,
    idempotency::IdempotencyKey,
    identity::{Caller, admitted},
    page_token::PageTokens,
};
use authority_model::{
    proto::events::*,
    record::RpcRequest,
    service::{Reply, WebhookDeliveryService},
    validate::Validate,
};
use authority_store::{self as store, Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, Text},
};
use tonic::{Request, Response};

use super::{Deliveries, Shared};

impl Deliveries {
    /// Returns the service of deliveries.
    pub fn service(&self) -> Arc<impl WebhookDeliveryService + use<>> {
        Arc::new(Handlers(Arc::clone(&self.0)))
    }
}

struct Handlers(Arc<Shared>);

/// An admitted call. The caller may see all events of the tenant.
struct Call<T> {
    caller: Caller,
    key: Option<IdempotencyKey>,
    request: T,
}

impl<T: RpcRequest + Validate> Call<T> {
    fn of(call: Request<T>) -> Result<Self, ApiError> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        caller.unbound("see deliveries, which cover all events of the tenant")?;
        Ok(Self { caller, key, request })
    }
}

/// An endpoint that is visible to the caller.
#[derive(QueryableByName)]
struct Seen {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    tenant_state: String,
    #[diesel(sql_type = Array<Text>)]
    event_types: Vec<String>,
}

impl Seen {
    async fn find(db: &mut Db, id: &str) -> Result<Self, ApiError> {
        Self::read(db, id, "").await
    }

    /// Finds the endpoint and prevents its deletion until the transaction ends.
    async fn lock(db: &mut Db, id: &str) -> Result<Self, ApiError> {
        Self::read(db, id, "FOR SHARE OF e").await
    }

    async fn read(db: &mut Db, id: &str, lock: &str) -> Result<Self, ApiError> {
        let query = [
            "SELECT e.tenant_id, t.state AS tenant_state, e.event_types FROM webhook_endpoints e \
             JOIN tenants t ON t.id = e.tenant_id WHERE e.id = $1 AND e.state <> 'deleted' ",
            lock,
        ];
        let query = diesel::sql_query(query.concat());
        let found = query.bind::<Text, _>(id).get_result(db).await.optional();
        let found: Option<Self> = found.map_err(store::Error::from)?;
        found.ok_or_else(|| ApiError::not_found("webhook_endpoint", id))
    }
}

#[tonic::async_trait]
impl WebhookDeliveryService for Handlers {
    async fn test_webhook_endpoint(
        &self,
        call: Request<TestWebhookEndpointRequest>,
    ) -> Reply<TestWebhookEndpointResponse> {
        Ok(self.0.test(Call::of(call)?).await?)
    }

    async fn list_webhook_deliveries(
        &self,
        call: Request<ListWebhookDeliveriesRequest>,
    ) -> Reply<ListWebhookDeliveriesResponse> {
        let Call { caller, request, .. } = Call::of(call)?;
        let tokens = PageTokens::of(&self.0.keys, &caller, &request);
        let by = find::Filter {
            endpoint_id: request.id,
            state: request.state,
            event_type: request.event_type,
            limit: request.limit,
            page_token: request.page_token,
        };
        let (deliveries, next_page_token) = self.0.find(&caller, &tokens, by).await?;
        Ok(Response::new(ListWebhookDeliveriesResponse { deliveries, next_page_token }))
    }

    async fn list_dead_letters(
        &self,
        call: Request<ListDeadLettersRequest>,
    ) -> Reply<ListDeadLettersResponse> {
        let Call { caller, request, .. } = Call::of(call)?;
        let tokens = PageTokens::of(&self.0.keys, &caller, &request);
        let by = find::Filter {
            endpoint_id: request.id,
            state: Some("dead".to_owned()),
            event_type: request.event_type,
            limit: request.limit,
            page_token: request.page_token,
        };
        let (dead_letters, next_page_token) = self.0.find(&caller, &tokens, by).await?;
        Ok(Response::new(ListDeadLettersResponse { dead_letters, next_page_token }))
    }

    async fn redrive_webhook_delivery(
        &self,
        call: Request<RedriveWebhookDeliveryRequest>,
    ) -> Reply<WebhookDelivery> {
        Ok(self.0.redrive(Call::of(call)?).await?.reply())
    }

    async fn replay_webhook_endpoint(
        &self,
        call: Request<ReplayWebhookEndpointRequest>,
    ) -> Reply<ReplayWebhookEndpointResponse> {
        Ok(self.0.start_replay(Call::of(call)?).await?.reply())
    }

    async fn list_webhook_replays(
        &self,
        call: Request<ListWebhookReplaysRequest>,
    ) -> Reply<ListWebhookReplaysResponse> {
        let Call { caller, request, .. } = Call::of(call)?;
        Ok(Response::new(self.0.list_replays(&caller, request).await?))
    }

    async fn get_webhook_replay(
        &self,
        call: Request<GetWebhookReplayRequest>,
    ) -> Reply<WebhookReplay> {
        let Call { caller, request, .. } = Call::of(call)?;
        Ok(Response::new(self.0.show_replay(&caller, request).await?))
    }

    async fn cancel_webhook_replay(
        &self,
        call: Request<CancelWebhookReplayRequest>,
    ) -> Reply<WebhookReplay> {
        let Call { caller, request, .. } = Call::of(call)?;
        Ok(Response::new(self.0.cancel_replay(&caller, request).await?))
    }

    async fn replay_event(&self, call: Request<ReplayEventRequest>) -> Reply<ReplayEventResponse> {
        Ok(self.0.replay_event(Call::of(call)?).await?.reply())
    }
}
