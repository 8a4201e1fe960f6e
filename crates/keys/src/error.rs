//! Errors of keys.

use authority_store as store;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Crypto(#[from] authority_crypto::Error),
    #[error("the key ring is unusable: {0}")]
    RingFile(String),
    #[error("`push.key_file`, the key of Web Push, is unusable: {0}")]
    PushKeyFile(String),
    #[error("no key has the kid `{0}`")]
    UnknownKid(String),
    #[error("no active key signs for `{0}`")]
    NoSigner(&'static str),
    #[error("another key has the kid `{0}`; try again")]
    KidTaken(String),
    #[error("no key has the kid `{0}`, or it is already revoked")]
    NotFoundOrRevoked(String),
    #[error("no key has the kid `{0}`")]
    NoSuchKey(String),
    #[error("the key `{kid}` is {status}; only an active key can be rotated")]
    NotActive { kid: String, status: String },
    #[error("the key `{kid}` is already part of the rotation `{id}`")]
    RotationOpen { kid: String, id: String },
    #[error("no rotation `{0}`")]
    UnknownRotation(String),
    #[error("the rotation `{id}` is {state} and can no longer change")]
    RotationEnded { id: String, state: String },
    #[error("these keys are not stored")]
    Ephemeral,
    #[error(transparent)]
    Store(#[from] store::Error),
}
