//! Attempts a dead delivery again.

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, execute},
};
use authority_model::proto::events::{RedriveWebhookDeliveryRequest, WebhookDelivery};
use authority_store::{self as store, RunQueryDsl};
use diesel::sql_types::Text;

use super::{
    super::{make, shared::Shared},
    call::{Call, Seen},
    find,
};

const DEAD: &str = "dead";

/// Reopens the delivery. Earlier attempts are kept, and the retry schedule starts again. The event
/// has a row with its own id, or is in a shared row. The id of a shared row ends with 0000.
const REDRIVE: &str = "UPDATE webhook_deliveries \
     SET state = 'open', lane = 1, attempts_before = attempts, due_at = clock_timestamp(), \
         ended_at = NULL, lease = NULL, leased_until = NULL \
     WHERE id = $1 AND state = 'dead' \
       AND EXISTS (SELECT FROM events WHERE events.id = ANY ( \
           ARRAY[webhook_deliveries.event_id, left(webhook_deliveries.event_id, -4) || '0000']))";

impl Shared {
    pub(super) async fn redrive(
        &self,
        call: Call<RedriveWebhookDeliveryRequest>,
    ) -> Result<Done<WebhookDelivery>, ApiError> {
        let Call { caller, key, request } = call;
        let (scope, now) = (caller.scope(), self.clock.now());
        let done = execute(&self.store, &scope, now, key, async move |db| {
            let delivery = find::one(db, &request.id).await?;
            Seen::lock(db, &delivery.endpoint_id).await?;
            if make::room(db, &delivery.endpoint_id.as_str().into())
                .await
                .map_err(store::Error::from)?
                <= 0
            {
                let text = "the endpoint has 10000 open deliveries; redrive when some have ended";
                return Err(ApiError::new(ErrorCode::LimitReached, text));
            }
            let redriven =
                diesel::sql_query(REDRIVE).bind::<Text, _>(&request.id).execute(db).await;
            if redriven.map_err(store::Error::from)? == 0 {
                let text = match delivery.state.as_str() {
                    DEAD => "its event is no longer kept".to_owned(),
                    state => {
                        format!("the delivery is {state}; only {DEAD} deliveries can be redriven")
                    }
                };
                return Err(ApiError::new(ErrorCode::TransitionNotAllowed, text));
            }
            find::one(db, &request.id).await
        });
        let done = done.await?;
        self.wake.notify_one();
        Ok(done)
    }
}
