//! Streams of notifications.
//!
//! A notification gets its id before its transaction commits. It may therefore become visible after
//! a notification with a greater id. Each read therefore covers the last minute again and leaves
//! out the notifications that were already sent. No transaction of the service takes a minute.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use authority_api::{
    credentials::Credentials,
    error::{ApiError, ErrorCode},
    identity::Caller,
    stream::MessageSource,
};
use authority_model::proto::events::StreamNotificationsResponse;
use authority_process::clock::Clock;
use authority_store::{Db, Scope, Store};
use chrono::DateTime;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::reader::{NotificationRow, Reader, failed, floor};
use crate::follow::OpenStream;

/// The most notifications that are read at once.
const READ: i64 = 100;
const POLL: Duration = Duration::from_secs(2);
/// The longest time between two messages.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The state of one stream.
pub(super) struct Follow {
    pub(super) store: Store,
    pub(super) scope: Scope,
    pub(super) clock: Clock,
    pub(super) credentials: Credentials,
    pub(super) shutdown: CancellationToken,
    pub(super) caller: Caller,
    pub(super) reader: Reader,
    /// Every notification below this id was sent, or is older than the stream.
    pub(super) floor: String,
    /// Where a stream after this one resumes, in microseconds.
    pub(super) position: i64,
    /// Notifications at or above `floor` that were sent or are older than the stream.
    pub(super) sent: BTreeSet<String>,
    pub(super) unsent: VecDeque<NotificationRow>,
    pub(super) _place: OpenStream,
}

impl MessageSource for Follow {
    type Message = StreamNotificationsResponse;

    async fn next(&mut self) -> Option<Result<Self::Message, ApiError>> {
        Some(self.message().await)
    }
}

impl Follow {
    /// Starts the stream at a position; at the current time if `after` is `None`.
    pub(super) async fn begin(mut self, after: Option<i64>) -> Result<Self, ApiError> {
        let at = after.and_then(DateTime::from_timestamp_micros);
        let reader = self.reader.clone();
        let begin = async move |db: &mut Db| {
            let (floor, at) = floor(db, at).await.map_err(failed)?;
            let before = match after {
                Some(_) => Vec::new(),
                None => reader.since(db, &floor, &[], i64::MAX).await.map_err(failed)?,
            };
            Ok::<_, ApiError>((floor, at, before))
        };
        let (floor, at, before) = self.store.read_tx(&self.scope, begin).await?;
        self.floor = floor;
        self.position = at.timestamp_micros();
        self.sent = before.into_iter().map(|row| row.id).collect();
        Ok(self)
    }

    async fn message(&mut self) -> Result<StreamNotificationsResponse, ApiError> {
        let beat = Instant::now() + HEARTBEAT;
        loop {
            // Only people open these streams, and a person's credential has no scopes.
            self.credentials.check(&self.caller, "", None, self.clock.now())?;
            if self.shutdown.is_cancelled() {
                let message = "the service is stopping; resume after the last position";
                return Err(ApiError::new(ErrorCode::Unavailable, message));
            }
            if let Some(row) = self.unsent.pop_front() {
                self.position = self.position.max(row.created_at.timestamp_micros());
                let notification = Some(row.into());
                return Ok(StreamNotificationsResponse { position: self.position, notification });
            }
            self.read().await?;
            if !self.unsent.is_empty() {
                continue;
            }
            if Instant::now() >= beat {
                let position = self.position;
                return Ok(StreamNotificationsResponse { position, notification: None });
            }
            let until = beat.min(Instant::now() + POLL);
            tokio::select! {
                () = self.shutdown.cancelled() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Reads new notifications. Raises the floor if no more are left.
    async fn read(&mut self) -> Result<(), ApiError> {
        let (reader, from) = (self.reader.clone(), self.floor.clone());
        let sent: Vec<String> = self.sent.iter().cloned().collect();
        let read = async move |db: &mut Db| {
            let next = floor(db, None).await.map_err(failed)?;
            let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
            let rows = reader.since(db, &from, &sent, READ).await.map_err(failed)?;
            Ok::<_, ApiError>((next, rows))
        };
        let ((floor, at), rows) = self.store.read_tx(&self.scope, read).await?;
        let is_all = i64::try_from(rows.len()).is_ok_and(|found| found < READ);
        self.sent.extend(rows.iter().map(|row| row.id.clone()));
        self.unsent = rows.into();
        if is_all && floor > self.floor {
            self.sent = self.sent.split_off(&floor);
            self.floor = floor;
            if self.unsent.is_empty() {
                self.position = self.position.max(at.timestamp_micros());
            }
        }
        Ok(())
    }
}
