//! Gauges that are read from memory at each scrape: pools, the recorder's queue, the age of workers.

use authority_core::{store::Store, worker::Statuses};
use authority_runtime::recorder::Recorder;

/// What is read.
#[derive(Clone)]
pub struct Gauges {
    pub(super) store: Store,
    pub(super) recorder: Recorder,
    pub(super) workers: Statuses,
}

impl Gauges {
    /// Sets all gauges to their values of now.
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
        let backlog = self.recorder.backlog();
        metrics::gauge!("authority_recorder_queue_decisions").set(number(backlog.entries));
        metrics::gauge!("authority_recorder_queue_age_seconds").set(backlog.age.as_secs_f64());
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
