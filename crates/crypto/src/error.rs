//! Errors of keys, signatures and encryption.

/// Errors of this crate. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the key ring is unusable: {0}")]
    Ring(String),
    #[error(
        "the secret is encrypted under the key `{0}`, which is not in the key ring; add it to the \
         ring (after the current key)"
    )]
    UnknownRingKey(String),
    #[error(
        "the secret cannot be decrypted: it was altered, moved, or encrypted under another key ring"
    )]
    Sealed,
    #[error("a key could not be generated")]
    Generation,
    #[error("a key cannot be read: {0}")]
    BadKey(&'static str),
    #[error("the signature is not valid for this key and these bytes")]
    BadSignature,
    #[error("the operating system did not provide random bytes")]
    Random,
}
