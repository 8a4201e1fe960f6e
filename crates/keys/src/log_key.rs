//! Finds the key of this service that signed a checkpoint of a log.

use authority_crypto::verify_ed25519;
use authority_evidence::log::note::{LogKey, SignedCheckpoint};

use super::{Keys, Purpose};

impl Keys {
    /// Returns the key that signed the note, if it is a key of this service.
    ///
    /// Retired and revoked keys are included.
    pub fn log_key(&self, note: &SignedCheckpoint) -> Option<LogKey> {
        let ours = self.ed25519_of(Purpose::Log).into_iter();
        let mut ours =
            ours.map(|public_key| LogKey { origin: note.checkpoint.origin.clone(), public_key });
        ours.find(|key| {
            key.id() == note.key_id
                && verify_ed25519(&key.public_key, note.body.as_bytes(), &note.signature)
        })
    }
}
