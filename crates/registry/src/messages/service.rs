//! Implements the API of channels.

use std::{sync::Arc, time::Duration};

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{self, Done, IdempotencyKey},
    identity::{Caller, admitted},
};
use authority_ids::RecordId;
use authority_model::{
    proto::events::{
        CreateMessageChannelRequest, DeleteMessageChannelRequest, DeleteMessageChannelResponse,
        ListMessageChannelsRequest, ListMessageChannelsResponse, MessageChannel,
        TestMessageChannelRequest, TestMessageChannelResponse, UpdateMessageChannelRequest,
    },
    service::{MessageChannelService, Reply},
};
use authority_presentation::MessageText;
use authority_store::{Db, new_id};
use authority_webhook::destination::EndpointUrl;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::time::timeout;
use tonic::{Request, Response};

use super::{
    channel::NewChannel,
    mail::address,
    outgoing,
    owner::{Owner, failed},
    refusal::Refusal,
    settings::Settings,
    transport::{Transport, url_rules},
};
use crate::flow::registry::Registry;

/// What error messages call a channel.
const KIND: &str = "message channel";
/// The time limit for a test. It is shorter than for other messages, because the API call has a deadline
/// of its own.
const TEST: Duration = Duration::from_secs(8);

/// Serves `MessageChannelService`.
pub(super) struct MessageChannels {
    pub(super) registry: Registry,
    pub(super) transport: Arc<Transport>,
    pub(super) public_url: Arc<str>,
}

#[tonic::async_trait]
impl MessageChannelService for MessageChannels {
    async fn list_message_channels(
        &self,
        call: Request<ListMessageChannelsRequest>,
    ) -> Reply<ListMessageChannelsResponse> {
        let (caller, _) = admitted(call)?;
        let owner = Owner::of(&caller)?;
        let list = async move |db: &mut Db| {
            let found = owner.channels(db).await.map_err(failed)?;
            Ok::<_, ApiError>((found, owner.default_settings(db).await.map_err(failed)?))
        };
        let (found, defaults) = self.registry.store.read_tx(&caller.scope(), list).await?;
        Ok(Response::new(ListMessageChannelsResponse {
            message_channels: found.into_iter().map(MessageChannel::from).collect(),
            sends_email: self.transport.mailer.is_some(),
            default_settings: Some(defaults),
        }))
    }

    async fn create_message_channel(
        &self,
        call: Request<CreateMessageChannelRequest>,
    ) -> Reply<MessageChannel> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let owner = Owner::of(&caller)?;
        let has_defaults = request.settings.is_none() && !request.for_tenant;
        let new = self.new_channel(&owner, request)?;
        let add = async move |db: &mut Db| {
            let mut new = new.clone();
            if has_defaults {
                let defaults = owner.default_settings(db).await.map_err(failed)?;
                new.settings = stored(Settings::of(defaults, false))?;
            }
            owner.add(db, &new).await.map(MessageChannel::from)
        };
        let (store, now) = (&self.registry.store, self.registry.clock.now());
        let added = idempotency::execute(store, &caller.scope(), now, key, add).await?;
        Ok(added.reply())
    }

    async fn update_message_channel(
        &self,
        call: Request<UpdateMessageChannelRequest>,
    ) -> Reply<MessageChannel> {
        let (caller, UpdateMessageChannelRequest { id, settings }) = admitted(call)?;
        let owner = Owner::of(&caller)?;
        let given = settings.unwrap_or_default();
        let change = async move |db: &mut Db| {
            owner.lock(db).await?;
            let own = owner.channels(db).await.map_err(failed)?;
            let unknown = || ApiError::not_found(KIND, &id);
            let own = own.into_iter().find(|channel| channel.id == id).ok_or_else(unknown)?;
            let settings = stored(Settings::of(given, own.person.is_none()))?;
            let changed = owner.change(db, &id, &settings).await.map_err(failed)?;
            changed.map(MessageChannel::from).ok_or_else(unknown)
        };
        Ok(Response::new(self.registry.store.write_tx(&caller.scope(), change).await?))
    }

    async fn delete_message_channel(
        &self,
        call: Request<DeleteMessageChannelRequest>,
    ) -> Reply<DeleteMessageChannelResponse> {
        let (caller, DeleteMessageChannelRequest { id }) = admitted(call)?;
        let owner = Owner::of(&caller)?;
        let delete = async move |db: &mut Db| match owner.remove(db, &id).await {
            Ok(true) => Ok(DeleteMessageChannelResponse { id }),
            Ok(false) => Err(ApiError::not_found(KIND, &id)),
            Err(error) => Err(failed(error)),
        };
        Ok(Response::new(self.registry.store.write_tx(&caller.scope(), delete).await?))
    }

    async fn test_message_channel(
        &self,
        call: Request<TestMessageChannelRequest>,
    ) -> Reply<TestMessageChannelResponse> {
        let (key, now) = (IdempotencyKey::of(&call)?, self.registry.clock.now());
        let (caller, TestMessageChannelRequest { id }) = admitted(call)?;
        if let Some(first) = self.first_answer(&caller, key.clone(), now).await? {
            return Ok(first.reply());
        }
        let owner = Owner::of(&caller)?;
        let tested = id.clone();
        let begin = async move |db: &mut Db| {
            let begun = owner.begin_test(db, &tested).await.map_err(failed)?;
            let (receiver, is_first) = begun.ok_or_else(|| ApiError::not_found(KIND, &tested))?;
            let text = "a channel sends one test message in 10 seconds";
            let refused = ApiError::new(ErrorCode::RateLimited, text).with("retry_after", "10");
            if is_first { Ok(receiver) } else { Err(refused) }
        };
        let receiver = self.registry.store.write_tx(&caller.scope(), begin).await?;
        let text = MessageText::test(&format!("{}/console/messages", self.public_url));
        let message = String::from(RecordId::new("message", new_id()));
        let sent = timeout(TEST, self.transport.send(&receiver, &message, &text)).await;
        let sent = sent.unwrap_or_else(|_| Err(Refusal::timeout()));
        let error = sent.as_ref().err().map(|refusal| refusal.class.clone());
        let note = async move |db: &mut Db| {
            outgoing::note(db, &id, &sent).await.map_err(failed)?;
            Ok::<_, ApiError>(TestMessageChannelResponse { sent: error.is_none(), error })
        };
        let (store, scope) = (&self.registry.store, caller.scope());
        Ok(idempotency::execute(store, &scope, now, key, note).await?.reply())
    }
}

impl MessageChannels {
    /// Returns the response to the first test with this key.
    async fn first_answer(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        now: DateTime<Utc>,
    ) -> Result<Option<Done<TestMessageChannelResponse>>, ApiError> {
        let Some(key) = key else { return Ok(None) };
        let find = async move |db: &mut Db| {
            let first = key.find(db, now).await?;
            Ok::<_, ApiError>(first.map(|first| first.read()).transpose()?)
        };
        self.registry.store.read_tx(&caller.scope(), find).await
    }

    fn new_channel(
        &self,
        owner: &Owner,
        request: CreateMessageChannelRequest,
    ) -> Result<NewChannel, ApiError> {
        let CreateMessageChannelRequest { kind, url, for_tenant, settings } = request;
        if for_tenant && !owner.is_admin {
            return Err(ApiError::plain(ErrorCode::Forbidden));
        }
        let settings = stored(Settings::of(settings.unwrap_or_default(), for_tenant))?;
        let id = String::from(RecordId::new("message_channel", new_id()));
        let (target, sealed_url) = if kind == "email" {
            (self.address(owner, for_tenant, url.is_some())?, None)
        } else {
            let text = url.ok_or_else(|| ApiError::field("url", "is required for a chat"))?;
            let rules = url_rules(&self.registry.destinations.urls, for_tenant);
            let url = EndpointUrl::parse(&text, &rules);
            let url = url.map_err(|fault| ApiError::field("url", fault.to_string()))?;
            (url.origin(), Some(self.registry.keys.seal_message_url(&id, url.as_str())?))
        };
        Ok(NewChannel { id, kind, for_tenant, target, sealed_url, settings })
    }

    /// The address to which e-mail for the person goes. It is the one in their token: otherwise people
    /// could have messages sent to anybody.
    fn address(&self, owner: &Owner, for_tenant: bool, has_url: bool) -> Result<String, ApiError> {
        if self.transport.mailer.is_none() {
            return Err(ApiError::plain(ErrorCode::MailNotConfigured));
        }
        if has_url {
            return Err(ApiError::field("url", "is only for a chat; e-mail goes to your address"));
        }
        if for_tenant {
            return Err(ApiError::field("for_tenant", "is only for a chat; e-mail is a person's"));
        }
        let missing = || ApiError::field("kind", "needs a token with an ASCII address as `email`");
        owner.email.clone().filter(|own| address(own).is_some()).ok_or_else(missing)
    }
}

fn stored(
    checked: Result<Settings, authority_model::validate::Violations>,
) -> Result<Value, ApiError> {
    let settings = checked.map_err(|faults| ApiError::invalid(faults.list))?;
    // Texts, lists and objects: serde can always write them.
    Ok(serde_json::to_value(settings).unwrap_or_default())
}
