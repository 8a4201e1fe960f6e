//! Follows the change log in the order of commits and applies it to the graph.
//!
//! Each round reads the changes and the current rows in one snapshot. A tenant's graph thus moves
//! from one revision to a later one as a whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use authority_ids::TenantId;
use futures_util::FutureExt;
use tokio::sync::Mutex;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    graph::Graph,
    key_row::API_KEYS,
    log::{self, Moved},
    tables::{self, Rows},
};
use authority_process::worker::{Context, Worker};
use authority_store::{Db, Error, Notification, discard};

/// The timeout of the query for the log's end. Every node runs it twice a second.
const LOOK: Duration = Duration::from_secs(3);
/// The timeout for reading a part of the log.
const READ: Duration = Duration::from_secs(10);

impl Graph {
    /// Waits until the graph includes everything that was committed before this call.
    pub async fn catch_up(&self) {
        // The current round may have read before our commit. The next round reads after it.
        let wanted = self.rounds_started.load(Ordering::Acquire) + 1;
        let mut ended = self.round_ended.subscribe();
        self.wake.notify_one();
        let done = ended.wait_for(|round| *round >= wanted);
        // If the tail stops, the staleness limit makes decisions fail.
        let _ = tokio::time::timeout(self.settings.max_staleness, done).await;
    }

    /// Returns the worker that keeps the graph current, by notifications and by polling. Run it
    /// once, with [`Store::listener`](authority_store::Store::listener).
    pub fn worker(self: &Arc<Self>) -> Worker {
        let heard = self.store.notifications("authority_changes");
        let (graph, heard) = (Arc::clone(self), Arc::new(Mutex::new(heard)));
        let tail = Worker::endless("graph_tail", move |context| {
            let (graph, heard) = (Arc::clone(&graph), Arc::clone(&heard));
            async move {
                graph.follow(&mut *heard.lock().await, &context).await;
                Ok::<_, Error>(())
            }
        });
        tail.with_rounds(self.settings.poll).outlasting_calls()
    }

    /// Follows the log until the worker is stopped.
    async fn follow(&self, heard: &mut ReceiverStream<Notification>, context: &Context) {
        let mut returns = self.store.returns();
        let mut was_silent = false;
        loop {
            tokio::select! {
                () = context.stopped() => return,
                () = self.wake.notified() => {}
                // A change was made, or a notification may have been missed.
                Some(_) = heard.next() => {}
                // Other code may notice first that the database is back. No decisions are made
                // until this loop has read the log.
                Ok(()) = returns.changed() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
            }
            // One round covers all waiting notifications.
            while let Some(Some(_)) = heard.next().now_or_never() {}
            tokio::time::sleep(self.settings.delay).await;
            let round = self.rounds_started.fetch_add(1, Ordering::AcqRel) + 1;
            let started = Instant::now();
            let looked = context.round(self.round()).await;
            if looked.is_ok() && std::mem::take(&mut was_silent) {
                // The old connection was cut off and a new one works. Other connections should also
                // reconnect.
                self.store.renew();
            }
            match looked {
                Ok(true) => self.wake.notify_one(),
                Ok(false) => {
                    self.saw(started);
                    self.round_ended.send_replace(round);
                }
                Err(_) => was_silent |= started.elapsed() >= LOOK,
            }
            metrics::gauge!("authority_graph_age_seconds").set(self.age().as_secs_f64());
        }
    }

    /// Applies a part of the log after our position. Returns whether there is more.
    async fn round(&self) -> Result<bool, Error> {
        let mut db = self.store.tail().await?;
        let read = self.store.within(READ, self.read(&mut db)).await;
        if read.is_err() {
            // Reconnecting is correct after any error, and cheap. No decisions are made until a
            // read succeeds again.
            discard(db);
        }
        read
    }

    async fn read(&self, db: &mut Db) -> Result<bool, Error> {
        if self.is_torn.load(Ordering::Acquire) {
            // An earlier round panicked while it changed the graph, which leaves the graph in an
            // unknown state.
            return Err(Error::Internal("a change was applied in part; restart".to_owned()));
        }
        let position = self.position.load(Ordering::Acquire);
        let query = self.clock.start_query();
        let (last, now) = self.store.within(LOOK, log::last(db)).await?;
        self.clock.answered(&query, now);
        if last < position {
            // A database that went back in time (a restore, a lost replica) is a different
            // database. This graph may contain changes that were never committed there. It goes
            // stale, and the service must restart.
            return Err(Error::Internal("the change log went back in time; restart".to_owned()));
        }
        if last == position {
            return Ok(false);
        }
        let (new_changes, rows) = db
            .build_transaction()
            .read_only()
            .repeatable_read()
            .run(async |db| {
                let new_changes = log::new_changes(db, position).await?;
                let rows = tables::changed(db, &new_changes.tables()).await?;
                Ok::<_, diesel::result::Error>((new_changes, rows))
            })
            .await?;
        self.is_torn.store(true, Ordering::Release);
        self.apply(new_changes.tenants, rows);
        self.is_torn.store(false, Ordering::Release);
        self.position.store(new_changes.position, Ordering::Release);
        Ok(new_changes.more)
    }

    /// Moves each changed tenant to its new revision, under one lock per tenant.
    fn apply(&self, tenants: BTreeMap<TenantId, Moved>, rows: Rows) {
        let (mut rows, keys) = rows.split();
        // Keys come first: a reader of a revision must also see its keys.
        let changed = tenants.values().filter_map(|moved| moved.changed.get(API_KEYS)).flatten();
        self.put_keys(changed, keys);
        for (tenant_id, moved) in tenants {
            let handle = self.handle(&tenant_id);
            let mut graph = handle.write();
            let rows = rows.remove(&tenant_id).unwrap_or_default();
            let org = graph.organisation().map(str::to_owned);
            graph.replace(&moved.changed, rows);
            self.move_org(&tenant_id, org.as_deref(), graph.organisation());
            graph.revision = moved.revision;
            if moved.changed.keys().any(|table| tables::rules(table)) {
                graph.ruled_at = moved.revision;
            }
            let watched = graph.watched();
            // Sent after the lock is released, because the receivers read the graph when they wake.
            drop(graph);
            if let Some(watched) = watched {
                watched.send_replace(moved.revision);
            }
        }
    }
}
