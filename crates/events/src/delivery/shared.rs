//! The parts that the workers and the service of deliveries share.

use std::sync::Arc;

use authority_crypto::Signer;
use authority_graph::Graph;
use authority_keys::{Keys, Purpose};
use authority_process::clock::Clock;
use authority_store::Store;
use authority_webhook::{destination::UrlRules, signing::Suite};
use tokio::sync::Notify;

use super::{check::Checks, client::Client, limited::Limited};

pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) graph: Arc<Graph>,
    pub(super) clock: Clock,
    pub(super) rules: UrlRules,
    pub(super) issuer: String,
    pub(super) client: Client,
    /// The URL rules for pushes (`push.rs`).
    pub(super) push_rules: UrlRules,
    pub(super) pushes: Client,
    pub(super) checks: Checks,
    /// Endpoints and tenants at their own limits, for the metrics.
    pub(super) limited: Limited,
    pub(super) numbered: Arc<Notify>,
    /// Notified when deliveries were created.
    pub(super) wake: Arc<Notify>,
    /// Notified when replays were requested.
    pub(super) replays: Notify,
}

impl Shared {
    /// Returns the signing key for these suites; `None` if the key was published too recently for
    /// receivers to know it.
    pub(super) fn signer(&self, suites: &[Suite]) -> Option<Arc<Signer>> {
        if *suites == [Suite::StandardWebhooks] {
            return Some(self.keys.signer(Purpose::Webhook)); // Standard Webhooks doesn't use it
        }
        self.keys.webhook_signer()
    }
}
