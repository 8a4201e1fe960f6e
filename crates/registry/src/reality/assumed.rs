//! What a check says of itself: whose result it is, and what it assumes.

use authority_decision::reality::Assumption;
use authority_model::proto::reality::CouplingCheck;
use serde_json::Value;

/// `result_source` of what was only reported.
pub(super) const REPORTED: &str = "reported";
/// `result_source` of what the engine found.
pub(super) const ENGINE: &str = "engine";

/// What is assumed, as the engine reads it. Others are refused when the check is written.
pub(super) fn assumptions(check: &CouplingCheck) -> Vec<Assumption> {
    let each = check.assumptions.iter();
    each.filter_map(|object| serde_json::from_value(Value::Object(object.0.clone())).ok()).collect()
}
