//! Metrics in Prometheus' text format.

use std::{convert::Infallible, sync::OnceLock, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::{Error, families, process};
use authority_core::{clock::Clock, worker::Worker};

/// Buckets in seconds: from a decision in memory to the longest timeout.
const SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
/// The same for calls, of which there are several hundred combinations of labels.
const REQUEST: &[f64] =
    &[0.001, 0.002_5, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// How often the metrics recorder does its upkeep.
const UPKEEP: Duration = Duration::from_secs(5);
/// Buckets of counts: of a batch, of a queue.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Collects what `metrics::counter!` and the like report. Names end in their unit: `_seconds`,
/// `_total`, `_size`.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    /// The start of the process as Unix time, in seconds.
    started: f64,
}

impl Metrics {
    /// Installs the recorder of this process.
    pub fn install() -> Result<Self, Error> {
        static INSTALLED: OnceLock<Metrics> = OnceLock::new();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full("authority_request_seconds".to_owned()), REQUEST)?
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
            .set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), COUNTS)?
            .build_recorder();
        let installed = INSTALLED.get_or_init(|| {
            let handle = recorder.handle();
            // Fails only if another recorder is installed: ours then stays empty.
            let _ = ::metrics::set_global_recorder(recorder);
            families::describe();
            let started = Clock::default().now().timestamp_micros();
            Self { handle, started: seconds(started) }
        });
        Ok(installed.clone())
    }

    /// Prometheus' text format.
    pub fn render(&self) -> String {
        format!("{}{}", self.handle.render(), process::render(self.started))
    }

    /// Runs the recorder's upkeep, so that memory stays bounded even if nobody reads `/metrics`.
    pub fn upkeep(&self) -> Worker {
        let metrics = self.clone();
        Worker::periodic("metrics", UPKEEP, move || {
            metrics.handle.run_upkeep();
            async { Ok::<_, Infallible>(()) }
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^52")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}
