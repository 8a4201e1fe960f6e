//! What can go wrong with keys, and how it looks outside.

use crate::store;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the key ring is unusable: {0}")]
    Ring(String),
    #[error(
        "sealed bytes name the key-encryption key `{0}`, which the key ring lacks; add it to the \
         ring (after the current one)"
    )]
    UnknownRingKey(String),
    #[error("sealed bytes do not open: they were altered, moved, or sealed under another key ring")]
    Sealed,
    #[error("a key could not be made")]
    Generation,
    #[error("a key cannot be read: {0}")]
    BadKey(&'static str),
    #[error("no key has the kid `{0}`")]
    UnknownKid(String),
    #[error("the signature does not fit the key and the bytes")]
    BadSignature,
    #[error("no active key signs for `{0}`")]
    NoSigner(&'static str),
    #[error("the operating system gives no randomness")]
    Random,
    #[error("another key has the kid `{0}`; try again")]
    KidTaken(String),
    #[error("no key has the kid `{0}`, or it was revoked before")]
    NotFoundOrRevoked(String),
    #[error("no key has the kid `{0}`")]
    NoSuchKey(String),
    #[error("the key `{kid}` is {status}; only an active one is rotated")]
    NotActive { kid: String, status: String },
    #[error("the key `{kid}` is part of the rotation `{id}` already")]
    RotationOpen { kid: String, id: String },
    #[error("no rotation `{0}`")]
    UnknownRotation(String),
    #[error("the rotation `{id}` is {state} and changes no more")]
    RotationEnded { id: String, state: String },
    #[error("these keys are not stored")]
    Ephemeral,
    #[error(transparent)]
    Store(#[from] store::Error),
}
