//! Whether this node can decide. Workers check it in the background. Readiness is therefore
//! reported from memory, even if the database does not respond for long.

use std::{
    convert::Infallible,
    future::ready,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::directory::{Check, Directory};
use authority_api::identity::{Identity, JwksClient};
use authority_graph::Graph;
use authority_process::worker::{Statuses, Supervisor, Worker};
use authority_runtime::recorder::Recorder;
use authority_store::{self as store, Store};

const EVERY: Duration = Duration::from_secs(1);
/// The maximum age of the result of a schema check. Older results are ignored.
const LATEST: Duration = Duration::from_secs(5);
/// The interval at which gRPC health is updated.
const FOLLOW: Duration = Duration::from_millis(250);

/// The time of the last query, and the state of the schema.
type SchemaCheck = (Instant, Result<State, String>);

#[derive(Clone)]
struct State {
    /// Whether the schema has every migration.
    is_current: bool,
    /// Differences between the schema and its migrations.
    faults: Option<String>,
}

/// The last result of checking the schema. Clones share it.
#[derive(Clone)]
pub(super) struct Schema {
    store: Store,
    found: Arc<Mutex<Option<SchemaCheck>>>,
}

impl Schema {
    pub(super) fn new(store: Store) -> Self {
        Self { store, found: Arc::default() }
    }

    pub(super) async fn look(&self) -> Result<(), store::Error> {
        let found = self.ask().await;
        let kept = found.as_ref().cloned().map_err(ToString::to_string);
        *self.found.lock() = Some((Instant::now(), kept));
        found.map(drop)
    }

    async fn ask(&self) -> Result<State, store::Error> {
        let is_current = self.store.is_current().await?;
        // An older schema lacks the function that finds faults.
        let faults = if is_current { self.store.schema_faults().await? } else { None };
        Ok(State { is_current, faults })
    }

    pub(super) fn worker(&self) -> Worker {
        let schema = self.clone();
        let worker = Worker::periodic("schema", EVERY, move || {
            let schema = schema.clone();
            async move { schema.look().await }
        });
        // The checks continue while the service stops: otherwise readiness would report a fault of
        // the database.
        worker.outlasting_calls()
    }

    fn get(&self) -> Result<State, String> {
        match &*self.found.lock() {
            Some((at, found)) if at.elapsed() < LATEST => found.clone(),
            _ => Err("it does not answer".to_owned()),
        }
    }
}

/// The conditions that must hold before this node decides.
pub(super) fn checks(
    schema: &Schema,
    graph: &Arc<Graph>,
    recorder: &Recorder,
    supervisor: &Supervisor,
) -> Vec<Check> {
    let (database, migrations) = (schema.clone(), schema.clone());
    let (tail, clock) = (Arc::clone(graph), Arc::clone(graph));
    let (workers, shutdown) = (supervisor.statuses(), supervisor.shutdown().clone());
    let recorder = recorder.clone();
    vec![
        Check {
            name: "database",
            ask: Box::new(move || database.get()?.faults.map_or(Ok(()), Err)),
        },
        Check {
            name: "migrations",
            ask: Box::new(move || match migrations.get() {
                Ok(State { is_current: false, .. }) => {
                    Err("some are pending; run `agent-authority migrate`".to_owned())
                }
                // If the state is unknown, the check `database` reports it.
                _ => Ok(()),
            }),
        },
        Check {
            name: "graph",
            ask: Box::new(move || tail.is_followed().map_err(|error| error.to_string())),
        },
        Check {
            name: "clock",
            ask: Box::new(move || clock.is_on_time().map_err(|error| error.to_string())),
        },
        Check { name: "recorder", ask: Box::new(move || recorder.can_record()) },
        Check { name: "workers", ask: Box::new(move || critical(&workers)) },
        Check {
            name: "service",
            ask: Box::new(move || {
                if shutdown.is_cancelled() { Err("it is stopping".to_owned()) } else { Ok(()) }
            }),
        },
    ]
}

/// The checks of identity providers with keys read over the network.
///
/// They are only shown: decisions by API keys don't need the providers, and a node without them is
/// still ready.
pub(super) fn providers(identity: &Identity) -> Vec<Check> {
    let check = |keys: JwksClient| Check { name: "identity", ask: Box::new(move || keys.state()) };
    identity.remote_keys().into_iter().map(check).collect()
}

/// Reads the providers' keys at start and whenever they are due.
///
/// The worker isn't late if a provider responds slowly.
pub(super) fn identity_keys(identity: &Identity) -> Option<Worker> {
    let remote = identity.remote_keys();
    let look = move || {
        remote.iter().for_each(JwksClient::look);
        ready(Ok::<_, Infallible>(()))
    };
    let has_some = !identity.remote_keys().is_empty();
    has_some.then(|| Worker::periodic("identity_keys", EVERY, look))
}

/// Lists the faulty workers that decisions or their records depend on. Other faulty workers are
/// listed only in the response.
fn critical(workers: &Statuses) -> Result<(), String> {
    let reports = workers.reports().into_iter().filter(|report| report.is_critical);
    let faults = reports.filter_map(|report| Some(format!("{}: {}", report.name, report.fault?)));
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// The name that gRPC's health service has for the whole node.
const OVERALL: &str = "";

/// The worker that reports readiness by gRPC health and as a metric. Each of `services` has the
/// status of the node. The worker also runs during the drain: a stopping service is not ready.
pub(super) fn grpc_health(
    health: HealthReporter,
    services: Arc<[&'static str]>,
    directory: Directory,
) -> Worker {
    let last = Arc::new(Mutex::new(None));
    let worker = Worker::periodic("grpc_health", FOLLOW, move || {
        let is_ready = directory.is_ready();
        metrics::gauge!("authority_ready").set(if is_ready { 1.0 } else { 0.0 });
        let is_news = last.lock().replace(is_ready) != Some(is_ready);
        let (health, services) = (health.clone(), Arc::clone(&services));
        async move {
            if is_news {
                let serving = ServingStatus::Serving;
                let status = if is_ready { serving } else { ServingStatus::NotServing };
                for service in services.iter().chain(&[OVERALL]) {
                    health.set_service_status(service, status).await;
                }
            }
            Ok::<_, Infallible>(())
        }
    });
    worker.outlasting_calls()
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_critical_worker_that_is_down_is_no_readiness() {
        let supervisor = Supervisor::default();
        let ends = |name| Worker::endless(name, |_| async { Ok::<_, Infallible>(()) });
        supervisor.run([ends("spare")]);
        let workers = supervisor.statuses();
        let found = async |wanted: bool| {
            while critical(&workers).is_ok() != wanted {
                tokio::task::yield_now().await;
            }
        };
        timeout(LATEST, found(true)).await.unwrap();
        supervisor.run([ends("needed").critical()]);
        timeout(LATEST, found(false)).await.unwrap();
        let named = critical(&workers).unwrap_err();
        assert!(named.starts_with("needed: ") && !named.contains("spare"), "{named}");
        supervisor.stop().await;
    }
}
