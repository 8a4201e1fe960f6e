//! The data that every operation of the registry uses.

use std::sync::Arc;

use authority_api::identity::Exports;
use authority_graph::Graph;
use authority_keys::Keys;
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store::Store;
use futures_util::future::BoxFuture;

use super::{dns::Dns, issuers::Issuers};
use authority_webhook::destination::UrlRules;

/// Runs after each write that decisions depend on, before the response to the write. Waits until
/// the graph has applied the write.
pub type AfterCommit = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Every service of the registry. It serves tenants, the records around them, delegations and
/// relationships.
#[derive(Clone)]
pub struct Registry {
    pub store: Store,
    pub clock: Clock,
    /// Authenticates page tokens, seals secrets and signs people's acts.
    pub keys: Keys,
    /// The authority on which people's acts are checked.
    pub graph: Arc<Graph>,
    /// The pool for parsing and checking texts.
    pub pool: ComputePool,
    pub after_commit: AfterCommit,
    /// The running exports.
    pub exports: Exports,
    /// The permitted destinations of audit streams and webhooks.
    pub destinations: Arc<Destinations>,
    /// Looks up the proof that a tenant owns a domain.
    pub dns: Dns,
    /// The issuers, besides this service, that may sign certifications.
    pub issuers: Issuers,
}

/// The destinations that the installation permits.
#[derive(Default)]
pub struct Destinations {
    pub urls: UrlRules,
    /// Whether the installation has a NATS server.
    pub nats: bool,
}
