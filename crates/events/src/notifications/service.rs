//! Implements the notification API.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use authority_model::{
    proto::events::{
        CountUnreadNotificationsRequest, CountUnreadNotificationsResponse,
        ListNotificationsRequest, ListNotificationsResponse, Notification,
        ReadAllNotificationsRequest, ReadAllNotificationsResponse, ReadNotificationRequest,
        StreamNotificationsRequest, StreamNotificationsResponse,
    },
    service::{NotificationService, Replies, Reply},
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response};

use authority_api::{
    credentials::Credentials,
    error::ApiError,
    idempotency::{self, IdempotencyKey},
    identity::admitted,
    page,
    page_token::PageTokens,
    stream::stream_of,
};
use authority_graph::Graph;
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::{Db, Store};

use super::{
    follow::Follow,
    reader::{Reader, failed},
};
use crate::follow::Streams;

/// What error messages call a notification.
const KIND: &str = "notification";
const PAGE: i32 = 100;

/// Serves `NotificationService`.
pub(crate) struct NotificationHandlers {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) graph: Arc<Graph>,
    pub(crate) keys: Keys,
    pub(crate) streams: Streams,
    pub(crate) shutdown: CancellationToken,
}

#[tonic::async_trait]
impl NotificationService for NotificationHandlers {
    async fn list_notifications(
        &self,
        call: Request<ListNotificationsRequest>,
    ) -> Reply<ListNotificationsResponse> {
        let (caller, asked) = admitted(call)?;
        let reader = Reader::of(&caller)?;
        let tokens = PageTokens::of(&self.keys, &caller, &asked);
        let before = tokens.read(&asked.page_token)?;
        let before = before.and_then(|place| String::from_utf8(place).ok());
        let size = usize::try_from(asked.limit.unwrap_or(PAGE)).unwrap_or_default();
        let limit = i64::try_from(size).unwrap_or_default() + 1;
        let read = async move |db: &mut Db| {
            reader.page(db, before, asked.unread, limit).await.map_err(failed)
        };
        let rows = self.store.read_tx(&caller.scope(), read).await?;
        let mut notifications: Vec<_> = rows.into_iter().map(Notification::from).collect();
        let goes_on = page::cut(&mut notifications, size);
        let last = notifications.last().filter(|_| goes_on);
        let next_page_token = last.map(|last| tokens.write(last.id.as_bytes()));
        Ok(Response::new(ListNotificationsResponse { notifications, next_page_token }))
    }

    async fn count_unread_notifications(
        &self,
        call: Request<CountUnreadNotificationsRequest>,
    ) -> Reply<CountUnreadNotificationsResponse> {
        let (caller, _) = admitted(call)?;
        let reader = Reader::of(&caller)?;
        let count = async move |db: &mut Db| reader.count_unread(db).await.map_err(failed);
        let unread = self.store.read_tx(&caller.scope(), count).await?;
        let unread = i32::try_from(unread).unwrap_or(i32::MAX);
        Ok(Response::new(CountUnreadNotificationsResponse { unread }))
    }

    async fn read_notification(
        &self,
        call: Request<ReadNotificationRequest>,
    ) -> Reply<Notification> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, ReadNotificationRequest { id }) = admitted(call)?;
        let reader = Reader::of(&caller)?;
        let mark = async move |db: &mut Db| {
            reader.mark(db, Some(&id)).await.map_err(failed)?;
            let row = reader.one(db, &id).await.map_err(failed)?;
            row.map(Notification::from).ok_or_else(|| ApiError::not_found(KIND, &id))
        };
        let now = self.clock.now();
        let read = idempotency::execute(&self.store, &caller.scope(), now, key, mark).await?;
        Ok(read.reply())
    }

    async fn read_all_notifications(
        &self,
        call: Request<ReadAllNotificationsRequest>,
    ) -> Reply<ReadAllNotificationsResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, _) = admitted(call)?;
        let reader = Reader::of(&caller)?;
        let mark = async move |db: &mut Db| {
            let read = reader.mark(db, None).await.map_err(failed)?;
            let read = i32::try_from(read).unwrap_or(i32::MAX);
            Ok::<_, ApiError>(ReadAllNotificationsResponse { read })
        };
        let now = self.clock.now();
        let read = idempotency::execute(&self.store, &caller.scope(), now, key, mark).await?;
        Ok(read.reply())
    }

    async fn stream_notifications(
        &self,
        call: Request<StreamNotificationsRequest>,
    ) -> Replies<StreamNotificationsResponse> {
        let (caller, asked) = admitted(call)?;
        let reader = Reader::of(&caller)?;
        let place = self.streams.enter(reader.tenant_id(), &caller)?;
        let limits = place.limits();
        let follow = Follow {
            store: self.store.clone(),
            scope: caller.scope(),
            clock: self.clock.clone(),
            credentials: Credentials { graph: Arc::clone(&self.graph) },
            shutdown: self.shutdown.clone(),
            caller,
            reader,
            floor: String::new(),
            position: 0,
            sent: BTreeSet::new(),
            unsent: VecDeque::new(),
            _place: place,
        };
        Ok(limits.shown_in(Response::new(stream_of(follow.begin(asked.after).await?))))
    }
}
