//! The steps of a signing key's replacement, and its revocation, with a description of each.

use crate::kit::prelude::*;

/// A step that a person can take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOperation {
    Rotate,
    Revoke,
    Complete,
    Cancel,
}

impl KeyOperation {
    const ALL: [Self; 4] = [Self::Rotate, Self::Revoke, Self::Complete, Self::Cancel];

    pub(super) fn parse(word: &str) -> Result<Self, Status> {
        let found = Self::ALL.into_iter().find(|step| step.word() == word);
        found.ok_or_else(|| Status::not_found("there is no such page"))
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Rotate => "rotate",
            Self::Revoke => "revoke",
            Self::Complete => "complete",
            Self::Cancel => "cancel",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Rotate => "Replace it",
            Self::Revoke => "Revoke it",
            Self::Complete => "Complete the replacement",
            Self::Cancel => "Cancel the replacement",
        }
    }

    /// `Replace the evidence key?`. The id of a replacement contains no purpose.
    pub(super) fn question(self, of: &str) -> String {
        let purpose = of.strip_prefix("svc-").and_then(|rest| rest.split('-').next());
        match (self, purpose) {
            (Self::Rotate, Some(purpose)) => format!("Replace the {purpose} key?"),
            (Self::Revoke, Some(purpose)) => format!("Revoke the {purpose} key?"),
            _ => format!("{}?", self.label()),
        }
    }

    /// The description from the API's contract.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Rotate => {
                "A successor is made and published now. It signs an hour later, or as soon as you complete the \
                 replacement; until then the key signs."
            }
            Self::Revoke => {
                "The key stops signing at once; the successor of a key that the service manages signs from then on. \
                 What it signed before stays valid. This cannot be undone."
            }
            Self::Complete => {
                "The successor signs from now on, on other nodes within 30 seconds, and the key signs no longer. What \
                 it signed before stays valid. Receivers that keep a copy of the published keys must have fetched them \
                 since the replacement began, or else they cannot verify what the successor signs."
            }
            Self::Cancel => "The key goes on signing. A successor that was made is revoked.",
        }
    }

    pub(super) fn done(self) -> &'static str {
        match self {
            Self::Rotate => "The replacement has begun.",
            Self::Revoke => "The key is revoked.",
            Self::Complete => "The replacement is completed: the successor signs.",
            Self::Cancel => "The replacement is cancelled.",
        }
    }

    pub(super) fn undone(self) -> &'static str {
        match self {
            Self::Rotate => "Not replaced",
            Self::Revoke => "Not revoked",
            Self::Complete => "Replacement not completed",
            Self::Cancel => "Replacement not cancelled",
        }
    }

    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Rotate => rpc::SCHEDULE_KEY_ROTATION,
            Self::Revoke => rpc::REVOKE_KEY,
            Self::Complete => rpc::COMPLETE_KEY_ROTATION,
            Self::Cancel => rpc::CANCEL_KEY_ROTATION,
        }
    }

    /// The text that a person types to confirm a step that cannot be undone: the last part of the
    /// key's id.
    pub(super) fn typed(self, kid: &str) -> Option<&str> {
        (self == Self::Revoke).then(|| kid.rsplit('-').next().unwrap_or(kid))
    }
}
