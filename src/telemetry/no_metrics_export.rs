//! Replaces `metrics_export.rs` in a build without the feature `otlp`.

use super::metrics::Metrics;
use authority_config::MetricsConfig;
use authority_process::worker::Worker;

#[derive(Debug, thiserror::Error)]
#[error("this build cannot send metrics: build it with the feature `otlp`")]
pub struct Error;

/// A value that no build without the feature creates.
#[derive(Clone)]
pub enum Exporter {}

impl Exporter {
    /// Returns no exporter.
    ///
    /// # Errors
    /// An endpoint is configured.
    pub fn new(config: &MetricsConfig) -> Result<Option<Self>, Error> {
        match config.endpoint.as_deref().unwrap_or_default() {
            "" => Ok(None),
            _ => Err(Error),
        }
    }

    pub fn worker(&self, _: impl Fn() -> Metrics + Send + 'static) -> Worker {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "as with the feature")]
    pub async fn send(&self, _: &Metrics) -> Result<(), Error> {
        match *self {}
    }
}
