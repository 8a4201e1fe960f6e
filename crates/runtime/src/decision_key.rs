//! The idempotency key of a decision.

use super::{decided::Decided, recorder::Keyed};
use authority_api::idempotency::IdempotencyKey;

/// The key of a decision, and the function that encodes its operation's response.
pub(super) struct DecisionKey {
    pub(super) key: IdempotencyKey,
    pub(super) answer: fn(&Decided) -> Vec<u8>,
}

impl DecisionKey {
    /// Adds the operation's response. It is encoded once the approval request, if any, is known.
    pub(super) fn keyed(&self, decided: &Decided) -> Keyed {
        let (decided, answer) = (decided.clone(), self.answer);
        Keyed {
            key: self.key.clone(),
            answer: Box::new(move |approval_id| {
                let approval_id = approval_id.cloned();
                answer(&Decided { approval_id, ..decided.clone() })
            }),
        }
    }
}
