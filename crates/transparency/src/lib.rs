//! Seals decisions into their tenants' transparency logs, and replays sealed decisions.
//!
//! `authority-evidence` defines the formats; this crate adds the database and the keys. `seal.rs`
//! reads decisions (`leaves.rs`), appends them to their tenant's log (`log.rs`) and stores their
//! packs (`packs.rs`). `seal_once.rs` seals under an idempotency key, and `auto.rs` seals all
//! decisions of a tenant. `witness.rs` stores the last checkpoints in a folder of this node, apart
//! from the database; `room.rs` checks that the folder is writable. `follow.rs` adds the
//! checkpoints that other nodes sign, and `elsewhere.rs` reads the checkpoints that audit streams
//! have sent out. `pages.rs` provides the decisions to archive.

mod archived;
mod archives;
mod auto;
mod elsewhere;
mod error;
mod follow;
mod lag;
mod leaves;
mod log;
mod packs;
mod pages;
mod replay;
mod replay_request;
mod room;
mod seal;
mod seal_once;
mod sealer;
mod service;
mod transparency;
mod witness;

use std::{path::PathBuf, sync::Arc};

use archives::ArchiveHandlers;
use authority_archive::Archives;
use authority_graph::Graph;
use authority_keys::Keys;
use authority_model::service::{Service, archive_service};
use authority_process::{clock::Clock, compute::ComputePool, worker::Worker};
use authority_store::Store;
use elsewhere::Elsewhere;
pub use elsewhere::ReadElsewhere;
pub use error::Error;
use room::Room;
use sealer::Sealer;
use transparency::Inner;
pub use transparency::Transparency;
use witness::Witness;

/// The dependencies and settings of the evidence service.
pub struct Parts {
    /// The service's public URL: the issuer of packs, and the prefix of the logs' origins.
    pub public_url: String,
    /// The folder where this node remembers signed checkpoints, apart from the database.
    pub folder: PathBuf,
    /// Reads the checkpoints that audit streams have sent out.
    pub elsewhere: ReadElsewhere,
    pub clock: Clock,
    pub store: Store,
    pub keys: Keys,
    pub graph: Arc<Graph>,
    /// The threads on which replays compile policies and decide.
    pub pool: ComputePool,
    /// Reads archived decisions.
    pub archives: Archives,
}

impl Transparency {
    /// Creates the service and its workers.
    pub fn new(parts: Parts) -> (Self, [Worker; 5]) {
        let Parts { public_url, folder, elsewhere, clock, store, keys, graph, pool, archives } =
            parts;
        let logs = Arc::new(Sealer {
            public_url: public_url.clone(),
            clock: clock.clone(),
            store: store.clone(),
            keys: keys.clone(),
            witness: Witness::new(folder),
            room: Room::default(),
            elsewhere: Elsewhere::new(elsewhere, keys.clone()),
        });
        let (sealer, sealing) = Sealer::queue(Arc::clone(&logs));
        let following = follow::worker(Arc::clone(&logs));
        let witness = Arc::clone(&logs);
        let looking = logs.room.clone().worker(move || witness.witness.try_writing());
        let service = Self(Arc::new(Inner {
            public_url,
            clock,
            store,
            keys,
            graph,
            sealer,
            logs,
            turn: Arc::default(),
            pool,
            archives,
        }));
        let auto = auto::worker(service.clone());
        let lag = lag::worker(service.0.store.clone());
        (service, [sealing, following, looking, auto, lag])
    }

    /// Returns the service that lists archived months.
    pub fn archive_service(&self) -> Service {
        let (store, keys) = (self.0.store.clone(), self.0.keys.clone());
        archive_service(Arc::new(ArchiveHandlers { store, keys }))
    }

    /// Returns a function that reports whether this node can write the data that sealing needs.
    ///
    /// The function does no I/O: it returns the result of the last check.
    pub fn room(&self) -> impl Fn() -> Result<(), String> + Send + Sync + use<> {
        let room = self.0.logs.room.clone();
        move || room.get()
    }
}
