//! Whether decisions can be recorded: the result of the last batch or, without one, of a probe in
//! the recorder's role.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::timeout;

use authority_core::{
    store::{Db, Error, RunQueryDsl, Store, discard},
    worker::Worker,
};

/// The interval of probes; a stored batch replaces one.
const EVERY: Duration = Duration::from_secs(1);
/// The timeout of a probe, and of the wait for its connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Older results do not count.
const LATEST: Duration = Duration::from_secs(8);

diesel::define_sql_function! {
    /// A statement that fails if no decision could be stored now.
    fn can_record() -> diesel::sql_types::Bool;
}

/// The last result. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Health(Arc<Mutex<Option<Found>>>);

struct Found {
    at: Instant,
    outcome: Result<(), String>,
}

impl Health {
    pub(super) fn note(&self, outcome: Result<(), String>) {
        *self.0.lock() = Some(Found { at: Instant::now(), outcome });
    }

    /// `Err` says, for operators, why nothing can be recorded.
    pub(super) fn get(&self) -> Result<(), String> {
        match &*self.0.lock() {
            Some(found) if found.at.elapsed() < LATEST => found.outcome.clone(),
            Some(_) => Err("the database does not answer".to_owned()),
            None => Err("it was not looked at yet".to_owned()),
        }
    }

    fn is_proven(&self) -> bool {
        let found = self.0.lock();
        found.as_ref().is_some_and(|found| found.outcome.is_ok() && found.at.elapsed() < EVERY)
    }

    /// Probes now.
    pub(super) async fn look(&self, store: &Store) -> Result<(), Error> {
        let found = probe(store).await;
        self.note(found.as_ref().copied().map_err(ToString::to_string));
        found
    }

    /// Probes every second in which no batch was stored.
    pub(super) fn worker(&self, store: Store) -> Worker {
        let health = self.clone();
        Worker::periodic("recorder_probe", EVERY, move || {
            let (health, store) = (health.clone(), store.clone());
            async move { if health.is_proven() { Ok(()) } else { health.look(&store).await } }
        })
    }
}

async fn probe(store: &Store) -> Result<(), Error> {
    let late = |_| Error::Unavailable("no connection in time".to_owned());
    let mut db = timeout(PATIENCE, store.recorder()).await.map_err(late)??;
    let probed = store.within(PATIENCE, ask(&mut db)).await;
    if probed.is_err() {
        discard(db);
    }
    probed
}

async fn ask(db: &mut Db) -> diesel::QueryResult<()> {
    diesel::select(can_record()).execute(db).await.map(drop)
}
