//! Errors of the evidence service, and their form in the API.

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency,
};
use authority_evidence as evidence;
use authority_graph as graph;
use authority_keys as keys;
use authority_ledger::stored_packs::Altered;
use authority_process::compute;
use authority_store as store;

/// Errors of the evidence service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no {0} `{1}`")]
    NotFound(&'static str, String),
    #[error("decision `{0}` is not sealed")]
    NotSealed(String),
    #[error(
        "decision `{0}` is not sealed yet, and has no evidence: seal it by \
         POST /v1/evidence/seal with its `decision_id`, or let the tenant's `auto_seal` do so"
    )]
    NoEvidenceYet(String),
    /// A bundle was requested, but a part of the decision's input was erased.
    #[error("{}", ErrorCode::DecisionErased.sentence())]
    Erased,
    #[error("`{0}` {1}")]
    Field(&'static str, String),
    #[error("the stored data cannot be read: {0}")]
    Unreadable(String),
    #[error("the log of {0} cannot be continued: {1}")]
    Log(String, String),
    #[error("sealing failed: the data folder cannot be written: {0}")]
    NoRoom(String),
    #[error("the checkpoints of {0} that left the service cannot be read: {1}")]
    WitnessUnavailable(String, String),
    #[error(transparent)]
    Altered(#[from] Altered),
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
    #[error(transparent)]
    Idempotency(#[from] idempotency::Error),
    #[error(transparent)]
    Archive(#[from] authority_archive::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Compute(#[from] compute::Error),
    #[error(transparent)]
    Graph(#[from] graph::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(kind, id) => Self::not_found(kind, &id),
            Error::NotSealed(_) => Self::new(ErrorCode::DecisionNotSealed, error.to_string()),
            // The API contract specifies 404 for this error.
            Error::NoEvidenceYet(_) => Self::new(ErrorCode::NotFound, error.to_string()),
            Error::Erased => Self::plain(ErrorCode::DecisionErased),
            Error::Field(field, problem) => Self::field(field, problem),
            Error::Altered(error) => error.into(),
            Error::Evidence(error) => error.into(),
            Error::Idempotency(error) => error.into(),
            Error::Archive(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Compute(error) => error.into(),
            Error::Graph(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::NoRoom(_) => Self::new(
                ErrorCode::Unavailable,
                "the decision was not sealed: the service cannot write its data folder; retry once \
                 `/health/ready` has no fault of `data_folder`",
            ),
            // The sealer has already logged the reason.
            Error::WitnessUnavailable(..) => Self::plain(ErrorCode::Unavailable),
            Error::Unreadable(_) | Error::Log(..) => {
                tracing::error!(%error, "failed to read a stored pack or log");
                Self::plain(ErrorCode::Internal)
            }
        }
    }
}
