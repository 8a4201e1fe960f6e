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
        found.ok_or_else(|| Status::not_found(t::NO_SUCH_PAGE))
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
            Self::Rotate => t::administration::REPLACE,
            Self::Revoke => t::administration::REVOKE,
            Self::Complete => t::administration::COMPLETE,
            Self::Cancel => t::administration::CANCEL,
        }
    }

    /// `Replace the evidence key?`. The id of a replacement contains no purpose.
    pub(super) fn question(self, of: &str) -> String {
        let purpose = of.strip_prefix("svc-").and_then(|rest| rest.split('-').next());
        match (self, purpose) {
            (Self::Rotate, Some(purpose)) => t::administration::replace_question(purpose),
            (Self::Revoke, Some(purpose)) => t::administration::revoke_question(purpose),
            (Self::Rotate, None) => t::administration::REPLACE_QUESTION.to_owned(),
            (Self::Revoke, None) => t::administration::REVOKE_QUESTION.to_owned(),
            (Self::Complete, _) => t::administration::COMPLETE_QUESTION.to_owned(),
            (Self::Cancel, _) => t::administration::CANCEL_QUESTION.to_owned(),
        }
    }

    /// The description from the API's contract.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Rotate => t::administration::REPLACE_ABOUT,
            Self::Revoke => t::administration::REVOKE_ABOUT,
            Self::Complete => t::administration::COMPLETE_ABOUT,
            Self::Cancel => t::administration::CANCEL_ABOUT,
        }
    }

    pub(super) fn done(self) -> &'static str {
        match self {
            Self::Rotate => t::administration::REPLACING,
            Self::Revoke => t::administration::KEY_REVOKED,
            Self::Complete => t::administration::COMPLETED,
            Self::Cancel => t::administration::CANCELLED,
        }
    }

    pub(super) fn undone(self) -> &'static str {
        match self {
            Self::Rotate => t::administration::NOT_REPLACED,
            Self::Revoke => t::administration::NOT_REVOKED,
            Self::Complete => t::administration::NOT_COMPLETED,
            Self::Cancel => t::administration::NOT_CANCELLED,
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
