//! Sends audit streams.

use std::{sync::Arc, time::Duration};

use authority_core::{
    store::{self, Db, Scope, Store},
    worker::{Context, Worker},
};
use authority_webhook::{audit_filter::AuditFilter, event_types::EventType};
use futures_util::{FutureExt, future::join_all};
use serde_json::Value;

use super::{
    checkpoint,
    cursor::{self, Claimed, Logged, Reached},
    nats::Nats,
    sink::{Message, MessageKind, Sink},
};
use crate::feed::EventFeed;

/// Logs are looked at so often without having been told; it is also how often a new checkpoint is sent.
const POLL: Duration = Duration::from_secs(1);
/// Events that are read and recorded together.
const BATCH: i64 = 100;
/// How many batches of one stream before others have their turn.
const TURN: usize = 50;

struct Sender {
    store: Store,
    nats: Arc<Nats>,
}

/// The worker.
pub(crate) fn worker(store: Store, feed: &EventFeed, nats: Nats) -> Worker {
    let sender = Arc::new(Sender { store, nats: Arc::new(nats) });
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
    async fn run(&self, feed: &EventFeed, context: &Context) {
        let mut grown = feed.subscribe();
        loop {
            // A failed round is tried again at the next poll.
            while context.stopped().now_or_never().is_none()
                && context.round(self.round(context)).await.is_ok_and(|has_more| has_more)
            {
            }
            tokio::select! {
                () = context.stopped() => return,
                _ = grown.recv() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Sends what is due, and returns whether there may be more.
    async fn round(&self, context: &Context) -> Result<bool, store::Error> {
        let claim = async |db: &mut Db| Ok::<_, store::Error>(cursor::claim(db).await?);
        let (lease, claimed) = self.store.write_tx(&Scope::service(), claim).await?;
        let sent = claimed.iter().map(|stream| self.send(stream, &lease, context));
        let mut has_more = false;
        for sent in join_all(sent).await {
            has_more |= sent?;
        }
        Ok(has_more)
    }

    /// Sends one stream until it is at the head, fails, is sealed or has had its turn.
    async fn send(
        &self,
        stream: &Claimed,
        lease: &str,
        context: &Context,
    ) -> Result<bool, store::Error> {
        let mut reached = Reached { sequence: stream.sequence, ..Reached::default() };
        for _ in 0..TURN {
            let sent = self.batch(stream, &mut reached).await;
            match sent {
                Ok(is_last) => {
                    let held = self.hold(stream, lease, reached).await?;
                    if !held {
                        return Ok(false);
                    }
                    if is_last || context.stopped().now_or_never().is_some() {
                        self.release(stream, lease).await?;
                        return Ok(false);
                    }
                }
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Sink(error)) => {
                    metrics::counter!("authority_audit_stream_failures_total", "sink" => stream.sink.clone())
                        .increment(1);
                    tracing::warn!(
                        stream_id = stream.stream_id,
                        failures = stream.failures + 1,
                        error,
                        "an audit stream's sink did not take a message"
                    );
                    self.fail(stream, lease, reached.sequence).await?;
                    return Ok(false);
                }
            }
        }
        self.release(stream, lease).await?;
        Ok(true)
    }

    /// Sends the next events and the newest checkpoint; whether that was all.
    async fn batch(&self, stream: &Claimed, reached: &mut Reached) -> Result<bool, Failure> {
        let sink = self.sink(stream)?;
        let filter = AuditFilter::read(stream.filter.as_ref().and_then(Value::as_object))
            .map_err(|fault| Failure::Sink(format!("its filter cannot be read: {fault}")))?;
        let (tenant_id, after) = (stream.tenant_id.clone(), reached.sequence);
        let since = reached.checkpoint_at.or(stream.checkpoint_at);
        let read = async move |db: &mut Db| {
            let head = cursor::head(db, &tenant_id).await?;
            let events = cursor::events(db, &tenant_id, after, BATCH).await?;
            let signed = checkpoint::newest(db, &tenant_id, since).await?;
            Ok::<_, store::Error>((head, events, signed))
        };
        let (head, events, signed) =
            self.store.read_tx(&Scope::service(), read).await.map_err(Failure::Store)?;
        note_lost(stream, head, &events, reached);
        for event in &events {
            if takes(&filter, event) {
                let message =
                    Message { id: &event.id, body: &event.body, kind: MessageKind::Event };
                sink.send(message).await.map_err(|error| Failure::Sink(error.to_string()))?;
                metrics::counter!("authority_audit_stream_events_total").increment(1);
            }
            reached.sequence = event.sequence;
        }
        if let Some(signed) = signed {
            let (id, body) = (signed.id(), signed.body(&stream.tenant_id));
            let message = Message { id: &id, body: &body, kind: MessageKind::Checkpoint };
            sink.send(message).await.map_err(|error| Failure::Sink(error.to_string()))?;
            reached.checkpoint_at = Some(signed.signed_at);
        }
        Ok(reached.sequence >= head)
    }

    fn sink(&self, stream: &Claimed) -> Result<Sink, Failure> {
        match (stream.sink.as_str(), &stream.target) {
            ("stdout", _) => Ok(Sink::Stdout),
            ("nats", Some(subject)) => {
                Ok(Sink::Nats { nats: Arc::clone(&self.nats), subject: subject.clone() })
            }
            (other, _) => Err(Failure::Sink(format!("the sink `{other}` is unknown"))),
        }
    }

    async fn hold(
        &self,
        stream: &Claimed,
        lease: &str,
        reached: Reached,
    ) -> Result<bool, store::Error> {
        let (id, lease) = (stream.stream_id.clone(), lease.to_owned());
        let hold = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::hold(db, &id, &lease, reached).await?)
        };
        self.store.write_tx(&Scope::service(), hold).await
    }

    async fn release(&self, stream: &Claimed, lease: &str) -> Result<(), store::Error> {
        let (id, lease) = (stream.stream_id.clone(), lease.to_owned());
        let release =
            async move |db: &mut Db| Ok::<_, store::Error>(cursor::release(db, &id, &lease).await?);
        self.store.write_tx(&Scope::service(), release).await
    }

    async fn fail(&self, stream: &Claimed, lease: &str, sequence: i64) -> Result<(), store::Error> {
        let (id, lease) = (stream.stream_id.clone(), lease.to_owned());
        let fail = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::failed(db, &id, &lease, sequence).await?)
        };
        self.store.write_tx(&Scope::service(), fail).await
    }
}

/// Events that retention took before they were sent.
fn note_lost(stream: &Claimed, head: i64, events: &[Logged], reached: &mut Reached) {
    let next = reached.sequence + 1;
    let first = events.first().map_or(head + 1, |event| event.sequence);
    if first > next {
        reached.lost = Some((next, first - 1));
        reached.sequence = first - 1;
        metrics::counter!("authority_audit_stream_events_lost_total")
            .increment((first - next).unsigned_abs());
        tracing::error!(
            stream_id = stream.stream_id,
            from = next,
            to = first - 1,
            "events were gone before the audit stream sent them"
        );
    }
}

fn takes(filter: &AuditFilter, event: &Logged) -> bool {
    let Some(event_type) = EventType::named(&event.event_type) else { return true };
    let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    filter.takes(event_type, &body)
}

/// Why a batch ended early.
enum Failure {
    Store(store::Error),
    Sink(String),
}
