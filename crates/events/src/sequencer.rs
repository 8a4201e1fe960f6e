//! Numbers the events of the outbox: one transaction takes rows, raises the tenants' sequences and writes
//! the envelopes. So a number is an event, and none is missing.
//!
//! Tenants are spread over shards, and an advisory lock lets one node at a time number a shard. In a batch
//! tenants take turns: a tenant with a backlog does not delay another's events by more than a batch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use authority_core::{
    store::{self, Db, Notification, RunQueryDsl, Scope, Store, new_id},
    worker::{Context, Worker},
};
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
    numbering_sql::{RaiseHeads, WriteEvents},
    outbox::{LockTenants, OldestRows, Ready, Row, SHARDS},
    told::Told,
};

/// The channel that changes notify on; the recorder does not, and wakes the sequencer of its node.
const CHANNEL: &str = "event_outbox";
/// How often the outbox is read without having been woken.
const POLL: Duration = Duration::from_millis(500);
/// From one round to the next: few large ones cost less. A change after a pause does not wait.
const LINGER: Duration = Duration::from_millis(30);
/// The same after a round of at least [`MANY`].
const LINGER_LONG: Duration = Duration::from_millis(100);
/// So many events in a round are a load.
const MANY: usize = 200;
/// How many events of one tenant are numbered before the others have their turn.
const TURN: i64 = 2_000;
/// How many events are numbered in one transaction.
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

    /// For whoever writes the outbox without a NOTIFY.
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Notified when this node has numbered events.
    pub fn numbered(&self) -> Arc<Notify> {
        Arc::clone(&self.numbered)
    }

    /// A listener and the numbering itself.
    pub fn workers(&self) -> [Worker; 2] {
        let (listener, notified) = self.store.listen("event_listener", CHANNEL);
        let (sequencer, notified) = (self.clone(), Arc::new(Mutex::new(notified)));
        let worker = Worker::endless("event_sequencer", move |context| {
            let (sequencer, notified) = (sequencer.clone(), Arc::clone(&notified));
            async move {
                sequencer.run(&mut *notified.lock().await, &context).await;
                Ok::<_, store::Error>(())
            }
        });
        [listener, worker.with_rounds(POLL)]
    }

    async fn run(&self, notified: &mut ReceiverStream<Notification>, context: &Context) {
        loop {
            let begun = Instant::now();
            // A failed round is tried again at the next poll.
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
            while let Some(Some(_)) = notified.next().now_or_never() {} // one round is for all of them
        }
    }

    /// Numbers a batch.
    async fn round(&self) -> Result<Batch, store::Error> {
        match self.number(None).await {
            Err(error) if !error.is_passing() => {
                tracing::warn!(%error, "numbering each shard on its own");
                let (mut all, mut failed) = (Batch::default(), Ok(()));
                for shard in 0..SHARDS {
                    match self.number(Some(shard)).await {
                        Ok(of_shard) => all = all.and(&of_shard),
                        // The other shards' events do not wait for it.
                        Err(error) => failed = Err(error),
                    }
                }
                failed.map(|()| all)
            }
            done => done,
        }
    }

    /// Numbers a batch of the events of a shard, or of all.
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

/// What a round leaves in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    #[default]
    Nothing,
    /// Events that another node was about to number.
    Others,
    /// There may be more than one batch.
    Backlog,
}

#[derive(Default)]
struct Batch {
    /// How many events.
    numbered: usize,
    left: Left,
    /// A tenant's next event cannot be written.
    is_stuck: bool,
}

impl Batch {
    /// Both.
    fn and(&self, other: &Self) -> Self {
        Self {
            numbered: self.numbered + other.numbered,
            left: self.left.max(other.left),
            is_stuck: self.is_stuck || other.is_stuck,
        }
    }
}

/// Numbers a batch of events that no other node numbers now.
async fn number(db: &mut Db, shard: Option<i32>) -> QueryResult<Batch> {
    let tenants: Vec<(String, bool)> = LockTenants { shard }.load(db).await?;
    let own = tenants.iter().filter(|(_, is_others)| !is_others);
    let own: Vec<&str> = own.map(|(id, _)| id.as_str()).collect();
    let left = if own.len() < tenants.len() { Left::Others } else { Left::Nothing };
    if own.is_empty() {
        return Ok(Batch { left, ..Batch::default() });
    }
    let oldest = OldestRows { tenants: own, turn: TURN, most: BATCH };
    let rows: Vec<Row> = oldest.load(db).await?;
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

/// Gives the events their numbers; they were these rows of the outbox.
async fn write(
    db: &mut Db,
    told: &[Told<'_>],
    counts: &BTreeMap<&str, i64>,
    rows: Vec<i64>,
) -> QueryResult<()> {
    let mut next = first_numbers(db, counts).await?;
    let mut write = WriteEvents::of(rows, counts.keys().copied().collect());
    for event in told {
        let Some(sequence) = next.get_mut(event.tenant_id) else { continue };
        let id = format!("svc:event:{}", new_id());
        let body = event.bytes(&id, *sequence).map_err(unwritable)?;
        write.push(event, id, *sequence, body);
        *sequence += 1;
    }
    write.execute(db).await.map(drop)
}

fn unwritable(error: EnvelopeError) -> Sql {
    Sql::SerializationError(error.into())
}

/// Raises the tenants' sequences by so many; the first number of each.
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
