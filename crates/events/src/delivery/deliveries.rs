//! Builds the sender of deliveries and its workers, and sends messages of audit streams.

use std::sync::Arc;

use authority_graph::Graph;
use authority_ids::TenantId;
use authority_keys::Keys;
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

use super::{
    attempt::Message,
    check::{Checks, Unsent},
    client::{Client, WHOLE},
    endpoint::Endpoint,
    fan_out::FanOut,
    limited::Limited,
    metrics,
    places::count_held,
    push_rules::push_rules,
    replay,
    shared::Shared,
    worker,
};

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
pub struct Deliveries(pub(super) Arc<Shared>);

impl Deliveries {
    /// Creates the sender of deliveries.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(parts: Parts) -> Result<Self, rustls::Error> {
        let mut roots = parts.roots;
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let push_rules = push_rules(&parts.rules);
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
            id: stream_id.into(),
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
