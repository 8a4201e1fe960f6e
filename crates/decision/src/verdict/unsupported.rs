//! Denies a request with an obligation that its caller does not support.
//!
//! The denial also replaces a hold: an approval could not change it.

use crate::{
    authority::{
        case::Case,
        trace_step::{Outcome, TraceStep},
    },
    reason::Reason,
    request::obligations::is_supported,
    rules::combined::Rules,
};

/// Returns the obligations of the rules that the caller does not support, in their order.
///
/// Empty if the request does not declare the obligations that its caller supports.
pub(crate) fn obligations<'a>(
    case: &Case<'a>,
    rules: &'a Rules<'a>,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let declared = case.request.supported_obligations.as_deref();
    let unmet = declared.map(|supported| {
        rules.obligations.iter().copied().filter(move |name| !is_supported(supported, name))
    });
    unmet.into_iter().flatten()
}

/// Returns the steps to show with `explain`, one for each obligation.
pub(crate) fn steps(case: &Case<'_>, rules: &Rules<'_>) -> Vec<TraceStep> {
    let mut steps: Vec<TraceStep> = Vec::new();
    for name in obligations(case, rules) {
        if steps.iter().all(|step| step.id != name) {
            let detail = "is not in `supported_obligations`".to_owned();
            let reason = Some(Reason::ObligationUnsupported);
            steps.push(TraceStep::new("obligation", name, Outcome::Refuse, reason, detail));
        }
    }
    steps
}
