//! Logs and metrics: set up once, used everywhere through `tracing` and `metrics`.
//!
//! Logs go to standard error, so that standard output has only a command's output. A secret is never
//! logged: it is a `config::Secret`, which prints as `***`.

use std::{
    convert::Infallible,
    io::{self, IsTerminal},
    sync::OnceLock,
    time::Duration,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Metadata;
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use authority_core::{
    config::{LogFormat, Logs},
    worker::Worker,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not a log filter; write it as `info` or `authority_runtime=debug,warn`")]
    Filter(String),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}

/// Starts logging. `RUST_LOG` overrides the setting, which overrides `otherwise`. A second call changes
/// nothing, since tests start many services in one process.
pub fn log(logs: &Logs, otherwise: &str) -> Result<(), Error> {
    let filter = if let Ok(filter) = EnvFilter::try_from_default_env() {
        filter
    } else {
        let filter = logs.filter.as_deref().unwrap_or(otherwise);
        EnvFilter::try_new(filter).map_err(|_| Error::Filter(filter.to_owned()))?
    };
    let terminal = io::stderr().is_terminal();
    let format = logs.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let registry = tracing_subscriber::registry().with(filter).with(filter_fn(names_no_values));
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(terminal);
    // Fails only if logging was started before.
    let _ = match format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => {
            registry.with(lines.json().flatten_event(true).with_current_span(true)).try_init()
        }
    };
    Ok(())
}

/// `tokio_postgres` logs each statement with its parameters, which are contexts, addresses and records:
/// at no level, whatever the filter says.
fn names_no_values(about: &Metadata<'_>) -> bool {
    !about.target().starts_with("tokio_postgres")
}

/// Buckets in seconds: from a decision in memory to the longest timeout.
const SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
/// How often the metrics recorder does its upkeep.
const UPKEEP: Duration = Duration::from_secs(5);
/// Buckets of counts: of a batch, of a queue.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Collects what `metrics::counter!` and the like report. Names end in their unit: `_seconds`,
/// `_total`, `_size`.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder of this process.
    pub fn install() -> Result<Self, Error> {
        static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
        if let Some(handle) = INSTALLED.get() {
            return Ok(Self(handle.clone()));
        }
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
            .set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), COUNTS)?
            .build_recorder();
        let handle = INSTALLED.get_or_init(|| {
            let handle = recorder.handle();
            // Fails only if another recorder is installed: ours then stays empty.
            let _ = metrics::set_global_recorder(recorder);
            handle
        });
        Ok(Self(handle.clone()))
    }

    /// Prometheus' text format.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Runs the recorder's upkeep, so that memory stays bounded even if nobody reads `/metrics`.
    pub fn upkeep(&self) -> Worker {
        let metrics = self.clone();
        Worker::periodic("metrics", UPKEEP, move || {
            metrics.0.run_upkeep();
            async { Ok::<_, Infallible>(()) }
        })
    }
}
