//! Follows the change log in commit order and brings the graph to where it ends.
//!
//! Each round reads what changed and the rows as they now stand in one snapshot, so that a
//! tenant's graph moves from one revision to a later one as a whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use authority_model::schema::authority_changes;
use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{Graph, load};
use crate::store::{Error, Heard, Store};

/// Most changes that one round takes in.
const ROUND: i64 = 10_000;

/// A table and the ids that changed in it.
pub(super) type Changed = BTreeMap<String, BTreeSet<String>>;

/// What the log says happened since a position.
struct News {
    position: i64,
    /// The last revision of each tenant.
    revisions: BTreeMap<String, i64>,
    changed: Changed,
    /// The log goes on behind this.
    more: bool,
}

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
        loop {
            let Some(graph) = graph.upgrade() else { return };
            let woken = graph.wake.notified();
            let _ = tokio::time::timeout(graph.settings.poll, woken).await;
            tokio::time::sleep(graph.settings.delay).await;
            let round = graph.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let begun = Instant::now();
            match graph.round().await {
                Ok(true) => graph.wake.notify_one(),
                Ok(false) => {
                    *graph.seen.lock() = begun;
                    graph.ended.send_replace(round);
                }
                Err(error) => {
                    tracing::warn!(%error, age_ms = graph.age().as_millis(), "cannot read changes");
                }
            }
            metrics::gauge!("authority_graph_age_seconds").set(graph.age().as_secs_f64());
        }
    }

    /// Wakes the tail at each notification, and when one may have been missed.
    pub(super) async fn listen(graph: std::sync::Weak<Self>, mut heard: ReceiverStream<Heard>) {
        while heard.next().await.is_some() {
            let Some(graph) = graph.upgrade() else { return };
            graph.wake.notify_one();
        }
    }

    /// Takes in what the log holds behind our position; whether there is more.
    async fn round(&self) -> Result<bool, Error> {
        let position = self.position.load(Ordering::Acquire);
        let mut db = self.store.system().await?;
        let last: Option<i64> = authority_changes::table
            .select(diesel::dsl::max(authority_changes::seq))
            .first(&mut db)
            .await?;
        if last.unwrap_or_default() <= position {
            return Ok(false);
        }
        let (news, rows) = db
            .build_transaction()
            .read_only()
            .repeatable_read()
            .run(async |db| {
                let news = news(db, position).await?;
                let rows = load::changed(db, &news.changed).await?;
                Ok::<_, diesel::result::Error>((news, rows))
            })
            .await?;
        self.apply(news.revisions, &news.changed, rows);
        self.position.store(news.position, Ordering::Release);
        Ok(news.more)
    }

    /// Moves each tenant named to its revision, under one lock a tenant.
    fn apply(&self, revisions: BTreeMap<String, i64>, changed: &Changed, rows: load::Rows) {
        let (mut rows, keys) = rows.split();
        self.put_keys(keys);
        for (tenant_id, revision) in revisions {
            let cell = self.cell(&tenant_id);
            let mut graph = cell.write();
            let rows = rows.remove(&tenant_id).unwrap_or_default();
            graph.replace(changed, rows);
            graph.revision = revision;
        }
    }
}

async fn news(db: &mut crate::store::Db, position: i64) -> QueryResult<News> {
    let log: Vec<(i64, String, i64, String, String)> = authority_changes::table
        .filter(authority_changes::seq.gt(position))
        .order(authority_changes::seq)
        .limit(ROUND)
        .select((
            authority_changes::seq,
            authority_changes::tenant_id,
            authority_changes::tenant_revision,
            authority_changes::table_name,
            authority_changes::entity_id,
        ))
        .load(db)
        .await?;
    let mut news = News {
        position,
        revisions: BTreeMap::new(),
        changed: Changed::new(),
        more: i64::try_from(log.len()) == Ok(ROUND),
    };
    for (seq, tenant_id, revision, table, id) in log {
        news.position = seq;
        news.revisions.insert(tenant_id, revision);
        news.changed.entry(table).or_default().insert(id);
    }
    Ok(news)
}

/// Starts following: by notification, and by a poll where none comes.
pub(super) fn start(graph: &Arc<Graph>, store: &Store) {
    let heard = store.listen("authority_changes");
    tokio::spawn(Graph::listen(Arc::downgrade(graph), heard));
    tokio::spawn(Graph::follow(Arc::downgrade(graph)));
}
