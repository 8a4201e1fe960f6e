//! Whether this node can decide: looked at beside the calls, so that whoever asks is answered from
//! memory, however long the database is silent, and costs it nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::sleep;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::directory::{Check, Directory};
use authority_core::{graph::Graph, shutdown::Shutdown, store::Store};
use authority_runtime::recorder::Recorder;

const EVERY: Duration = Duration::from_secs(1);
/// What was found longer ago than this tells nothing.
const LATEST: Duration = Duration::from_secs(5);
/// How soon gRPC health follows.
const FOLLOW: Duration = Duration::from_millis(250);

/// When the database was asked, and whether it has every migration.
type Found = (Instant, Result<bool, String>);

/// What the database last said of its migrations. Clones share it.
#[derive(Clone)]
pub(super) struct Schema {
    store: Store,
    found: Arc<Mutex<Option<Found>>>,
}

impl Schema {
    pub(super) fn new(store: Store) -> Self {
        Self { store, found: Arc::default() }
    }

    pub(super) async fn look(&self) {
        let found = self.store.is_current().await.map_err(|error| error.to_string());
        *self.found.lock() = Some((Instant::now(), found));
    }

    pub(super) async fn keep(self, shutdown: Shutdown) {
        while !shutdown.begun() {
            sleep(EVERY).await;
            self.look().await;
        }
    }

    fn get(&self) -> Result<bool, String> {
        match &*self.found.lock() {
            Some((at, found)) if at.elapsed() < LATEST => found.clone(),
            _ => Err("it does not answer".to_owned()),
        }
    }
}

/// All that must hold before this node decides.
pub(super) fn checks(
    schema: &Schema,
    graph: &Arc<Graph>,
    recorder: &Recorder,
    shutdown: &Shutdown,
) -> Vec<Check> {
    let (database, migrations) = (schema.clone(), schema.clone());
    let (tail, clock) = (Arc::clone(graph), Arc::clone(graph));
    let (recorder, shutdown) = (recorder.clone(), shutdown.clone());
    vec![
        Check { name: "database", ask: Box::new(move || database.get().map(drop)) },
        Check {
            name: "migrations",
            ask: Box::new(move || match migrations.get() {
                Ok(false) => Err("some are pending; run `agent-authority migrate`".to_owned()),
                // Where nobody could look, the check before this one says so.
                Ok(true) | Err(_) => Ok(()),
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
        Check {
            name: "service",
            ask: Box::new(
                move || {
                    if shutdown.begun() { Err("it is stopping".to_owned()) } else { Ok(()) }
                },
            ),
        },
    ]
}

/// gRPC health says what readiness says.
pub(super) async fn tell(health: HealthReporter, directory: Directory, shutdown: Shutdown) {
    let mut told = None;
    let mut is_stopping = false;
    while !is_stopping {
        // Once more after that: a service that stops is not ready.
        is_stopping = shutdown.begun();
        let is_ready = directory.readiness().iter().all(|(_, found)| found.is_ok());
        if told != Some(is_ready) {
            told = Some(is_ready);
            let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
            health.set_service_status("", status).await;
        }
        sleep(FOLLOW).await;
    }
}
