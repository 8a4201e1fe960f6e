//! The service of deliveries: lists of deliveries, test events, redrives and replays.

mod call;
mod find;
mod progress;
mod redrive;
mod replays;
mod test_event;

pub use test_event::RATE_LIMIT as TEST_RATE_LIMIT;

use std::sync::Arc;

use authority_api::page_token::PageTokens;
use authority_model::{
    proto::events::*,
    service::{Reply, WebhookDeliveryService},
};
use tonic::{Request, Response};

use call::Call;

use super::{deliveries::Deliveries, shared::Shared};

impl Deliveries {
    /// Returns the service of deliveries.
    pub fn service(&self) -> Arc<impl WebhookDeliveryService + use<>> {
        Arc::new(Handlers(Arc::clone(&self.0)))
    }
}

struct Handlers(Arc<Shared>);

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
