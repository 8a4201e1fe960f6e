//! The operations on endpoints.

use authority_model::{proto::events::*, service::WebhookEndpointService};

use super::WebhookEndpoints;
use crate::flow::prelude::*;
use authority_api::{error::ApiError, identity::caller};

/// Refuses keys that are bound to principals. An endpoint receives events about every principal.
fn unbound<T>(call: &Request<T>) -> Result<(), ApiError> {
    caller(call)?.unbound("manage webhook endpoints, which receive every event of the tenant")
}

#[tonic::async_trait]
impl WebhookEndpointService for WebhookEndpoints {
    async fn list_webhook_endpoints(
        &self,
        call: Request<ListWebhookEndpointsRequest>,
    ) -> Reply<ListWebhookEndpointsResponse> {
        unbound(&call)?;
        self.0.list(call).await
    }

    async fn create_webhook_endpoint(
        &self,
        call: Request<CreateWebhookEndpointRequest>,
    ) -> Reply<CreateWebhookEndpointResponse> {
        unbound(&call)?;
        self.create(call).await
    }

    async fn get_webhook_endpoint(
        &self,
        call: Request<GetWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        unbound(&call)?;
        let caller = caller(&call)?;
        let found = self.0.get(call).await?;
        self.0.completed(&caller, found).await
    }

    async fn update_webhook_endpoint(
        &self,
        call: Request<UpdateWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        unbound(&call)?;
        let caller = caller(&call)?;
        let changed = self.update(call).await?;
        self.0.completed(&caller, changed).await
    }

    async fn delete_webhook_endpoint(
        &self,
        call: Request<DeleteWebhookEndpointRequest>,
    ) -> Reply<DeleteWebhookEndpointResponse> {
        unbound(&call)?;
        self.0.delete(call).await
    }

    async fn rotate_webhook_endpoint_secret(
        &self,
        call: Request<RotateWebhookEndpointSecretRequest>,
    ) -> Reply<RotateWebhookEndpointSecretResponse> {
        unbound(&call)?;
        self.rotate(call).await
    }

    async fn pause_webhook_endpoint(
        &self,
        call: Request<PauseWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        unbound(&call)?;
        let caller = caller(&call)?;
        let paused = self.pause(call).await?;
        self.0.completed(&caller, paused).await
    }

    async fn enable_webhook_endpoint(
        &self,
        call: Request<EnableWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        unbound(&call)?;
        let caller = caller(&call)?;
        let enabled = self.enable(call).await?;
        self.0.completed(&caller, enabled).await
    }
}
