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
mod witness;

use std::{path::PathBuf, sync::Arc};

use tokio::sync::{Mutex, mpsc};

use archives::ArchiveHandlers;
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency,
};
use authority_archive::Archives;
use authority_evidence as evidence;
use authority_graph::{self as graph, Graph};
use authority_keys::{self as keys, Keys};
use authority_ledger::stored_packs::Altered;
use authority_model::service::{Service, archive_service};
use authority_process::{
    clock::Clock,
    compute::{self, ComputePool},
    worker::Worker,
};
use authority_store::{self as store, Store};
use elsewhere::Elsewhere;
pub use elsewhere::ReadElsewhere;
use room::Room;
use sealer::Sealer;
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

/// The evidence service. Cheap to clone.
#[derive(Clone)]
pub struct Transparency(Arc<Inner>);

struct Inner {
    public_url: String,
    clock: Clock,
    store: Store,
    keys: Keys,
    graph: Arc<Graph>,
    sealer: mpsc::Sender<seal::SealRequest>,
    logs: Arc<Sealer>,
    /// Locked while a decision is sealed under an idempotency key.
    turn: Arc<Mutex<()>>,
    pool: ComputePool,
    archives: Archives,
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

/// Errors of the evidence service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no {0} `{1}`")]
    NotFound(&'static str, String),
    #[error("decision `{0}` is not sealed")]
    NotSealed(String),
    #[error(
        "decision `{0}` is not sealed yet, and has no evidence: seal it by \
         POST /v1/evidence/seal with its `decision_id`, or let the tenant's `auto_seal` do so"
    )]
    NoEvidenceYet(String),
    /// A bundle was requested, but a part of the decision's input was erased.
    #[error("{}", ErrorCode::DecisionErased.sentence())]
    Erased,
    #[error("`{0}` {1}")]
    Field(&'static str, String),
    #[error("the stored data cannot be read: {0}")]
    Unreadable(String),
    #[error("the log of {0} cannot be continued: {1}")]
    Log(String, String),
    #[error("sealing failed: the data folder cannot be written: {0}")]
    NoRoom(String),
    #[error("the checkpoints of {0} that left the service cannot be read: {1}")]
    WitnessUnavailable(String, String),
    #[error(transparent)]
    Altered(#[from] Altered),
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
    #[error(transparent)]
    Idempotency(#[from] idempotency::Error),
    #[error(transparent)]
    Archive(#[from] authority_archive::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Compute(#[from] compute::Error),
    #[error(transparent)]
    Graph(#[from] graph::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(kind, id) => Self::not_found(kind, &id),
            Error::NotSealed(_) => Self::new(ErrorCode::DecisionNotSealed, error.to_string()),
            // The API contract specifies 404 for this error.
            Error::NoEvidenceYet(_) => Self::new(ErrorCode::NotFound, error.to_string()),
            Error::Erased => Self::plain(ErrorCode::DecisionErased),
            Error::Field(field, problem) => Self::field(field, problem),
            Error::Altered(error) => error.into(),
            Error::Evidence(error) => error.into(),
            Error::Idempotency(error) => error.into(),
            Error::Archive(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Compute(error) => error.into(),
            Error::Graph(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::NoRoom(_) => Self::new(
                ErrorCode::Unavailable,
                "the decision was not sealed: the service cannot write its data folder; retry once \
                 `/health/ready` has no fault of `data_folder`",
            ),
            // The sealer has already logged the reason.
            Error::WitnessUnavailable(..) => Self::plain(ErrorCode::Unavailable),
            Error::Unreadable(_) | Error::Log(..) => {
                tracing::error!(%error, "failed to read a stored pack or log");
                Self::plain(ErrorCode::Internal)
            }
        }
    }
}
