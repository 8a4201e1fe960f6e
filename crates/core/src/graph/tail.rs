//! Follows the change log in commit order and brings the graph to where it ends.
//!
//! Each round reads what changed and the rows as they now stand in one snapshot, so that a
//! tenant's graph moves from one revision to a later one as a whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::sync::Mutex;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    Graph,
    api_key::API_KEYS,
    load,
    log::{self, Moved},
};
use crate::{
    store::{Db, Error, Notification, discard},
    worker::{Context, Worker},
};

/// How long the database may take to say where the log ends. Every node asks it twice a second.
const LOOK: Duration = Duration::from_secs(3);
/// And to read a piece of it.
const READ: Duration = Duration::from_secs(10);

impl Graph {
    /// Waits until the graph shows everything that was committed before this call.
    pub async fn catch_up(&self) {
        // A round under way may have read before our commit; the next to begin has not.
        let wanted = self.begun.load(Ordering::Acquire) + 1;
        let mut ended = self.ended.subscribe();
        self.wake.notify_one();
        let done = ended.wait_for(|round| *round >= wanted);
        // Where the tail stands still, the bound on staleness answers who would decide on it.
        let _ = tokio::time::timeout(self.settings.max_staleness, done).await;
    }

    /// They keep the graph current, by notifications and by a poll. To be run once.
    pub fn workers(self: &Arc<Self>) -> [Worker; 2] {
        let (listener, heard) = self.store.listen("graph_listener", "authority_changes");
        let (graph, heard) = (Arc::clone(self), Arc::new(Mutex::new(heard)));
        let tail = Worker::endless("graph_tail", move |context| {
            let (graph, heard) = (Arc::clone(&graph), Arc::clone(&heard));
            async move {
                graph.follow(&mut *heard.lock().await, &context).await;
                Ok::<_, Error>(())
            }
        });
        [listener, tail.with_rounds(self.settings.poll).outlasting_calls()]
    }

    /// Follows the log until the worker is stopped.
    async fn follow(&self, heard: &mut ReceiverStream<Notification>, context: &Context) {
        let mut returns = self.store.returns();
        let mut was_silent = false;
        loop {
            tokio::select! {
                () = context.stopped() => return,
                () = self.wake.notified() => {}
                // Something changed, or a notification may have been missed.
                Some(_) = heard.next() => {}
                // Others may find it back first; nothing is decided until this has looked.
                Ok(()) = returns.changed() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
            }
            while let Some(Some(_)) = heard.next().now_or_never() {} // one round is for all of them
            tokio::time::sleep(self.settings.delay).await;
            let round = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let begun = Instant::now();
            let looked = context.round(self.round()).await;
            if looked.is_ok() && std::mem::take(&mut was_silent) {
                // This node was cut off and its new connection answers: so will others' new ones.
                self.store.renew();
            }
            match looked {
                Ok(true) => self.wake.notify_one(),
                Ok(false) => {
                    self.saw(begun);
                    self.ended.send_replace(round);
                }
                Err(_) => was_silent |= begun.elapsed() >= LOOK,
            }
            metrics::gauge!("authority_graph_age_seconds").set(self.age().as_secs_f64());
        }
    }

    /// Takes in what the log holds behind our position; whether there is more.
    async fn round(&self) -> Result<bool, Error> {
        let mut db = self.store.tail().await?;
        let read = self.store.within(READ, self.read(&mut db)).await;
        if read.is_err() {
            // Cheap, and right whatever it was: nobody looks at anything before this works again.
            discard(db);
        }
        read
    }

    async fn read(&self, db: &mut Db) -> Result<bool, Error> {
        if self.is_torn.load(Ordering::Acquire) {
            // An earlier round panicked while it changed the graph: its state is unknown.
            return Err(Error::Internal("a change was applied in part; restart".to_owned()));
        }
        let position = self.position.load(Ordering::Acquire);
        let asked = self.clock.ask();
        let (last, now) = self.store.within(LOOK, log::last(db)).await?;
        self.clock.answered(&asked, now);
        if last < position {
            // A database that went back in time (a restore, a lost replica) is another one: what is
            // held here may never have been. It goes stale, and the service must start anew.
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
                let rows = load::changed(db, &new_changes.tables()).await?;
                Ok::<_, diesel::result::Error>((new_changes, rows))
            })
            .await?;
        self.is_torn.store(true, Ordering::Release);
        self.apply(new_changes.tenants, rows);
        self.is_torn.store(false, Ordering::Release);
        self.position.store(new_changes.position, Ordering::Release);
        Ok(new_changes.more)
    }

    /// Moves each tenant named to its revision, under one lock a tenant.
    fn apply(&self, tenants: BTreeMap<String, Moved>, rows: load::Rows) {
        let (mut rows, keys) = rows.split();
        // Keys first: who sees a revision sees its keys too.
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
            let watched = graph.watched();
            // Not under the lock: whoever is woken wants to read.
            drop(graph);
            if let Some(watched) = watched {
                watched.send_replace(moved.revision);
            }
        }
    }
}
