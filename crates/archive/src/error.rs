//! Why a month cannot be archived, or an archive cannot be read.

use authority_process::worker;
use authority_store as store;
use tokio::task::JoinError;

use crate::{bucket, format};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Bucket(bucket::Error),
    #[error(transparent)]
    Format(#[from] format::Error),
    #[error(transparent)]
    Evidence(#[from] authority_evidence::Error),
    #[error("decisions cannot be read with their evidence: {0}")]
    Source(worker::Error),
    /// An object differs from the written one.
    #[error("`{0}` of the archive is damaged: {1}")]
    Damaged(String, String),
    /// `archive.url` was changed after this month was archived, or its objects were lost.
    #[error(
        "`{0}` is not in the archive that `archive.url` names: if it was changed, copy the old archive there or set it back"
    )]
    Elsewhere(String),
    /// An archived decision of this month was requested.
    #[error(
        "the decisions of {0} are archived, and this installation has no archive: set `archive.url`"
    )]
    NoArchive(String),
    /// Another database wrote the manifest, or this database did before a backup was restored.
    ///
    /// An erasure can't ensure that the manifest's archive has no data of the person.
    #[error(
        "`{0}` is in the archive, and this database did not write it: move it elsewhere, or delete it, and try again"
    )]
    Foreign(String),
    /// An object is being written, or was written a moment ago.
    #[error("something is still being written to `{0}` of the archive: try again in a few minutes")]
    Busy(String),
    /// Another node has taken over this month, or an erasure has ended the run.
    #[error("another node archives this month")]
    Lost,
    /// The service is stopping.
    #[error("stopped")]
    Stopped,
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Whether the error concerns only one month. Other months can then still be archived.
    pub(crate) fn is_of_one(&self) -> bool {
        match self {
            Self::Format(_)
            | Self::Evidence(_)
            | Self::Source(_)
            | Self::Damaged(..)
            | Self::Elsewhere(_)
            | Self::Foreign(_)
            | Self::Busy(_)
            | Self::Lost => true,
            Self::Store(_)
            | Self::Bucket(_)
            | Self::NoArchive(_)
            | Self::Stopped
            | Self::Internal(_) => false,
        }
    }
}

impl From<bucket::Error> for Error {
    fn from(error: bucket::Error) -> Self {
        match error {
            bucket::Error::Unfit(name, why) => Self::Damaged(name, why),
            error => Self::Bucket(error),
        }
    }
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}
