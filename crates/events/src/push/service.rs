//! Implements the push subscription API.

use std::sync::Arc;

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{self, IdempotencyKey},
    identity::admitted,
};
use authority_keys::Keys;
use authority_model::{
    proto::events::{
        CreatePushSubscriptionRequest, DeletePushSubscriptionRequest,
        DeletePushSubscriptionResponse, GetPushKeyRequest, GetPushKeyResponse,
        ListPushSubscriptionsRequest, ListPushSubscriptionsResponse, PushSubscription,
    },
    service::{PushSubscriptionService, Reply},
    wire::Time,
};
use authority_process::clock::Clock;
use authority_store::{Db, Store};
use tonic::{Request, Response};

use super::{
    subscriptions::{New, Person, failed},
    vapid::Vapid,
};
use crate::delivery::Deliveries;

/// Serves `PushSubscriptionService`.
pub(super) struct PushSubscriptionHandlers {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) deliveries: Deliveries,
    /// `None` if push is off. Existing subscriptions can then still be listed and deleted.
    pub(super) vapid: Option<Arc<Vapid>>,
}

#[tonic::async_trait]
impl PushSubscriptionService for PushSubscriptionHandlers {
    async fn get_push_key(&self, call: Request<GetPushKeyRequest>) -> Reply<GetPushKeyResponse> {
        admitted(call)?;
        let public_key = self.vapid()?.public_key().to_owned();
        Ok(Response::new(GetPushKeyResponse { public_key }))
    }

    async fn list_push_subscriptions(
        &self,
        call: Request<ListPushSubscriptionsRequest>,
    ) -> Reply<ListPushSubscriptionsResponse> {
        let (caller, _) = admitted(call)?;
        let person = Person::of(&caller)?;
        let list = async move |db: &mut Db| person.list(db).await.map_err(failed);
        let push_subscriptions = self.store.read_tx(&caller.scope(), list).await?;
        Ok(Response::new(ListPushSubscriptionsResponse { push_subscriptions }))
    }

    async fn create_push_subscription(
        &self,
        call: Request<CreatePushSubscriptionRequest>,
    ) -> Reply<PushSubscription> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let person = Person::of(&caller)?;
        self.vapid()?;
        let url = self.deliveries.push_url(&request.endpoint);
        let url = url.map_err(|fault| ApiError::field("endpoint", fault.to_string()))?;
        let (now, keys) = (self.clock.now(), self.keys.clone());
        let new = New {
            endpoint_code: keys.push_endpoint_code(url.as_str()),
            origin: url.origin(),
            label: request.label.filter(|label| !label.is_empty()),
            expires_at: request.expiration_time.and_then(Time::moment),
        };
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(ApiError::field("expiration_time", "is past; subscribe anew").into());
        }
        let subscribe = async move |db: &mut Db| {
            let seal = |id: &str| Ok(keys.seal_push_endpoint(id, url.as_str())?);
            person.subscribe(db, &new, seal).await
        };
        let made = idempotency::execute(&self.store, &caller.scope(), now, key, subscribe).await?;
        Ok(made.reply())
    }

    async fn delete_push_subscription(
        &self,
        call: Request<DeletePushSubscriptionRequest>,
    ) -> Reply<DeletePushSubscriptionResponse> {
        let (caller, DeletePushSubscriptionRequest { id }) = admitted(call)?;
        let person = Person::of(&caller)?;
        let delete = async move |db: &mut Db| match person.unsubscribe(db, &id).await {
            Ok(true) => Ok(DeletePushSubscriptionResponse { id }),
            Ok(false) => Err(ApiError::not_found("push subscription", &id)),
            Err(error) => Err(failed(error)),
        };
        Ok(Response::new(self.store.write_tx(&caller.scope(), delete).await?))
    }
}

impl PushSubscriptionHandlers {
    fn vapid(&self) -> Result<&Vapid, ApiError> {
        self.vapid.as_deref().ok_or_else(|| ApiError::plain(ErrorCode::PushNotConfigured))
    }
}
