//! Deliveries of events to webhook endpoints.
//!
//! 1. `fan_out.rs` moves an endpoint's cursor along its tenant's log. The events that the endpoint
//!    accepts become rows of `webhook_deliveries`.
//! 2. `worker.rs` claims due deliveries (`candidates.rs`, `claim.rs`) into a queue in memory
//!    (`queue/`). When it is a delivery's turn (`turns.rs`, `places.rs`) and the database still
//!    permits it (`check.rs`), the worker sends it outside any transaction (`attempt.rs`,
//!    `client/`) and records the result (`record.rs`).
//! 3. `replay.rs` creates new deliveries of past events. `service/` implements the API.
//!
//! The rules are in the crate `authority-webhook`, which does no I/O. Any number of nodes can do
//! this work concurrently.

mod attempt;
mod beside;
mod breaker;
mod candidates;
mod check;
mod claim;
mod client;
mod endpoint;
mod fan_out;
mod job;
mod judge;
mod limited;
pub(crate) mod lost;
mod make;
mod metrics;
mod pace;
mod places;
mod push;
mod queue;
mod record;
mod replay;
mod service;
mod turns;
mod worker;

use std::sync::Arc;

use authority_crypto::Signer;
use authority_graph::Graph;
use authority_ids::TenantId;
use authority_keys::{Keys, Purpose};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::Store;
use authority_webhook::{
    destination::{EndpointUrl, UrlRules},
    retry::Schedule,
    signing::Suite,
};
use bytes::Bytes;
use rustls::RootCertStore;
use tokio::{sync::Notify, time::Instant};

use attempt::Message;
use check::{Checks, Unsent};
use client::{Client, WHOLE};
use endpoint::Endpoint;
use fan_out::FanOut;
use limited::Limited;
use places::count_held;
pub use service::TEST_RATE_LIMIT;

/// The dependencies and settings of deliveries.
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    /// Provides the difference between this node's clock and the database's.
    pub graph: Arc<Graph>,
    pub clock: Clock,
    /// The rules for the destinations of deliveries.
    pub rules: UrlRules,
    /// Trusted roots of receivers' certificates, in addition to the public web's authorities.
    pub roots: RootCertStore,
    /// The service's URL: `iss` of its tokens.
    pub issuer: String,
    /// Notified when events were numbered.
    pub numbered: Arc<Notify>,
}

/// Sends events to endpoints.
#[derive(Clone)]
pub struct Deliveries(Arc<Shared>);

struct Shared {
    store: Store,
    keys: Keys,
    graph: Arc<Graph>,
    clock: Clock,
    rules: UrlRules,
    issuer: String,
    client: Client,
    /// The URL rules for pushes (`push.rs`).
    push_rules: UrlRules,
    pushes: Client,
    checks: Checks,
    /// Endpoints and tenants at their own limits, for the metrics.
    limited: Limited,
    numbered: Arc<Notify>,
    /// Notified when deliveries were created.
    wake: Arc<Notify>,
    /// Notified when replays were requested.
    replays: Notify,
}

impl Deliveries {
    /// Creates the sender of deliveries.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(parts: Parts) -> Result<Self, rustls::Error> {
        let mut roots = parts.roots;
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let push_rules = push::rules(&parts.rules);
        Ok(Self(Arc::new(Shared {
            client: Client::new(parts.rules.addresses.clone(), roots.clone())?,
            pushes: Client::new(push_rules.addresses.clone(), roots)?,
            push_rules,
            checks: Checks::new(parts.store.clone()),
            limited: Limited::default(),
            store: parts.store,
            keys: parts.keys,
            graph: parts.graph,
            clock: parts.clock,
            rules: parts.rules,
            issuer: parts.issuer,
            numbered: parts.numbered,
            wake: Arc::default(),
            replays: Notify::new(),
        })))
    }

    /// Sends a message of an audit stream once, as [`Shared::send`] does.
    ///
    /// The stream is an id, a tenant and a URL. The message is an id and a body, signed with the
    /// suite `rfc9421`. Returns `None` if `may_send` is false.
    ///
    /// # Errors
    /// The reason why the receiver did not accept the message.
    pub(crate) async fn send_copy(
        &self,
        (stream_id, tenant_id, url): (&str, &TenantId, &str),
        (event_id, body): (&str, &Bytes),
        may_send: impl Future<Output = bool>,
    ) -> Option<Result<(), String>> {
        if self.0.signer(&[Suite::Rfc9421]).is_none() {
            return Some(Err("receivers cannot know the signing key yet".to_owned()));
        }
        let endpoint = Endpoint {
            id: stream_id.to_owned(),
            tenant_id: tenant_id.into(),
            version: String::new(),
            url: EndpointUrl::parse(url, &self.0.rules).ok(),
            schedule: Schedule::default(),
            suites: vec![Suite::Rfc9421],
            secrets: Vec::new(),
            headers: Vec::new(),
        };
        let message = Message { event_id, body, replay_id: None };
        let may_send = async { if may_send.await { Ok(()) } else { Err(Unsent::Held) } };
        let begun = Instant::now();
        let sent = self.0.send(&endpoint, &message, WHOLE, may_send).await;
        count_held("audit_stream", begun.elapsed());
        let outcome = sent.ok()?;
        Some(match (outcome.answer.status, outcome.class) {
            _ if outcome.answer.succeeded() => Ok(()),
            (Some(status), _) => Err(format!("it answered {status}")),
            (None, Some(class)) => Err(class.to_string()),
            (None, None) => Err("no answer".to_owned()),
        })
    }

    /// Returns the workers of deliveries.
    pub fn workers(&self) -> Vec<Worker> {
        let shared = &self.0;
        let (numbered, made) = (Arc::clone(&shared.numbered), Arc::clone(&shared.wake));
        let fan_out = FanOut::new(shared.store.clone(), numbered, made);
        vec![
            fan_out.worker(),
            worker::worker(Arc::clone(shared)),
            replay::worker(Arc::clone(shared)),
            metrics::worker(Arc::clone(shared)),
        ]
    }
}

impl Shared {
    /// Returns the signing key for these suites; `None` if the key was published too recently for
    /// receivers to know it.
    fn signer(&self, suites: &[Suite]) -> Option<Arc<Signer>> {
        if *suites == [Suite::StandardWebhooks] {
            return Some(self.keys.signer(Purpose::Webhook)); // Standard Webhooks doesn't use it
        }
        self.keys.webhook_signer()
    }
}
