//! Gauges that are read from memory at each scrape: pools, decisions in progress, the age of
//! workers.

use authority_process::worker::{Statuses, Supervisor};
use authority_runtime::{queue::DecisionQueue, recorder::Recorder};
use authority_store::Store;

/// The sources of the gauges.
#[derive(Clone)]
pub struct Gauges {
    store: Store,
    queue: DecisionQueue,
    recorder: Recorder,
    workers: Statuses,
}

impl Gauges {
    pub(super) fn new(
        store: &Store,
        queue: &DecisionQueue,
        recorder: &Recorder,
        supervisor: &Supervisor,
    ) -> Self {
        let (store, queue, recorder) = (store.clone(), queue.clone(), recorder.clone());
        Self { store, queue, recorder, workers: supervisor.statuses() }
    }

    /// Sets all gauges to their current values.
    pub fn read(&self) {
        for pool in self.store.usage() {
            let gauge = |name: &'static str, value: usize| {
                metrics::gauge!(name, "pool" => pool.pool).set(number(value));
            };
            gauge("authority_database_connections_in_use", pool.in_use);
            gauge("authority_database_connections_idle", pool.idle);
            gauge("authority_database_connections_max", pool.most);
            gauge("authority_database_connections_waiting", pool.waiting);
        }
        let load = self.queue.load();
        metrics::gauge!("authority_decisions_waiting").set(number(load.waiting));
        metrics::gauge!("authority_decisions_working").set(number(load.working));
        let oldest = load.oldest.as_secs_f64();
        metrics::gauge!("authority_decisions_oldest_waiting_seconds").set(oldest);
        let age = self.recorder.batch_age();
        metrics::gauge!("authority_recorder_batch_age_seconds").set(age.as_secs_f64());
        let ready = self.recorder.can_record().is_ok();
        metrics::gauge!("authority_recorder_ready").set(if ready { 1.0 } else { 0.0 });
        for report in self.workers.reports() {
            let gauge = |name: &'static str, value: f64| {
                metrics::gauge!(name, "name" => report.name).set(value);
            };
            if let Some(age) = report.since_success {
                gauge("authority_worker_age_seconds", age.as_secs_f64());
            }
            gauge("authority_worker_late", if report.fault.is_some() { 1.0 } else { 0.0 });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "connections and queues are far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}
