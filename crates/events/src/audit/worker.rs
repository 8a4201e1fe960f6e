//! Sends audit streams.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_ids::TenantId;
use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, Scope, Store, row_id};
use authority_webhook::{audit_filter::AuditFilter, event_types::EventType};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    checkpoint,
    cursor::{self, Claimed, Reached},
    nats::Nats,
    sink::{self, Message, MessageKind, Sink},
};
use crate::{
    delivery::Deliveries,
    feed::EventFeed,
    log::{self, Event},
    lost::Lost,
};

/// How often streams are claimed without a notification of new events. New checkpoints cause no
/// notification.
const POLL: Duration = Duration::from_secs(1);
/// The most events that are read and recorded together.
const BATCH: i64 = 100;
/// The most streams that are sent concurrently.
const MOST: usize = 16;
/// How long a stream is sent before other streams have their turn. Together with a sink's time
/// limit for one message, it is shorter than the lease of 60 s.
const TURN: Duration = Duration::from_secs(5);

struct Sender {
    store: Store,
    nats: Arc<Nats>,
    deliveries: Deliveries,
}

/// Returns the worker that sends audit streams.
pub(crate) fn worker(
    store: Store,
    feed: &EventFeed,
    nats: Arc<Nats>,
    deliveries: Deliveries,
) -> Worker {
    let sender = Arc::new(Sender { store, nats, deliveries });
    let feed = feed.clone();
    let worker = Worker::endless("audit_streams", move |context| {
        let (sender, feed) = (Arc::clone(&sender), feed.clone());
        async move {
            sender.run(&feed, &context).await;
            Ok::<_, store::Error>(())
        }
    });
    worker.with_rounds(POLL)
}

impl Sender {
    /// Sends the due streams concurrently: a slow sink does not delay other streams.
    async fn run(self: &Arc<Self>, feed: &EventFeed, context: &Context) {
        let mut grown = feed.subscribe();
        let mut turns = JoinSet::new();
        loop {
            // A failed round is retried at the next poll.
            if let Ok((lease, claimed)) = context.round(self.claim(MOST - turns.len())).await {
                for stream in claimed {
                    let turn = Arc::clone(self).turn(stream, lease.clone(), context.clone());
                    turns.spawn(turn);
                }
            }
            tokio::select! {
                () = context.stopped() => break,
                Some(_) = turns.join_next() => {}
                _ = grown.recv(), if turns.len() < MOST => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
        while turns.join_next().await.is_some() {}
    }

    async fn claim(&self, most: usize) -> Result<(String, Vec<Claimed>), store::Error> {
        let claim = async move |db: &mut Db| Ok::<_, store::Error>(cursor::claim(db, most).await?);
        self.store.write_tx(&Scope::service(), claim).await
    }

    async fn turn(self: Arc<Self>, stream: Claimed, lease: String, context: Context) {
        // After a failure, the lease expires. The stream is then sent again from its recorded
        // position.
        if let Err(error) = self.send(&stream, &lease, &context).await {
            tracing::warn!(%error, stream.id = stream.stream_id, "failed to send an audit stream");
        }
    }

    /// Sends one stream. Ends when all events are sent, a message fails, the stream is sealed or
    /// changed, or its turn ends.
    async fn send(
        &self,
        stream: &Claimed,
        lease: &str,
        context: &Context,
    ) -> Result<(), store::Error> {
        let mut reached = Reached { sequence: stream.sequence, ..Reached::default() };
        let begun = Instant::now();
        let has_ended = || begun.elapsed() > TURN || context.stopped().now_or_never().is_some();
        loop {
            match self.batch(stream, lease, &mut reached, &has_ended).await {
                Ok(is_last) => {
                    // If the stream was changed or sealed, its progress is not recorded. A new
                    // filter then judges the same events: the old one may have excluded some.
                    if !self.hold(stream, lease, &mut reached).await? {
                        return self.release(stream, lease).await;
                    }
                    if is_last || has_ended() {
                        return self.release(stream, lease).await;
                    }
                }
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Stopped) => return self.release(stream, lease).await,
                Err(Failure::Sink { error, shown }) => {
                    report_failure(stream, &error);
                    return self.fail(stream, lease, &mut reached, shown).await;
                }
            }
        }
    }

    /// Sends the next events and the newest checkpoint. Returns whether all events are sent.
    ///
    /// A refused checkpoint does not delay events. It is retried separately, and the next
    /// checkpoint supersedes it.
    async fn batch(
        &self,
        stream: &Claimed,
        lease: &str,
        reached: &mut Reached,
        has_ended: impl Fn() -> bool,
    ) -> Result<bool, Failure> {
        let tenant_id = row_id(&stream.tenant_id).map_err(|error| Failure::Store(error.into()))?;
        let sink = self.sink(stream, &tenant_id)?;
        let filter = AuditFilter::read(stream.filter.as_ref().and_then(Value::as_object))
            .map_err(|fault| Failure::sink(format!("its filter cannot be read: {fault}")))?;
        let (of, after) = (tenant_id.clone(), reached.sequence);
        let since = reached.checkpoint_at.or(stream.checkpoint_at);
        let may_try_checkpoint = stream.may_try_checkpoint && !reached.has_failed_checkpoint;
        let read = async move |db: &mut Db| {
            let head = cursor::head(db, &of).await?;
            let events = log::read(db, of.as_str(), (after, head), None, BATCH).await?.events;
            let signed =
                if may_try_checkpoint { checkpoint::newest(db, &of, since).await? } else { None };
            Ok::<_, store::Error>((head, events, signed))
        };
        let (head, events, signed) =
            self.store.read_tx(&Scope::service(), read).await.map_err(Failure::Store)?;
        if let Some(lost) =
            Lost::before(reached.sequence, events.first().map(|event| event.sequence), head)
        {
            reached.sequence = lost.to;
            reached.lost = Some(reached.lost.map_or(lost, |before| before.and(lost)));
        }
        for event in &events {
            if has_ended() {
                return Ok(false);
            }
            if takes(&filter, event) {
                let message =
                    Message { id: &event.id, body: &event.body, kind: MessageKind::Event };
                sink.send(message, self.may_send(stream, lease)).await?;
                metrics::counter!("authority_audit_stream_events_total").increment(1);
            }
            reached.sequence = event.sequence;
        }
        if let Some(signed) = signed {
            let (id, body) = (signed.id(), signed.body(&tenant_id).into());
            let message = Message { id: &id, body: &body, kind: MessageKind::Checkpoint };
            match sink.send(message, self.may_send(stream, lease)).await.map_err(Failure::from) {
                Ok(()) => reached.checkpoint_at = Some(signed.signed_at),
                Err(Failure::Sink { error, shown }) => {
                    report_failure(stream, &error);
                    reached.checkpoint_error = Some(shown);
                    reached.has_failed_checkpoint = true;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(reached.sequence >= head)
    }

    fn sink<'a>(
        &'a self,
        stream: &'a Claimed,
        tenant_id: &'a TenantId,
    ) -> Result<Sink<'a>, Failure> {
        let stream_id = &stream.stream_id;
        match (stream.sink.as_str(), stream.target.as_deref()) {
            ("stdout", _) => Ok(Sink::Stdout),
            ("nats", Some(subject)) => Ok(Sink::Nats { nats: &self.nats, subject, tenant_id }),
            ("webhook", Some(url)) => {
                Ok(Sink::Webhook { deliveries: &self.deliveries, url, stream_id, tenant_id })
            }
            (other, _) => Err(Failure::sink(format!("the sink `{other}` is unknown"))),
        }
    }

    /// Returns whether the stream may still send. It is called right before each message.
    ///
    /// A sealed stream sends no more messages. A changed stream sends none with its old settings.
    async fn may_send(&self, stream: &Claimed, lease: &str) -> bool {
        let (stream, lease) = (stream.clone(), lease.to_owned());
        let check = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::may_send(db, &stream, &lease).await?)
        };
        self.store.read_tx(&Scope::service(), check).await.unwrap_or(false)
    }

    async fn hold(
        &self,
        stream: &Claimed,
        lease: &str,
        reached: &mut Reached,
    ) -> Result<bool, store::Error> {
        let (claimed, lease, until) = (stream.clone(), lease.to_owned(), reached.clone());
        let hold = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::hold(db, &claimed, &lease, &until).await?)
        };
        let held = self.store.write_tx(&Scope::service(), hold).await?;
        if held {
            reached.checkpoint_error = None;
            report_lost(stream, reached);
        }
        Ok(held)
    }

    async fn release(&self, stream: &Claimed, lease: &str) -> Result<(), store::Error> {
        let (id, lease) = (stream.stream_id.clone(), lease.to_owned());
        let release =
            async move |db: &mut Db| Ok::<_, store::Error>(cursor::release(db, &id, &lease).await?);
        self.store.write_tx(&Scope::service(), release).await
    }

    async fn fail(
        &self,
        stream: &Claimed,
        lease: &str,
        reached: &mut Reached,
        error: String,
    ) -> Result<(), store::Error> {
        let (claimed, lease, until) = (stream.clone(), lease.to_owned(), reached.clone());
        let fail = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::failed(db, &claimed, &lease, &until, &error).await?)
        };
        if self.store.write_tx(&Scope::service(), fail).await? {
            report_lost(stream, reached);
        }
        Ok(())
    }
}

/// Reports a message that the sink did not accept.
fn report_failure(stream: &Claimed, error: &str) {
    metrics::counter!("authority_audit_stream_failures_total", "sink" => stream.sink.clone())
        .increment(1);
    tracing::warn!(
        stream.id = stream.stream_id,
        failures = stream.failures + 1,
        error,
        "failed to hand a message to an audit stream's sink"
    );
}

/// Reports events that retention deleted before they were sent. It is called after the loss is
/// recorded.
fn report_lost(stream: &Claimed, reached: &mut Reached) {
    if let Some(Lost { from, to, events }) = reached.lost.take() {
        metrics::counter!("authority_audit_stream_events_lost_total")
            .increment(events.unsigned_abs());
        let stream_id = &stream.stream_id;
        tracing::error!(
            stream.id = stream_id,
            from,
            to,
            events,
            "deleted events before an audit stream sent them"
        );
    }
}

fn takes(filter: &AuditFilter, event: &Event) -> bool {
    let Some(event_type) = EventType::named(&event.event_type) else { return true };
    let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    filter.takes(event_type, &body)
}

/// Why a batch ended early.
enum Failure {
    Store(store::Error),
    Sink {
        /// The error for operators.
        error: String,
        /// The error for the stream's record.
        shown: String,
    },
    /// The stream was sealed or changed, or its tenant suspended.
    Stopped,
}

impl Failure {
    fn sink(error: String) -> Self {
        Self::Sink { shown: error.clone(), error }
    }
}

impl From<sink::Error> for Failure {
    fn from(error: sink::Error) -> Self {
        match error {
            sink::Error::Stopped => Self::Stopped,
            other => Self::Sink { error: other.to_string(), shown: other.shown() },
        }
    }
}
