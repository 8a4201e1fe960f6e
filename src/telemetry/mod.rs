//! Logs and metrics: set up once, used everywhere through `tracing` and `metrics`.
//!
//! Logs go to standard error, so that standard output has only a command's output. A secret is never
//! logged: it is a `config::Secret`, which prints as `***`.

mod families;
mod metrics;
mod process;

use std::io::{self, IsTerminal};

use tracing::Metadata;
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use authority_core::config::{LogFormat, Logs};

pub use metrics::Metrics;

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
