//! Numbers the events of the outbox: one transaction takes rows, raises the tenants' sequences and writes
//! the envelopes. So a number is an event, and none is missing.
//!
//! Tenants are spread over shards, and an advisory lock lets one node at a time number a shard. In a batch
//! tenants take turns: a tenant with a backlog does not delay another's events by more than a batch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use authority_core::{
    store::{self, Db, Notification, RunQueryDsl, Scope, Store, locks, new_id},
    worker::{Context, Worker},
};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Integer, Nullable, Text, Timestamptz},
};
use futures_util::FutureExt;
use tokio::sync::{Mutex, Notify};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use crate::{
    feed,
    outbox::{self, Pending},
};

/// The channel that changes notify on; the recorder does not, and wakes the sequencer of its node.
const CHANNEL: &str = "event_outbox";
/// How often the outbox is read without having been woken.
const POLL: Duration = Duration::from_millis(500);
/// How many events of one tenant are numbered before the others have their turn.
const TURN: i64 = 500;
/// How many events are numbered in one transaction.
const BATCH: i64 = 2_000;

const HEADS: &str = "INSERT INTO event_heads (tenant_id, sequence) \
     SELECT * FROM unnest($1, $2) AS raised (tenant_id, sequence) \
     ON CONFLICT (tenant_id) DO UPDATE SET sequence = event_heads.sequence + EXCLUDED.sequence \
     RETURNING tenant_id, sequence";

const EVENTS: &str = "INSERT INTO events \
         (id, tenant_id, sequence, event_type, principal_entity_id, occurred_at, body) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)";

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
            // A failed round is tried again at the next poll.
            while context.stopped().now_or_never().is_none()
                && context.round(self.round()).await.is_ok_and(|has_more| has_more)
            {}
            tokio::select! {
                () = context.stopped() => return,
                () = self.wake.notified() => {}
                Some(_) = notified.next() => {}
                () = tokio::time::sleep(POLL) => {}
            }
            while let Some(Some(_)) = notified.next().now_or_never() {} // one round is for all of them
        }
    }

    /// Numbers a batch of each shard; whether there may be more.
    async fn round(&self) -> Result<bool, store::Error> {
        let scope = Scope::service();
        let shards = self
            .store
            .read_tx(&scope, async |db| Ok::<_, store::Error>(outbox::shards(db).await?))
            .await?;
        let (mut has_more, mut failed) = (false, Ok(()));
        for shard in shards {
            let number = async move |db: &mut Db| Ok::<_, store::Error>(number(db, shard).await?);
            match self.store.write_tx(&scope, number).await {
                Ok(numbered) => {
                    if numbered > 0 {
                        self.numbered.notify_one();
                    }
                    has_more |= numbered >= usize::try_from(BATCH).unwrap_or(usize::MAX);
                }
                // The other shards' events do not wait for it.
                Err(error) => failed = Err(error),
            }
        }
        failed.map(|()| has_more)
    }
}

/// Numbers a batch of a shard's events, unless another node does; how many.
async fn number(db: &mut Db, shard: i32) -> QueryResult<usize> {
    if !lock(db, shard).await? {
        return Ok(0);
    }
    let pending = outbox::pending(db, shard, TURN, BATCH).await?;
    if pending.is_empty() {
        return Ok(0);
    }
    let mut next = first_numbers(db, &pending).await?;
    let mut events = Events::default();
    for row in &pending {
        let Some(sequence) = next.get_mut(row.tenant_id.as_str()) else { continue };
        events.push(row, *sequence)?;
        *sequence += 1;
    }
    events.insert(db).await?;
    let grown = "SELECT pg_notify($1, tenant_id) FROM unnest($2) AS grown (tenant_id)";
    diesel::sql_query(grown)
        .bind::<Text, _>(feed::CHANNEL)
        .bind::<Array<Text>, _>(next.keys().collect::<Vec<_>>())
        .execute(db)
        .await?;
    let numbers: Vec<i64> = pending.iter().map(|row| row.number).collect();
    diesel::sql_query("DELETE FROM event_outbox WHERE number = ANY ($1)")
        .bind::<Array<BigInt>, _>(numbers)
        .execute(db)
        .await?;
    Ok(pending.len())
}

/// Whether this transaction is the one that numbers the shard.
async fn lock(db: &mut Db, shard: i32) -> QueryResult<bool> {
    let lock = diesel::sql_query("SELECT pg_try_advisory_xact_lock($1, $2) AS locked")
        .bind::<Integer, _>(locks::EVENTS)
        .bind::<Integer, _>(shard);
    let locked: Locked = lock.get_result(db).await?;
    Ok(locked.locked)
}

/// Raises the sequences by what is pending; the first number of each tenant's own.
async fn first_numbers(db: &mut Db, pending: &[Pending]) -> QueryResult<BTreeMap<String, i64>> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for row in pending {
        *counts.entry(&row.tenant_id).or_default() += 1;
    }
    let (tenants, raised): (Vec<&str>, Vec<i64>) = counts.iter().unzip();
    let heads: Vec<Head> = diesel::sql_query(HEADS)
        .bind::<Array<Text>, _>(tenants)
        .bind::<Array<BigInt>, _>(raised)
        .load(db)
        .await?;
    let first = |head: Head| {
        let count = counts.get(head.tenant_id.as_str()).copied().unwrap_or_default();
        (head.tenant_id, head.sequence - count + 1)
    };
    Ok(heads.into_iter().map(first).collect())
}

/// Events to be written, column by column.
#[derive(Default)]
struct Events<'a> {
    id: Vec<String>,
    tenant: Vec<&'a str>,
    sequence: Vec<i64>,
    event_type: Vec<&'a str>,
    principal: Vec<Option<&'a str>>,
    at: Vec<DateTime<Utc>>,
    body: Vec<Vec<u8>>,
}

impl<'a> Events<'a> {
    /// # Errors
    /// The event cannot be written: the batch waits for a version of the service that can.
    fn push(&mut self, row: &'a Pending, sequence: i64) -> QueryResult<()> {
        let id = format!("svc:event:{}", new_id());
        let body = row.bytes(&id, sequence).ok_or_else(|| {
            let problem = format!("an event `{}` cannot be written", row.event_type);
            diesel::result::Error::SerializationError(problem.into())
        })?;
        self.body.push(body);
        self.id.push(id);
        self.tenant.push(&row.tenant_id);
        self.sequence.push(sequence);
        self.event_type.push(&row.event_type);
        self.principal.push(row.principal());
        self.at.push(row.occurred_at());
        Ok(())
    }

    async fn insert(self, db: &mut Db) -> QueryResult<()> {
        diesel::sql_query(EVENTS)
            .bind::<Array<Text>, _>(self.id)
            .bind::<Array<Text>, _>(self.tenant)
            .bind::<Array<BigInt>, _>(self.sequence)
            .bind::<Array<Text>, _>(self.event_type)
            .bind::<Array<Nullable<Text>>, _>(self.principal)
            .bind::<Array<Timestamptz>, _>(self.at)
            .bind::<Array<Bytea>, _>(self.body)
            .execute(db)
            .await
            .map(drop)
    }
}

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

#[derive(QueryableByName)]
struct Head {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
}
