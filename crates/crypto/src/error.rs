//! Errors of keys, signatures and encryption.

/// Errors of this crate. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the key ring is unusable: {0}")]
    Ring(String),
    #[error(
        "sealed bytes name the key-encryption key `{0}`, which the key ring lacks; add it to the \
         ring (after the current one)"
    )]
    UnknownRingKey(String),
    #[error(
        "the sealed bytes cannot be decrypted: they were altered, moved, or sealed under another key ring"
    )]
    Sealed,
    #[error("a key could not be generated")]
    Generation,
    #[error("a key cannot be read: {0}")]
    BadKey(&'static str),
    #[error("the signature does not fit the key and the bytes")]
    BadSignature,
    #[error("the operating system provides no randomness")]
    Random,
}
