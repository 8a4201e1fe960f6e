//! Logs, traces and metrics: set up once, used everywhere through `tracing` and `metrics`.
//!
//! Logs go to standard error; standard output has only a command's output. A secret is never
//! logged: it is a `config::Secret`, which prints as `***`.

mod families;
mod json_lines;
mod lines;
mod metrics;
#[cfg_attr(not(feature = "otlp"), path = "no_metrics_export.rs")]
mod metrics_export;
mod process;
mod prometheus;
mod recorder;
mod snapshot;
#[cfg_attr(not(feature = "otlp"), path = "no_traces.rs")]
pub mod traces;

use std::{
    env,
    io::{self, IsTerminal},
};

use tracing::Metadata;
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt, Targets, filter_fn},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use authority_config::{LogFormat, Logs, Traces};

use json_lines::JsonLines;
use lines::WithRequestId;
pub use lines::{in_request, of_request};
pub use metrics::{Metrics, Quantiles};
pub use metrics_export::Exporter;
pub use recorder::Recorder;

/// The name of a request's span.
pub const REQUEST_SPAN: &str = "request";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not a log filter; write it as `info` or `authority_runtime=debug,warn`")]
    Filter(String),
    #[error("`traces.endpoint` cannot be used: {0}")]
    Traces(#[from] traces::Error),
}

/// Starts logging and, if configured, the export of traces.
///
/// Needs a Tokio runtime. `RUST_LOG` overrides the setting. If neither is set, the filter is
/// `otherwise`. A second call has no effect: tests start many services in one process.
pub fn log(logs: &Logs, traces: Option<&Traces>, otherwise: &str) -> Result<(), Error> {
    // Fails only if logging was started before.
    let _ = tracing_subscriber::registry().with(layers(logs, traces, otherwise)?).try_init();
    Ok(())
}

type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

#[expect(clippy::disallowed_methods, reason = "`RUST_LOG` is the field's variable, not a setting")]
fn layers(logs: &Logs, traces: Option<&Traces>, otherwise: &str) -> Result<Layers, Error> {
    let by_environment = env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let by_environment = by_environment.and_then(|filter| filter.parse::<Targets>().ok());
    let filter = if let Some(filter) = by_environment {
        filter
    } else {
        let filter = logs.filter.as_deref().unwrap_or(otherwise);
        filter.parse().map_err(|_| Error::Filter(filter.to_owned()))?
    };
    let terminal = io::stderr().is_terminal();
    let format = logs.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).map_event_format(WithRequestId).boxed(),
        LogFormat::Json => lines.event_format(WithRequestId(JsonLines)).boxed(),
    };
    let wanted = filter.and(filter_fn(names_no_values)).and(filter_fn(is_no_request));
    // Not `Option<Layer>`: a `None` is a layer without a filter. If any layer has no filter, every
    // span is created, even if the other layers' filters exclude it.
    let mut layers = vec![lines.with_filter(wanted).boxed()];
    if let Some(spans) = traces.map(traces::layer).transpose()?.flatten() {
        layers.push(spans.boxed());
    }
    Ok(layers)
}

/// Excludes `tokio_postgres`, at every level and with any filter: it logs each statement with its
/// parameters, which are contexts, addresses and records.
fn names_no_values(about: &Metadata<'_>) -> bool {
    !about.target().starts_with("tokio_postgres")
}

/// Excludes a request's span, which is used for traces only.
fn is_no_request(about: &Metadata<'_>) -> bool {
    !(about.is_span() && about.name() == REQUEST_SPAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A span costs more than a decision.
    #[test]
    fn without_traces_no_request_has_a_span_at_any_level() {
        let logs = Logs { filter: Some("trace".to_owned()), ..Logs::default() };
        let lines = tracing_subscriber::registry().with(layers(&logs, None, "info").unwrap());
        tracing::subscriber::with_default(lines, || {
            assert!(tracing::info_span!(REQUEST_SPAN).is_disabled());
            assert!(!tracing::info_span!("other").is_disabled());
        });
    }
}
