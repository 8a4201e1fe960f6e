//! Creates the services of the crates from their shared parts.

use std::{sync::Arc, time::Duration};

use authority_api::identity::{Exports, Identity};
use authority_archive::{Archives, Bucket, Eraser, Parts as Archiving, format::part::DECISIONS};
use authority_config::{Config, Durability, PersonalDataConfig};
use authority_events::{
    Nats, Parts as EventParts, PushSettings, Sequencer, checkpoints_elsewhere,
    delivery::{Deliveries, Parts as DeliveryParts},
};
use authority_graph::Graph;
use authority_keys::Keys;
use authority_model::service::{self, Service};
use authority_process::{clock::Clock, compute::ComputePool, worker::Worker};
use authority_programme::{Parts as ProgrammeParts, Programme};
use authority_registry::{
    ApiKeys, Approvals, ChatPost, Destinations, Dns, MessageParts, PersonalData, RealitySnapshots,
    Registry, SigningKeys, SnapshotFeed, WebhookEndpoints, messages, services as registry_services,
};
use authority_runtime::{
    Parts as RuntimeParts, ReceiptUrls, Settings as RuntimeSettings, recorder::Recorder,
};
use authority_store::Store;
use authority_transparency::{Parts as TransparencyParts, Transparency};
use authority_webhook::destination::UrlRules;
use axum::Router;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{error::Error, mail::mailer, named, overload::Overload};
use crate::{
    directory::contract,
    receipts::{Peer, Receipts},
    reference::Reference,
    theme,
    widgets::Widgets,
};

/// How long a held request waits for approvals.
const APPROVAL_TTL: Duration = Duration::from_secs(24 * 3600);

/// The parts that the services share.
pub(super) struct Wiring {
    pub config: Config,
    pub store: Store,
    pub keys: Keys,
    pub graph: Arc<Graph>,
    pub clock: Clock,
    pub pool: ComputePool,
    pub exports: Exports,
    pub sequencer: Sequencer,
    pub nats: Arc<Nats>,
    /// Web Push; off if absent.
    pub push: Option<PushSettings>,
    /// The permitted destinations of webhooks.
    pub urls: Arc<UrlRules>,
    pub shutdown: CancellationToken,
    /// The storage for archived months of decisions; `None` only in production.
    pub bucket: Option<Bucket>,
}

impl Wiring {
    pub(super) fn registry(
        &self,
        deliveries: &Deliveries,
    ) -> Result<(Vec<Service>, [Worker; 2]), Error> {
        let graph = Arc::clone(&self.graph);
        let registry = Registry {
            store: self.store.clone(),
            clock: self.clock.clone(),
            keys: self.keys.clone(),
            graph: Arc::clone(&self.graph),
            pool: self.pool.clone(),
            after_commit: Arc::new(move || {
                let graph = Arc::clone(&graph);
                async move { graph.catch_up().await }.boxed()
            }),
            exports: self.exports.clone(),
            destinations: Arc::new(Destinations {
                urls: (*self.urls).clone(),
                nats: self.config.nats.url.is_some(),
            }),
            dns: Dns::new(&self.config.dns.servers),
            issuers: named::issuers(&self.config, &self.clock).map_err(Error::Issuers)?,
        };
        let approvals = Approvals { registry: registry.clone(), graph: Arc::clone(&self.graph) };
        let (feed, writer) = SnapshotFeed::new(self.store.clone());
        let snapshots = RealitySnapshots { registry: registry.clone(), feed };
        let (channels, messaging) = self.messages(registry.clone(), deliveries.clone())?;
        let mut all = registry_services(registry.clone());
        all.extend([
            service::approval_service(Arc::new(approvals)),
            service::api_key_service(Arc::new(ApiKeys(registry.clone()))),
            service::key_service(Arc::new(SigningKeys(registry.clone()))),
            service::reality_snapshot_service(Arc::new(snapshots)),
            channels,
            service::webhook_endpoint_service(Arc::new(WebhookEndpoints(registry.clone()))),
            service::personal_data_service(Arc::new(PersonalData {
                registry,
                legal_hold: self.config.personal_data.legal_hold.clone(),
                archives: self.eraser(),
            })),
        ]);
        Ok((all, [writer, messaging]))
    }

    /// Messages about approvals, by chat and e-mail.
    fn messages(
        &self,
        registry: Registry,
        deliveries: Deliveries,
    ) -> Result<(Service, Worker), Error> {
        Ok(messages(MessageParts {
            registry,
            post: Arc::new(move |ChatPost { url, body, public_only }| {
                let (deliveries, body) = (deliveries.clone(), body.to_string().into());
                async move { deliveries.post_to_chat(&url, body, public_only).await }.boxed()
            }),
            mailer: mailer(&self.config)?,
            public_url: self.config.public_url(),
        }))
    }

    /// Erases personal data by its age.
    pub(super) fn retention(&self) -> Worker {
        let PersonalDataConfig { lead_retention_days, legal_hold } = &self.config.personal_data;
        let (store, clock) = (self.store.clone(), self.clock.clone());
        authority_registry::erase_by_age(store, clock, *lead_retention_days, legal_hold.is_some())
    }

    pub(super) fn programme(&self) -> Programme {
        Programme::new(ProgrammeParts {
            store: self.store.clone(),
            keys: self.keys.clone(),
            clock: self.clock.clone(),
            public_url: self.config.public_url(),
        })
    }

    pub(super) fn decisions(
        &self,
        overload: &Overload,
        recorder: Recorder,
        heartbeat: Duration,
    ) -> ([Service; 6], [Worker; 5]) {
        let settings = RuntimeSettings {
            receipts: ReceiptUrls::below(&self.config.public_url()),
            approval_ttl: APPROVAL_TTL,
            relaxed: self.config.decide.durability == Durability::Relaxed,
            heartbeat,
        };
        authority_runtime::services(RuntimeParts {
            settings,
            clock: self.clock.clone(),
            store: self.store.clone(),
            keys: self.keys.clone(),
            graph: Arc::clone(&self.graph),
            pool: self.pool.clone(),
            exports: self.exports.clone(),
            queue: overload.queue.clone(),
            rates: overload.rates.clone(),
            recorder,
            archives: self.archives(),
            shutdown: self.shutdown.clone(),
        })
    }

    fn eraser(&self) -> Eraser {
        Eraser {
            store: self.store.clone(),
            keys: self.keys.clone(),
            clock: self.clock.clone(),
            bucket: self.bucket.clone(),
        }
    }

    /// Reads decisions that were moved from the tables to the archive.
    fn archives(&self) -> Archives {
        Archives::new(self.store.clone(), self.keys.clone(), self.bucket.clone())
    }

    /// Receipts, widgets, the API's pages, and the look of all pages.
    pub(super) fn pages(&self, identity: &Identity, programme: &Programme, peer: Peer) -> Router {
        let (store, url) = (self.store.clone(), self.config.public_url());
        let (keys, archives) = (self.keys.clone(), self.archives());
        let (identity, clock) = (identity.clone(), self.clock.clone());
        let receipts = Receipts::new(store, keys, archives, &self.config, identity, peer, clock);
        let widgets = Widgets::new(programme.clone(), peer);
        let reference = Reference::new(contract(&url)).router();
        receipts.router().merge(widgets.router()).merge(reference).merge(theme::router())
    }

    pub(super) fn transparency(&self) -> (Transparency, [Worker; 5]) {
        let (store, nats) = (self.store.clone(), Arc::clone(&self.nats));
        Transparency::new(TransparencyParts {
            public_url: self.config.public_url(),
            folder: self.config.data_dir.join("logs"),
            elsewhere: Arc::new(move |tenant_id| {
                let (store, nats) = (store.clone(), Arc::clone(&nats));
                async move { checkpoints_elsewhere(&store, &nats, &tenant_id).await }.boxed()
            }),
            clock: self.clock.clone(),
            store: self.store.clone(),
            keys: self.keys.clone(),
            graph: Arc::clone(&self.graph),
            pool: self.pool.clone(),
            archives: self.archives(),
        })
    }

    /// Returns the parts for archiving, and the worker. The parts are `None` without an archive, or
    /// under the installation's legal hold.
    pub(super) fn archiving(&self, transparency: &Transparency) -> (Option<Archiving>, Worker) {
        let is_held = self.config.personal_data.legal_hold.is_some();
        let bucket = self.bucket.clone().filter(|_| !is_held);
        let archiving = bucket.map(|bucket| Archiving {
            store: self.store.clone(),
            keys: self.keys.clone(),
            clock: self.clock.clone(),
            bucket,
            evidence: transparency.pages(),
            issuer: self.config.public_url(),
            part: DECISIONS,
            stopping: self.shutdown.clone(),
        });
        let worker = if let Some(parts) = &archiving {
            authority_archive::worker(parts.clone())
        } else {
            let remedy = if is_held {
                "the installation is under legal hold (`personal_data.legal_hold`)"
            } else {
                "set `archive.url`"
            };
            authority_archive::worker_without_archive(self.store.clone(), remedy)
        };
        (archiving, worker)
    }

    pub(super) fn deliveries(&self) -> Result<Deliveries, Error> {
        Ok(Deliveries::new(DeliveryParts {
            store: self.store.for_events(),
            keys: self.keys.clone(),
            graph: Arc::clone(&self.graph),
            clock: self.clock.clone(),
            rules: (*self.urls).clone(),
            roots: named::webhook_roots(&self.config)?,
            issuer: self.config.public_url(),
            numbered: self.sequencer.numbered(),
        })?)
    }

    pub(super) fn events(self, deliveries: Deliveries) -> (Vec<Service>, Vec<Worker>) {
        authority_events::services(EventParts {
            clock: self.clock,
            store: self.store.for_events(),
            graph: self.graph,
            keys: self.keys,
            sequencer: self.sequencer,
            nats: self.nats,
            deliveries,
            push: self.push,
            legal_hold: self.config.personal_data.legal_hold.is_some(),
            shutdown: self.shutdown,
        })
    }
}
