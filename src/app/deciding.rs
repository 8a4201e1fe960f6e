//! The methods that decide and record.

/// The methods that make a single decision.
pub(super) const ONE_QUESTION: [&str; 4] = [
    "/authority.runtime.v1.RuntimeService/Evaluate",
    "/authority.runtime.v1.RuntimeService/Authorize",
    "/authority.runtime.v1.DecisionService/EvaluateDecision",
    "/authority.runtime.v1.HookService/DecideHook",
];

/// The method that makes many decisions.
const BATCH: &str = "/authority.runtime.v1.RuntimeService/BatchEvaluate";

/// Whether a method decides and records.
pub(super) fn decides(rpc: &str) -> bool {
    ONE_QUESTION.contains(&rpc) || rpc == BATCH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn each_method_that_decides_is_known_over_rest_as_well() {
        for rpc in ONE_QUESTION.into_iter().chain([BATCH]) {
            assert!(ROUTES.iter().any(|route| route.rpc == rpc), "{rpc}");
        }
    }
}
