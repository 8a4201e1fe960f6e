//! Replaces an endpoint's secret.

use authority_keys::EndpointColumn;
use authority_model::{proto::events::*, schema::webhook_endpoints, wire::Time};
use chrono::TimeDelta;

use super::{WebhookEndpoints, create::fresh};
use crate::flow::{operations::or_not_found, prelude::*};

/// The default time that the previous secret stays in use, in seconds.
const OVERLAP: i32 = 86_400;

impl WebhookEndpoints {
    pub(super) async fn rotate(
        &self,
        call: Request<RotateWebhookEndpointSecretRequest>,
    ) -> Reply<RotateWebhookEndpointSecretResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let keys = self.0.keys.clone();
        let key = key.map(|key| key.sealed(keys.clone()));
        let overlap = TimeDelta::seconds(request.overlap_seconds.unwrap_or(OVERLAP).into());
        let until = self.0.clock.now() + overlap;
        let (id, by, secret) = (request.id, caller.clone(), fresh()?);
        let rotated = self.0.idempotent(&caller, key, async move |db| {
            let was = or_not_found(WebhookEndpoint::lock(db, by.tenant(), &id).await, &id)?;
            let row = webhook_endpoints::table.find(&was.id);
            let before: Option<Vec<u8>> = row.select(webhook_endpoints::secret).first(db).await?;
            // A sealed value is bound to its column and must be sealed again for another column.
            let before =
                keys.open_endpoint(&id, EndpointColumn::Secret, &before.unwrap_or_default())?;
            let before = keys.seal_endpoint(&id, EndpointColumn::PreviousSecret, &before)?;
            let sealed = keys.seal_endpoint(&id, EndpointColumn::Secret, secret.as_bytes())?;
            let previous = (overlap > TimeDelta::zero()).then_some((before, Time::from(until)));
            let (before, until) = previous.unzip();
            let endpoint = diesel::update(row)
                .set((
                    webhook_endpoints::secret.eq(sealed),
                    webhook_endpoints::previous_secret.eq(before),
                    webhook_endpoints::previous_until.eq(until),
                    webhook_endpoints::updated_at.eq(clock_timestamp()),
                ))
                .returning(WebhookEndpoint::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(RotateWebhookEndpointSecretResponse {
                webhook_endpoint: Some(endpoint),
                secret: secret.reveal(),
            })
        });
        let rotated = rotated.await?;
        self.0.shown_again(&caller, &rotated, rotated.message.webhook_endpoint.as_ref()).await?;
        Ok(rotated.reply())
    }
}
