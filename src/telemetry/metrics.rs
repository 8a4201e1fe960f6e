//! The metrics of this process.

use std::sync::OnceLock;

use super::{families, process, recorder::Recorder};
use authority_process::clock::Clock;

/// The values reported to the macros of `metrics`, such as `metrics::counter!`. Names end in their
/// unit: `_seconds`, `_total`, `_size`.
#[derive(Clone)]
pub struct Metrics {
    recorder: Recorder,
    /// The start of the process as Unix time, in seconds.
    started: f64,
}

impl Metrics {
    /// Installs the recorder of this process.
    pub fn install() -> Self {
        static INSTALLED: OnceLock<Metrics> = OnceLock::new();
        let installed = INSTALLED.get_or_init(|| {
            let recorder = Recorder::default();
            // Fails only if another recorder is installed. Ours then stays empty.
            let _ = ::metrics::set_global_recorder(recorder.clone());
            families::begin();
            let started = Clock::default().now().timestamp_micros();
            Self { recorder, started: seconds(started) }
        });
        installed.clone()
    }

    /// Renders the metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        format!("{}{}", self.recorder.render(), process::render(self.started))
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^52")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}
