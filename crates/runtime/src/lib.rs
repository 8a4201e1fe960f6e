//! Decides at every operation: evaluate, authorize, the normal form and batches of it.
//!
//! `decide.rs` is the pipeline, top to bottom. The operations (`runtime_service.rs`) only turn their bodies into
//! the normal form (`ask.rs`) and the outcome into their answers (`answer.rs`). What becomes of a
//! decision afterwards is told by streams (`live/`) and reported by agents (`report.rs`).

mod answer;
mod asking;
mod authority_service;
mod cache;
mod candidates;
mod changes;
mod credential;
mod decide;
mod decision_service;
mod export;
mod find;
mod history;
mod hold;
mod idempotency;
mod impact;
mod live;
mod normalize;
mod own_acts;
mod permission_status;
mod ready;
pub mod recorder;
mod report;
mod runtime_service;
mod simulate;
mod smallest;
mod view;

use std::{sync::Arc, time::Duration};

use authority_api::identity::Exports;
use authority_core::{
    clock::Clock, compute::ComputePool, graph::Graph, keys::Keys, shutdown::Shutdown, store::Store,
};
use cache::Cache;
use live::ChangeFeed;
use recorder::Recorder;

pub use decide::Decided;

/// What the runtime is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Before `/receipts/{decision_id}` in `verify_url`.
    pub public_url: String,
    /// How long a held request waits for its approvals.
    pub approval_ttl: Duration,
    /// Commit every tenant's decisions without waiting for the disk.
    pub relaxed: bool,
    /// Commit only what was decided on present authority.
    pub fenced: bool,
    /// How often a stream says that what it watches still stands.
    pub heartbeat: Duration,
}

/// The decision operations. Cheap to clone.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    settings: Settings,
    clock: Clock,
    store: Store,
    keys: Keys,
    graph: Arc<Graph>,
    /// For simulations, dry runs and explanations.
    pool: ComputePool,
    recorder: Recorder,
    cache: Cache,
    change_feed: ChangeFeed,
    exports: Exports,
    /// Ends the streams: none would end by itself, and the drain would wait for them.
    shutdown: Shutdown,
}

impl Runtime {
    pub fn new(
        settings: Settings,
        clock: Clock,
        store: Store,
        keys: Keys,
        graph: Arc<Graph>,
        pool: ComputePool,
        shutdown: Shutdown,
    ) -> Self {
        let recorder = Recorder::start(store.clone(), clock.clone(), settings.fenced);
        let change_feed = ChangeFeed::start(&store);
        let cache = Cache::default();
        let exports = Exports::new(credential::of_people(&graph, &clock, &shutdown));
        Self(Arc::new(Inner {
            settings,
            clock,
            store,
            keys,
            graph,
            pool,
            recorder,
            cache,
            change_feed,
            exports,
            shutdown,
        }))
    }

    /// The exports under way, of whatever.
    pub fn exports(&self) -> Exports {
        self.0.exports.clone()
    }

    /// Whether a decision could be recorded: from memory.
    ///
    /// # Errors
    /// Why not, for operators.
    pub fn can_record(&self) -> Result<(), String> {
        self.0.recorder.can_record()
    }

    /// Looks now whether a decision could be recorded.
    pub async fn look_at_recorder(&self) {
        self.0.recorder.look().await;
    }

    /// Looks every second, until the service stops.
    pub async fn keep_looking_at_recorder(self) {
        tokio::select! {
            () = self.0.shutdown.wait() => {}
            () = self.0.recorder.keep_looking() => {}
        }
    }
}
