//! Finds requests and sends messages, in rounds.

use std::{sync::Arc, time::Duration};

use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Scope};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use tokio::time::sleep;

use super::{
    found,
    outgoing::{self, Due, Step},
    transport::Transport,
};
use crate::flow::{error::Error, prelude::*};

const ROUND: Duration = Duration::from_secs(2);
/// Rounds between two rounds that look at all requests of the last day: five minutes.
const FULL: u32 = 150;
const DAY: TimeDelta = TimeDelta::days(1);
/// A usual round looks at requests from this long before the last one: a transaction may have been open,
/// and the clocks of nodes differ.
const OVERLAP: TimeDelta = TimeDelta::seconds(60);
/// How many messages a round sends, and how many of them at the same time.
const MOST: usize = 64;
const AT_ONCE: usize = 16;

struct Sender {
    registry: Registry,
    transport: Arc<Transport>,
    public_url: Arc<str>,
}

/// The worker that sends messages.
pub(super) fn worker(
    registry: Registry,
    transport: Arc<Transport>,
    public_url: Arc<str>,
) -> Worker {
    let sender = Arc::new(Sender { registry, transport, public_url });
    let worker = Worker::endless("messages", move |context| {
        let sender = Arc::clone(&sender);
        async move {
            sender.run(&context).await;
            Ok::<_, Error>(())
        }
    });
    worker.with_rounds(ROUND)
}

impl Sender {
    /// Runs until the service stops. A message without a recorded result is sent again.
    async fn run(&self, context: &Context) {
        let (mut round, mut since) = (0_u32, None);
        loop {
            let now = self.registry.clock.now();
            let full = round.is_multiple_of(FULL).then(|| now - DAY);
            let from = full.or(since).unwrap_or(now - DAY);
            // A failed round is retried.
            if context.round(self.round(from, now)).await.is_ok() {
                (round, since) = (round.wrapping_add(1), Some(now - OVERLAP));
            }
            tokio::select! {
                () = context.stopped() => return,
                () = sleep(ROUND) => {}
            }
        }
    }

    async fn round(&self, since: DateTime<Utc>, now: DateTime<Utc>) -> Result<(), store::Error> {
        let (registry, scope) = (&self.registry, Scope::service());
        let found = registry.store.write_tx(&scope, async move |db| {
            found::end(db).await?;
            Ok::<_, store::Error>(found::new_requests(db, since).await?)
        });
        for id in found.await? {
            let (graph, own) = (Arc::clone(&registry.graph), id.clone());
            let considered = registry
                .store
                .write_tx(&scope, async move |db| found::consider(db, &graph, &own, now).await);
            // It is considered again in a later round.
            if let Err(error) = considered.await {
                tracing::warn!(%error, approval.id = &*id, "failed to find the recipients of a message");
            }
        }
        let claim = async |db: &mut Db| Ok::<_, store::Error>(outgoing::claim(db, MOST).await?);
        let due = registry.store.write_tx(&scope, claim).await?;
        // Collected first: a stream over a closure that borrows is not `Send` for every lifetime.
        let attempts: Vec<_> = due.into_iter().map(|due| self.attempt(due)).collect();
        stream::iter(attempts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        Ok(())
    }

    async fn attempt(&self, due: Due) {
        let id = due.id.clone();
        if let Err(error) = self.send(due).await {
            tracing::warn!(%error, message.id = id, "failed to prepare or record a message");
        }
    }

    async fn send(&self, due: Due) -> Result<(), store::Error> {
        let (store, scope) = (&self.registry.store, Scope::service());
        let (own, url, now) =
            (due.clone(), Arc::clone(&self.public_url), self.registry.clock.now());
        let read = async move |db: &mut Db| Ok::<_, store::Error>(own.step(db, &url, now).await?);
        let (receiver, text) = match store.read_tx(&scope, read).await? {
            Step::Send(receiver, text) => (receiver, text),
            Step::Wait(until) => {
                let wait =
                    async move |db: &mut Db| Ok::<_, store::Error>(due.postpone(db, until).await?);
                return store.write_tx(&scope, wait).await;
            }
            Step::Skip => {
                let skip = async move |db: &mut Db| Ok::<_, store::Error>(due.skip(db).await?);
                return store.write_tx(&scope, skip).await;
            }
        };
        let result = self.transport.send(&receiver, &due.id, &text).await;
        if let Err(refusal) = &result {
            let (class, channel) = (&*refusal.class, &*due.channel_id);
            tracing::warn!(error = class, channel.id = channel, "failed to send a message");
        }
        let record = async move |db: &mut Db| Ok::<_, store::Error>(due.record(db, &result).await?);
        store.write_tx(&scope, record).await
    }
}
