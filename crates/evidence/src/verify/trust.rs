//! The keys that a verifier trusts, and how far a file can be verified with them.

use std::collections::HashMap;

use crate::log::note::LogKey;

/// Ed25519 public keys (base64url) by kid.
pub type KeySet = HashMap<String, String>;

/// The keys that the verifier trusts. They must not come from the verified file.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    pub keys: Option<KeySet>,
    /// The log's key. If it is `None`, the keys in `keys` with the purpose `log` are trusted for
    /// the log.
    pub log_key: Option<LogKey>,
}

/// The keys for a checkpoint's signature.
#[derive(Clone, Copy)]
pub(super) enum LogTrust<'a> {
    /// No log key is known.
    Unknown,
    Key(&'a LogKey),
    /// Any of these keys, for any origin of the log.
    AnyOf(&'a [[u8; 32]]),
}

impl Trust {
    pub(super) fn log<'a>(&'a self, published: &'a [[u8; 32]]) -> LogTrust<'a> {
        match (&self.log_key, published) {
            (Some(key), _) => LogTrust::Key(key),
            (None, []) => LogTrust::Unknown,
            (None, keys) => LogTrust::AnyOf(keys),
        }
    }
}

/// The extent to which a valid file was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Valid {
    /// Every signature is by a trusted key.
    Trusted,
    /// The checkpoint's signature was not checked, because no log key is trusted.
    CheckpointUnchecked,
    /// The checkpoint's signature was checked only with the log key in the file itself.
    LogNotPinned,
    /// The signatures were checked only with the key in the file itself. The text is the key's RFC
    /// 7638 thumbprint.
    IssuerNotPinned(String),
}

impl std::fmt::Display for Valid {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trusted => to.write_str("valid"),
            Self::CheckpointUnchecked => to.write_str("valid; checkpoint signature not checked"),
            Self::LogNotPinned => to.write_str("valid; log key not pinned"),
            Self::IssuerNotPinned(print) => {
                write!(to, "consistent; issuer not pinned: {print}")
            }
        }
    }
}
