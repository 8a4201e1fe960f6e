//! What was asked, in normal form: the record's request, with the context whose digest the record has.

use authority_model::proto::runtime::GetDecisionResponse;
use serde_json::{Map, Value};

/// A decision's question.
pub(super) struct Question {
    pub(super) members: Map<String, Value>,
    /// Why there is no context.
    pub(super) without: Option<&'static str>,
}

impl Question {
    /// Of a decision that was read with its context, if the person `reads` contexts.
    pub(super) fn of(decision: &GetDecisionResponse, reads: bool) -> Self {
        let request = decision.record.as_ref().and_then(|record| record.0.get("request"));
        let mut members = request.and_then(Value::as_object).cloned().unwrap_or_default();
        // How the answer was to be given is no part of what was asked; the record has it.
        members.remove("explain");
        let context = decision.context.as_ref().and_then(|context| context.value.as_ref());
        let without = match context {
            Some(context) => {
                members.remove("context_digest");
                members.insert("context".to_owned(), Value::Object(context.0.clone()));
                None
            }
            None if reads => Some("The context was erased. The record has its digest."),
            None => Some("Your role does not read contexts. The record has its digest."),
        };
        Self { members, without }
    }
}
