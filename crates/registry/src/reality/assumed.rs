//! The source of a check's result, and the check's assumptions.

use authority_decision::reality::Assumption;
use authority_model::proto::reality::CouplingCheck;
use serde_json::Value;

/// `result_source` of a reported result.
pub(super) const REPORTED: &str = "reported";
/// `result_source` of a result of the engine.
pub(super) const ENGINE: &str = "engine";

/// Returns the assumptions in the engine's form. Invalid assumptions are refused when the check is
/// written.
pub(super) fn assumptions(check: &CouplingCheck) -> Vec<Assumption> {
    let each = check.assumptions.iter();
    each.filter_map(|object| serde_json::from_value(Value::Object(object.0.clone())).ok()).collect()
}
