//! Errors of building the service.

use authority_keys as keys;
use authority_store as store;
use authority_webhook::destination::RuleError;

use super::database::Error as DatabaseError;

/// Errors of building the service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error("the identity provider cannot be used: {0}")]
    Identity(String),
    #[error("the console cannot be set up: {0}")]
    Console(String),
    #[error("`programme.issuers`: {0}")]
    Issuers(String),
    #[error("`webhooks.allow_cidrs`: {0}")]
    Webhooks(#[from] RuleError),
    #[error("the compute threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
    #[error("`webhooks.ca_file`: {0}")]
    Roots(String),
    #[error("`nats.credentials`: {0}")]
    Nats(String),
    #[error("{0}")]
    Mail(String),
    #[error("`archive.url`: {0}")]
    Archive(String),
    #[error("`metrics.endpoint` cannot be used: {0}")]
    Metrics(String),
    /// A setting that needs a feature missing in this build.
    #[error("`{0}` needs the feature `{1}`, which this build was made without")]
    Feature(&'static str, &'static str),
    #[error("TLS for webhooks cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the reflection service cannot be built: {0}")]
    Reflection(String),
}
