//! The steps of a signing key's replacement, and its revocation, with the texts of each.

use crate::kit::prelude::*;

/// A step that a person can take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Rotate,
    Revoke,
    Complete,
    Cancel,
}

/// The texts of a step, and the operation that it needs.
pub(super) struct KeyOperation {
    pub(super) step: Step,
    pub(super) word: &'static str,
    pub(super) needs: &'static str,
    pub(super) label: &'static str,
    /// The description from the API's contract.
    pub(super) about: &'static str,
    pub(super) done: &'static str,
    pub(super) undone: &'static str,
}

#[rustfmt::skip] // two lines for each step
static ALL: [KeyOperation; 4] = [
    KeyOperation { step: Step::Rotate, word: "rotate", needs: rpc::SCHEDULE_KEY_ROTATION, label: t::administration::REPLACE,
        about: t::administration::REPLACE_ABOUT, done: t::administration::REPLACING, undone: t::administration::NOT_REPLACED },
    KeyOperation { step: Step::Revoke, word: "revoke", needs: rpc::REVOKE_KEY, label: t::administration::REVOKE,
        about: t::administration::REVOKE_ABOUT, done: t::administration::KEY_REVOKED, undone: t::administration::NOT_REVOKED },
    KeyOperation { step: Step::Complete, word: "complete", needs: rpc::COMPLETE_KEY_ROTATION, label: t::administration::COMPLETE,
        about: t::administration::COMPLETE_ABOUT, done: t::administration::COMPLETED, undone: t::administration::NOT_COMPLETED },
    KeyOperation { step: Step::Cancel, word: "cancel", needs: rpc::CANCEL_KEY_ROTATION, label: t::administration::CANCEL,
        about: t::administration::CANCEL_ABOUT, done: t::administration::CANCELLED, undone: t::administration::NOT_CANCELLED },
];

impl KeyOperation {
    pub(super) fn parse(word: &str) -> Result<&'static Self, Status> {
        ALL.iter().find(|operation| operation.word == word).ok_or_else(no_page)
    }

    /// `Replace the evidence key?`. The id of a replacement contains no purpose.
    pub(super) fn question(&self, of: &str) -> String {
        let purpose = of.strip_prefix("svc-").and_then(|rest| rest.split('-').next());
        match (self.step, purpose) {
            (Step::Rotate, Some(purpose)) => t::administration::replace_question(purpose),
            (Step::Revoke, Some(purpose)) => t::administration::revoke_question(purpose),
            (Step::Rotate, None) => t::administration::REPLACE_QUESTION.to_owned(),
            (Step::Revoke, None) => t::administration::REVOKE_QUESTION.to_owned(),
            (Step::Complete, _) => t::administration::COMPLETE_QUESTION.to_owned(),
            (Step::Cancel, _) => t::administration::CANCEL_QUESTION.to_owned(),
        }
    }

    /// The text that a person types to confirm a step that cannot be undone: the last part of the
    /// key's id.
    pub(super) fn typed<'k>(&self, kid: &'k str) -> Option<&'k str> {
        (self.step == Step::Revoke).then(|| kid.rsplit('-').next().unwrap_or(kid))
    }
}
