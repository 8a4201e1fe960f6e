//! In place of `nats.rs` in a build without the feature `nats`.

use std::path::PathBuf;

use bytes::Bytes;

/// The address of NATS. A service with such settings does not start in this build.
#[derive(Clone, Debug)]
pub struct NatsSettings;

impl NatsSettings {
    /// # Errors
    /// Never.
    pub fn new(_: String, _: Option<PathBuf>) -> Result<Self, String> {
        Ok(Self)
    }
}

pub struct Nats;

/// Why a message was not stored.
#[derive(Debug, thiserror::Error)]
#[error("this build has no NATS: build it with the feature `nats`")]
pub(super) struct Error;

impl Error {
    pub(super) fn shown(&self) -> String {
        self.to_string()
    }
}

impl Nats {
    pub fn new(_: Option<NatsSettings>) -> Self {
        Self
    }

    pub(super) async fn publish(&self, _: &str, _: &str, _: &Bytes) -> Result<(), Error> {
        Err(Error)
    }

    pub(super) fn is_configured(&self) -> bool {
        false
    }

    pub(super) async fn last(&self, _: &str) -> Result<Option<Bytes>, Error> {
        Err(Error)
    }
}
