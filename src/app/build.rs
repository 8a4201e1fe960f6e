//! Builds all services into one router, with their background work.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use authority_model::{
    DESCRIPTORS,
    service::{self, Service},
};
use axum::{Router, middleware};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tower::{Layer as _, util::MapRequestLayer};

use super::{
    acts, connections,
    direct::Deciding,
    directory::GraphDirectory,
    document::{GET_OPEN_API, OpenApi},
    error::Error,
    gauges::Gauges,
    host::{GRPC_LIMIT, RestHost},
    issuers, measure, named,
    overload::Overload,
    readiness::{self, Schema},
    served::{Served, client_of},
    streams::{self, StreamsLayer},
    wiring::Wiring,
};
use crate::{
    directory::{Check, Directory, contract},
    transport::Entry,
};
use authority_api::{
    idempotency,
    identity::{Identity, Rules, Settings as IdentitySettings, dev_provider::DevProvider},
};
use authority_config::Config;
use authority_crypto::KeyRing;
use authority_events::{Nats, Sequencer};
use authority_graph::{self as graph, Graph};
use authority_keys::{Keys, key_ring};
use authority_ledger::spending;
use authority_process::{
    clock::Clock,
    compute::{self, ComputePool},
    worker::{Supervisor, Worker},
};
use authority_registry::{
    expire_approvals, expire_certifications, keep_last_used, measure_waiting,
};
use authority_runtime::recorder::Recorder;
use authority_store::Store;

/// The interval of heartbeats on streams: proxies close connections that are silent for 30 to 60
/// seconds.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The key ring that a development server creates in its data folder.
pub(super) const RING_FILE: &str = "keys.ring";

/// The parts of a service.
pub struct Parts {
    pub config: Config,
    pub store: Store,
    pub ring: KeyRing,
    pub clock: Clock,
    pub graph: graph::Settings,
    /// Whether only decisions on current authority are committed. It is false only in the test that
    /// shows why this restriction is needed.
    pub fenced: bool,
    /// The interval of heartbeats on streams.
    pub heartbeat: Duration,
    /// The most open streams of a tenant on this node.
    pub tenant_streams: usize,
    /// Ends the streams when the service stops, and runs the workers that readiness shows.
    pub supervisor: Supervisor,
}

impl Parts {
    /// Creates the parts from the configuration.
    pub fn new(config: Config, store: Store) -> Result<Self, Error> {
        let ring = match named::ring(&config)? {
            Some(ring) => ring,
            // This happens only in development: production refuses to start without a ring.
            None => key_ring::load_or_create(&config.data_dir.join(RING_FILE))?,
        };
        let graph = graph::Settings {
            max_staleness: Duration::from_secs(config.decide.max_staleness_seconds),
            valid_for_seconds: config.decide.valid_for_seconds.try_into().unwrap_or(u32::MAX),
            ..graph::Settings::default()
        };
        Ok(Self {
            config,
            store,
            ring,
            clock: Clock::default(),
            graph,
            fenced: true,
            heartbeat: HEARTBEAT,
            tenant_streams: streams::MOST,
            supervisor: Supervisor::default(),
        })
    }
}

/// A built service.
pub struct App {
    /// gRPC, gRPC-Web and REST, without the response layer of a listener.
    pub entry: Entry,
    pub graph: Arc<Graph>,
    pub keys: Keys,
    pub store: Store,
    /// The development identity provider, if it runs.
    pub provider: Option<DevProvider>,
    pub identity: Identity,
    /// Reports readiness by gRPC health.
    pub health: tonic_health::server::HealthReporter,
    /// The gauges that are read at each scrape of the metrics.
    pub gauges: Gauges,
    /// The parts for archiving; `None` without an archive.
    pub archiving: Option<authority_archive::Parts>,
}

impl App {
    /// Builds the services on a migrated database, and all their background work. Decisions start
    /// only when a supervisor runs that work.
    pub async fn build(parts: Parts) -> Result<(Self, Vec<Worker>), Error> {
        let Parts { config, store, ring, clock, graph: freshness, fenced, heartbeat, .. } = parts;
        let Parts { supervisor, tenant_streams, .. } = parts;
        let (dev, production, url) =
            (config.dev_provider(), config.production(), config.public_url());
        let keys = Keys::start(store.clone(), ring, clock.clone(), dev).await?;
        let graph =
            Graph::load(store.clone(), freshness, clock.clone(), keys.erased_names()).await?;
        let identity = identity(&config, &keys, &graph, &clock)?;
        let provider = dev.then(|| DevProvider::new(keys.clone(), clock.clone()));
        let exports = authority_api::credentials::exports(&graph, &clock, supervisor.shutdown());
        let sequencer = Sequencer::new(store.for_events());
        let (recorder, recording) =
            Recorder::new(store.clone(), clock.clone(), fenced, sequencer.waker());
        let overload = Overload::new(&graph, &store);
        let schema = Schema::new(store.clone());
        first_looks(&store, &schema, &recorder).await;
        let mut checks = readiness::checks(&schema, &graph, &recorder, &supervisor);
        let gauges = Gauges::new(&store, &overload.queue, &recorder, &supervisor);
        let (health, health_service) = tonic_health::server::health_reporter();
        let wiring = Wiring {
            urls: Arc::new(named::url_rules(&config)?),
            bucket: named::bucket(&config)?,
            nats: Arc::new(Nats::new(named::nats(&config)?)),
            push: named::push(&config)?,
            config: config.clone(),
            store: store.clone(),
            keys: keys.clone(),
            graph: Arc::clone(&graph),
            clock: clock.clone(),
            pool: ComputePool::start(compute::Limits::default())?,
            exports,
            sequencer,
            shutdown: supervisor.shutdown().clone(),
        };
        let deliveries = wiring.deliveries()?;
        let ((mut ours, feeding), retention) = (wiring.registry(&deliveries)?, wiring.retention());
        let programme = wiring.programme();
        ours.extend(programme.services());
        let (decisions, watching) = wiring.decisions(&overload, recorder, heartbeat);
        let (transparency, sealing) = wiring.transparency();
        let (archiving, archiver) = wiring.archiving(&transparency);
        let pages = wiring.pages(&identity, &programme, client_of);
        checks.push(Check { name: "data_folder", ask: Box::new(transparency.room()) });
        let (events, numbering) = wiring.events(deliveries.clone());
        let directory = directory(checks, &supervisor, &identity, &keys, &graph, &url);
        ours.extend(decisions.into_iter().chain(events).chain([
            service::directory_service(Arc::new(directory.clone())),
            service::evidence_service(Arc::new(transparency.clone())),
            transparency.archive_service(),
            service::webhook_delivery_service(deliveries.service()),
        ]));
        let reflection = (!production).then(|| REFLECTION.clone()).transpose();
        let grpc = reflection.map_err(Error::Reflection)?.unwrap_or_default();
        let (deciding, grpc) = (Deciding::of(&ours), grpc.add_service(health_service));
        let named = ours.iter().map(Service::name).collect();
        let open_api = OpenApi::new(&contract(&url));
        let grpc = routed(grpc, ours, (tenant_streams, supervisor.shutdown()), &open_api).prepare();
        let host = RestHost::new(&identity, open_api.rest, &clock, overload);
        let console = console(&store, &keys, &clock, &identity, provider.as_ref());
        let (entry, console) = Served { grpc, deciding, host, pages, console }.entry(&config)?;
        let mut workers = vec![schema.worker(), programme.worker(), retention, archiver];
        workers.push(readiness::grpc_health(health.clone(), named, directory));
        workers.extend(housekeeping(&store, &clock, &identity).into_iter().chain(console));
        workers.extend(numbering.into_iter().chain(deliveries.workers()).chain(feeding));
        workers.extend(keys.workers().into_iter().chain([graph.worker(), store.listener()]));
        workers.extend(recording.into_iter().chain(watching).chain(sealing));
        let app = Self { entry, graph, keys, store, provider, identity, health, gauges, archiving };
        Ok((app, workers))
    }
}

/// Sets up the console.
fn console(
    store: &Store,
    keys: &Keys,
    clock: &Clock,
    identity: &Identity,
    provider: Option<&DevProvider>,
) -> authority_console::Parts {
    authority_console::Parts {
        store: store.clone(),
        keys: keys.clone(),
        clock: clock.clone(),
        identity: identity.clone(),
        provider: provider.cloned(),
        client: client_of,
        latency: measure::latency,
    }
}

/// The workers that keep tables small, keep records up to date, and count the waiting records.
fn housekeeping(store: &Store, clock: &Clock, identity: &Identity) -> Vec<Worker> {
    let workers = [
        store.partitions(),
        idempotency::sweeper(store.clone(), clock.clone()),
        expire_approvals(store.clone(), clock.clone()),
        expire_certifications(store.clone(), clock.clone()),
        measure_waiting(store.clone()),
        spending::forget(store.clone(), clock.clone()),
        keep_last_used(identity.last_used(), store.clone()),
    ];
    workers.into_iter().chain(readiness::identity_keys(identity)).collect()
}

/// Runs the workers' checks once. Readiness is then correct from the start.
async fn first_looks(store: &Store, schema: &Schema, recorder: &Recorder) {
    if let Err(error) = store.make_partitions().await {
        tracing::warn!(%error, "failed to create the partitions of the coming months");
    }
    // Readiness reports the results.
    let _ = tokio::join!(schema.look(), recorder.look());
}

fn routed(
    routes: Routes,
    services: Vec<Service>,
    (most_streams, stopping): (usize, &CancellationToken),
    open_api: &OpenApi,
) -> Routes {
    let services = services.into_iter().map(|service| service.limited_to(GRPC_LIMIT));
    let router = routes.into_axum_router();
    // Each method has its own route. An unknown method therefore has none.
    let add = |router: Router, service: Service| {
        service.paths().fold(router, |router, path| match path.as_str() {
            GET_OPEN_API => router.route_service(&path, open_api.clone()),
            _ if acts::is_act(&path) => {
                router.route_service(&path, middleware::from_fn(acts::log).layer(service.clone()))
            }
            _ => router.route_service(&path, service.clone()),
        })
    };
    let noting = MapRequestLayer::new(|request: axum::extract::Request| {
        connections::note_tenant(request.extensions());
        request
    });
    let streams = StreamsLayer::new(most_streams, stopping.clone());
    services.fold(router, add).layer(streams).layer(noting).into()
}

fn identity(
    config: &Config,
    keys: &Keys,
    graph: &Arc<Graph>,
    clock: &Clock,
) -> Result<Identity, Error> {
    let mut issuers = issuers::configured(config, clock).map_err(Error::Identity)?;
    if config.dev_provider() {
        issuers.push(issuers::development(keys));
    }
    // Health is open to everyone; reflection is available only in development.
    let open = ["/grpc.health.v1.", "/grpc.reflection."].map(str::to_owned).to_vec();
    Ok(Identity::new(IdentitySettings {
        issuers,
        rules: Rules::of_protos(open),
        directory: Arc::new(GraphDirectory(Arc::clone(graph))),
        keys: keys.clone(),
        clock: clock.clone(),
    }))
}

fn directory(
    checks: Vec<Check>,
    supervisor: &Supervisor,
    identity: &Identity,
    keys: &Keys,
    graph: &Arc<Graph>,
    public_url: &str,
) -> Directory {
    let (keys, graph, workers) = (keys.clone(), Arc::clone(graph), supervisor.statuses());
    let limits =
        [authority_registry::SNAPSHOT_RATE_LIMIT, authority_events::delivery::TEST_RATE_LIMIT];
    let limits = [&authority_programme::RATE_LIMITS[..], &limits[..]].concat();
    let checks = (checks, readiness::providers(identity));
    Directory::new(checks, workers, public_url, limits, graph, move || keys.jwks())
}

/// The services of gRPC's reflection. Created once: reading the descriptors takes longer than the
/// rest of a test's start.
static REFLECTION: LazyLock<Result<Routes, String>> = LazyLock::new(|| {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let routes = builder().build_v1().map(Routes::new);
    let routes = routes.and_then(|routes| Ok(routes.add_service(builder().build_v1alpha()?)));
    routes.map_err(|fault| fault.to_string())
});
