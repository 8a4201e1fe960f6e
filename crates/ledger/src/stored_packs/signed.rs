//! Finds checkpoints that this service signed.

use std::collections::HashMap;

use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};

use authority_keys::Keys;

/// The checkpoints of notes. Many packs share a checkpoint, and its signature is verified once.
pub(super) struct Signed<'k> {
    keys: &'k Keys,
    known: HashMap<String, Option<Checkpoint>>,
}

impl<'k> Signed<'k> {
    pub(super) fn by(keys: &'k Keys) -> Self {
        Self { keys, known: HashMap::new() }
    }

    /// Returns the note's checkpoint, if a key of this service signed it.
    pub(super) fn checkpoint(&mut self, note: &str) -> Option<Checkpoint> {
        if let Some(known) = self.known.get(note) {
            return known.clone();
        }
        let signed = SignedCheckpoint::parse(note).ok();
        let ours = signed.filter(|signed| self.keys.log_key(signed).is_some());
        let checkpoint = ours.map(|signed| signed.checkpoint);
        self.known.insert(note.to_owned(), checkpoint.clone());
        checkpoint
    }
}
