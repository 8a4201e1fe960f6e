//! The state of the evidence service.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use crate::{seal::SealRequest, sealer::Sealer};
use authority_archive::Archives;
use authority_graph::Graph;
use authority_keys::Keys;
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store::Store;

/// The evidence service. Cheap to clone.
#[derive(Clone)]
pub struct Transparency(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) public_url: String,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) graph: Arc<Graph>,
    pub(crate) sealer: mpsc::Sender<SealRequest>,
    pub(crate) logs: Arc<Sealer>,
    /// Locked while a decision is sealed under an idempotency key.
    pub(crate) turn: Arc<Mutex<()>>,
    pub(crate) pool: ComputePool,
    pub(crate) archives: Archives,
}
