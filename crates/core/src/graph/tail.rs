//! Follows the change log in commit order and brings the graph to where it ends.
//!
//! Each round reads what changed and the rows as they now stand in one snapshot, so that a
//! tenant's graph moves from one revision to a later one as a whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    Graph,
    api_key::API_KEYS,
    load,
    log::{self, Moved},
};
use crate::store::{Db, Error, Notification, Store, discard};

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

    /// Follows the log until the last other handle to the graph is gone.
    pub(super) async fn follow(graph: std::sync::Weak<Self>) {
        let Some(mut returns) = graph.upgrade().map(|graph| graph.store.returns()) else { return };
        let mut was_silent = false;
        loop {
            let Some(graph) = graph.upgrade() else { return };
            tokio::select! {
                () = graph.wake.notified() => {}
                // Others may find it back first; nothing is decided until this has looked.
                Ok(()) = returns.changed() => {}
                () = tokio::time::sleep(graph.settings.poll) => {}
            }
            tokio::time::sleep(graph.settings.delay).await;
            let round = graph.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let begun = Instant::now();
            let looked = graph.round().await;
            if looked.is_ok() && std::mem::take(&mut was_silent) {
                // This node was cut off and its new connection answers: so will others' new ones.
                graph.store.renew();
            }
            match looked {
                Ok(true) => graph.wake.notify_one(),
                Ok(false) => {
                    graph.saw(begun);
                    graph.ended.send_replace(round);
                }
                Err(error) => {
                    was_silent |= begun.elapsed() >= LOOK;
                    tracing::warn!(%error, age_ms = graph.age().as_millis(), "cannot read changes");
                }
            }
            metrics::gauge!("authority_graph_age_seconds").set(graph.age().as_secs_f64());
        }
    }

    /// Wakes the tail at each notification, and when one may have been missed.
    pub(super) async fn listen(
        graph: std::sync::Weak<Self>,
        mut heard: ReceiverStream<Notification>,
    ) {
        while heard.next().await.is_some() {
            let Some(graph) = graph.upgrade() else { return };
            graph.wake.notify_one();
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
        self.apply(new_changes.tenants, rows);
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

/// Starts following: by notification, and by a poll where none comes.
pub(super) fn start(graph: &Arc<Graph>, store: &Store) {
    let heard = store.listen("authority_changes");
    tokio::spawn(Graph::listen(Arc::downgrade(graph), heard));
    tokio::spawn(Graph::follow(Arc::downgrade(graph)));
}
