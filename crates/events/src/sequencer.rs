//! Numbers the events of the outbox.
//!
//! One transaction takes rows from the outbox, raises the tenants' sequences and writes the
//! envelopes. Every number therefore belongs to an event, and there are no gaps.
//!
//! Tenants are spread over shards. An advisory lock lets only one node at a time number a shard.
//! Tenants take turns within a batch: a tenant with a backlog delays the events of other tenants by
//! at most one batch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, Notification, RunQueryDsl, Scope, Store};
use authority_webhook::envelope::EnvelopeError;
use diesel::{QueryResult, result::Error as Sql};
use futures_util::FutureExt;
use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, sleep, sleep_until},
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use crate::{
    decided,
    log_row::NewRow,
    numbering_sql::{RaiseHeads, WriteEvents},
    outbox::{LockTenants, OldestRows, OutboxRow, Ready, SHARDS},
    told::Told,
};

/// The channel on which changes notify the sequencer. The recorder doesn't use it, but wakes the
/// sequencer of its own node directly.
const CHANNEL: &str = "event_outbox";
/// How often the outbox is read without a wake-up.
const POLL: Duration = Duration::from_millis(500);
/// The time between two rounds, because a few large rounds cost less than many small ones. A change
/// after a pause is numbered at once.
const LINGER: Duration = Duration::from_millis(30);
/// The time until the next round after a round of at least [`MANY`] events.
const LINGER_LONG: Duration = Duration::from_millis(100);
/// The number of events in a round from which [`LINGER_LONG`] applies.
const MANY: usize = 200;
/// The most events of one tenant that are numbered before other tenants have their turn.
const TURN: i64 = 2_000;
/// About how many events are numbered in one transaction.
const BATCH: i64 = 4_000;

/// Numbers the outbox's events.
#[derive(Clone)]
pub struct Sequencer {
    store: Store,
    wake: Arc<Notify>,
    numbered: Arc<Notify>,
}

impl Sequencer {
    pub fn new(store: Store) -> Self {
        Self { store, wake: Arc::default(), numbered: Arc::default() }
    }

    /// Returns the handle that wakes the sequencer, for writers that send no NOTIFY.
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Returns the handle that is notified when this node has numbered events.
    pub fn numbered(&self) -> Arc<Notify> {
        Arc::clone(&self.numbered)
    }

    /// Returns the worker that numbers events.
    pub fn worker(&self) -> Worker {
        let notified = self.store.notifications(CHANNEL);
        let (sequencer, notified) = (self.clone(), Arc::new(Mutex::new(notified)));
        let worker = Worker::endless("event_sequencer", move |context| {
            let (sequencer, notified) = (sequencer.clone(), Arc::clone(&notified));
            async move {
                sequencer.run(&mut *notified.lock().await, &context).await;
                Ok::<_, store::Error>(())
            }
        });
        worker.with_rounds(POLL)
    }

    async fn run(&self, notified: &mut ReceiverStream<Notification>, context: &Context) {
        loop {
            let begun = Instant::now();
            // A failed round is retried at the next poll.
            let Batch { numbered, left, .. } =
                context.round(self.round()).await.unwrap_or_default();
            if left == Left::Nothing {
                tokio::select! {
                    () = context.stopped() => return,
                    () = self.wake.notified() => {}
                    Some(_) = notified.next() => {}
                    () = sleep(POLL) => {}
                }
            }
            if left != Left::Backlog {
                let linger = if numbered < MANY { LINGER } else { LINGER_LONG };
                tokio::select! {
                    () = context.stopped() => return,
                    () = sleep_until(begun + linger) => {}
                }
            }
            if context.stopped().now_or_never().is_some() {
                return;
            }
            while let Some(Some(_)) = notified.next().now_or_never() {} // one round takes them all
        }
    }

    /// Numbers a batch.
    async fn round(&self) -> Result<Batch, store::Error> {
        match self.number(None).await {
            Err(error) if !error.is_passing() => {
                tracing::warn!(%error, "failed to number events; numbering each shard on its own");
                let (mut all, mut failed) = (Batch::default(), Ok(()));
                for shard in 0..SHARDS {
                    match self.number(Some(shard)).await {
                        Ok(of_shard) => all = all.and(&of_shard),
                        // A failing shard must not delay the events of the other shards.
                        Err(error) => failed = Err(error),
                    }
                }
                failed.map(|()| all)
            }
            done => done,
        }
    }

    /// Numbers a batch of the events of one shard, or of all shards.
    async fn number(&self, shard: Option<i32>) -> Result<Batch, store::Error> {
        let number = async move |db: &mut Db| Ok::<_, store::Error>(number(db, shard).await?);
        let batch = self.store.write_tx(&Scope::service(), number).await?;
        if batch.numbered > 0 {
            self.numbered.notify_one();
        }
        if batch.is_stuck && batch.left != Left::Backlog {
            let problem = "events wait for a version of the service that can write them";
            return Err(store::Error::Internal(problem.to_owned()));
        }
        Ok(batch)
    }
}

/// The events that a round leaves in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    #[default]
    Nothing,
    /// Events that another node is numbering.
    Others,
    /// Possibly more events than fit into one batch.
    Backlog,
}

#[derive(Default)]
struct Batch {
    /// The number of events that were numbered.
    numbered: usize,
    left: Left,
    /// Whether the next event of a tenant cannot be written.
    is_stuck: bool,
}

impl Batch {
    /// Combines the results of two batches.
    fn and(&self, other: &Self) -> Self {
        Self {
            numbered: self.numbered + other.numbered,
            left: self.left.max(other.left),
            is_stuck: self.is_stuck || other.is_stuck,
        }
    }
}

/// Numbers a batch of events from shards that no other node is numbering.
async fn number(db: &mut Db, shard: Option<i32>) -> QueryResult<Batch> {
    let tenants: Vec<(String, bool)> = LockTenants { shard }.load(db).await?;
    let own = tenants.iter().filter(|(_, is_others)| !is_others);
    let own: Vec<&str> = own.map(|(id, _)| id.as_str()).collect();
    let left = if own.len() < tenants.len() { Left::Others } else { Left::Nothing };
    if own.is_empty() {
        return Ok(Batch { left, ..Batch::default() });
    }
    let oldest = OldestRows { tenants: own, turn: TURN, most: BATCH };
    let rows: Vec<OutboxRow> = oldest.load(db).await?;
    let Ready { events, numbers, is_stuck } = Ready::of(&rows);
    let records = decided::records(db, &events).await?;
    let told = events.into_iter().map(|event| Told::of(event, &records));
    let told: Vec<Told<'_>> = told.collect::<Result<_, _>>().map_err(unwritable)?;
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for event in &told {
        *counts.entry(event.tenant_id).or_default() += 1;
    }
    if !told.is_empty() {
        write(db, &told, &counts, numbers).await?;
    }
    let is_backlog = counts.into_values().any(|count| count >= TURN);
    let left = if is_backlog { Left::Backlog } else { left };
    Ok(Batch { numbered: told.len(), left, is_stuck })
}

/// Numbers the events and deletes their rows from the outbox.
async fn write(
    db: &mut Db,
    told: &[Told<'_>],
    counts: &BTreeMap<&str, i64>,
    numbers: Vec<i64>,
) -> QueryResult<()> {
    let mut next = first_numbers(db, counts).await?;
    let mut write = WriteEvents::of(numbers, counts.keys().copied().collect());
    let mut rows: BTreeMap<&str, NewRow> = BTreeMap::new();
    for event in told {
        let tenant_id = event.tenant_id;
        let Some(sequence) = next.get_mut(tenant_id) else { continue };
        let row = rows.entry(tenant_id).or_insert_with(NewRow::new);
        let body = event.bytes(&row.next_id(), *sequence).map_err(unwritable)?;
        row.push(*sequence, event.event_type.name(), &body);
        if row.is_full()
            && let Some(full) = rows.remove(tenant_id)
        {
            write.push(tenant_id, full);
        }
        *sequence += 1;
    }
    for (tenant_id, row) in rows {
        write.push(tenant_id, row);
    }
    write.execute(db).await.map(drop)
}

fn unwritable(error: EnvelopeError) -> Sql {
    Sql::SerializationError(error.into())
}

/// Raises the tenants' sequences by these counts. Returns the first number of each.
async fn first_numbers(
    db: &mut Db,
    counts: &BTreeMap<&str, i64>,
) -> QueryResult<BTreeMap<String, i64>> {
    let (tenants, raised) = counts.iter().unzip();
    let heads: Vec<(String, i64)> = RaiseHeads { tenants, raised }.load(db).await?;
    let first = |(tenant_id, sequence): (String, i64)| {
        let count = counts.get(tenant_id.as_str()).copied().unwrap_or_default();
        (tenant_id, sequence - count + 1)
    };
    Ok(heads.into_iter().map(first).collect())
}
