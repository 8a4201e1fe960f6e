//! The question in normal form: the record's request, with the context that matches the record's
//! digest.

use authority_model::proto::runtime::GetDecisionResponse;

use crate::kit::prelude::*;

/// A decision's question.
pub(super) struct Question {
    pub(super) members: Map<String, Value>,
    /// The reason why the context is missing.
    pub(super) without: Option<&'static str>,
}

impl Question {
    /// Returns a decision's question. `reads`: whether the person may read contexts.
    pub(super) fn of(decision: &GetDecisionResponse, reads: bool) -> Self {
        let request = decision.record.as_ref().and_then(|record| record.0.get("request"));
        let mut members = request.and_then(Value::as_object).cloned().unwrap_or_default();
        // The form of the response is not part of the question, but the record contains it.
        members.remove("explain");
        let context = decision.context.as_ref().and_then(|context| context.value.as_ref());
        let without = match context {
            Some(context) => {
                members.remove("context_digest");
                members.insert("context".to_owned(), Value::Object(context.0.clone()));
                None
            }
            None if reads => Some(t::decisions::CONTEXT_ERASED),
            None => Some(t::decisions::CONTEXT_HIDDEN),
        };
        Self { members, without }
    }
}
