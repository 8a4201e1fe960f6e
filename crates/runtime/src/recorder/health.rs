//! Whether decisions can be recorded. The answer comes from the last batch or, without a recent
//! batch, from a probe in the recorder's role. A probe does less than a batch. A passed probe
//! therefore proves little while batches fail.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::timeout;

use authority_process::worker::Worker;
use authority_store::{Db, Error, RunQueryDsl, Store, discard};

/// The interval of probes. A stored batch replaces a probe.
const EVERY: Duration = Duration::from_secs(1);
/// The timeout of a probe, and of the wait for its connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum age of a result that counts.
const LATEST: Duration = Duration::from_secs(8);
/// How long a failed batch outweighs passed probes.
///
/// After that, the node reports that it can record. It then gets new calls, and only a batch of new
/// calls can show whether batches still fail.
const OUTWEIGHS: Duration = Duration::from_secs(10);

diesel::define_sql_function! {
    /// A statement that fails if no decision could be stored now.
    fn can_record() -> diesel::sql_types::Bool;
}

/// The last results, shared by clones.
#[derive(Clone, Default)]
pub(super) struct Health(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    found: Option<Probe>,
    /// The last batch, if it failed.
    failed: Option<Failed>,
}

struct Probe {
    at: Instant,
    outcome: Result<(), String>,
}

struct Failed {
    at: Instant,
    why: String,
    /// Whether a probe has passed since this failure.
    is_probed: bool,
    /// Whether this failure may continue although a probe passes.
    is_unseen: bool,
}

impl State {
    fn find(&mut self, outcome: Result<(), String>) {
        self.found = Some(Probe { at: Instant::now(), outcome });
    }
}

impl Health {
    /// Records that a batch was stored.
    pub(super) fn stored(&self) {
        let mut state = self.0.lock();
        state.failed = None;
        state.find(Ok(()));
    }

    /// Records that a batch failed for a reason other than its data.
    ///
    /// A probe can show that a lost connection is back. It can't show the end of any other failure,
    /// or of a failure that follows a passed probe.
    pub(super) fn failed(&self, error: &Error) {
        let mut state = self.0.lock();
        let again = state.failed.as_ref().is_some_and(|last| last.is_probed || last.is_unseen);
        let why = error.to_string();
        state.find(Err(why.clone()));
        let is_unseen = again || !error.is_passing();
        state.failed = Some(Failed { at: Instant::now(), why, is_probed: false, is_unseen });
    }

    fn probed(&self, outcome: Result<(), String>) {
        let mut state = self.0.lock();
        if let Some(failed) = &mut state.failed {
            failed.is_probed |= outcome.is_ok();
        }
        state.find(outcome);
    }

    /// Returns whether decisions can be recorded. `Err` is the reason, for operators.
    pub(super) fn get(&self) -> Result<(), String> {
        let state = self.0.lock();
        if let Some(failed) = &state.failed
            && failed.is_unseen
            && failed.at.elapsed() < OUTWEIGHS
        {
            return Err(failed.why.clone());
        }
        match &state.found {
            Some(found) if found.at.elapsed() < LATEST => found.outcome.clone(),
            Some(_) => Err("the database does not answer".to_owned()),
            None => Err("the recorder has not been probed yet".to_owned()),
        }
    }

    fn is_proven(&self) -> bool {
        let state = self.0.lock();
        state
            .found
            .as_ref()
            .is_some_and(|found| found.outcome.is_ok() && found.at.elapsed() < EVERY)
    }

    /// Runs a probe now.
    pub(super) async fn look(&self, store: &Store) -> Result<(), Error> {
        let found = probe(store).await;
        self.probed(found.as_ref().copied().map_err(ToString::to_string));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> Error {
        Error::Internal("permission denied for table fact_blobs".to_owned())
    }

    fn lost() -> Error {
        Error::Unavailable("connection closed".to_owned())
    }

    #[test]
    fn a_failed_batch_outweighs_probes_until_one_is_stored() {
        let health = Health::default();
        health.probed(Ok(()));
        health.failed(&broken());
        health.probed(Ok(()));
        assert!(health.get().unwrap_err().contains("permission denied"));
        health.stored();
        assert_eq!(health.get(), Ok(()));
    }

    #[test]
    fn a_lost_connection_is_over_once_a_probe_passes_and_not_if_batches_still_fail() {
        let health = Health::default();
        health.failed(&lost());
        health.failed(&lost());
        assert!(health.get().is_err());
        health.probed(Ok(()));
        assert_eq!(health.get(), Ok(()));
        health.failed(&lost());
        health.probed(Ok(()));
        assert!(health.get().is_err(), "the probe passed before, and the batch failed");
    }

    #[test]
    fn a_node_without_calls_is_tried_again() {
        let health = Health::default();
        health.failed(&broken());
        health.probed(Ok(()));
        let earlier = Instant::now().checked_sub(OUTWEIGHS).unwrap();
        health.0.lock().failed.as_mut().unwrap().at = earlier;
        assert_eq!(health.get(), Ok(()));
        health.failed(&lost());
        health.probed(Ok(()));
        assert!(health.get().is_err(), "no batch was stored since the failure");
    }
}
