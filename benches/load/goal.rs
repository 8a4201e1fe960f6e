//! The goals that an overloaded service must meet for the run to succeed. The bench has no test
//! harness: tests/it/faults/goal.rs tests these functions.

/// The required share of the decisions a second at capacity.
const GOODPUT: f64 = 0.8;

/// Returns a message if the goal is missed under this load. `capacity` and `goodput` are decisions
/// a second.
///
/// A service without any response at capacity misses the goal, regardless of its later responses.
pub(crate) fn shortfall(load: &str, capacity: f64, goodput: f64) -> Option<String> {
    let is_met = capacity > 0.0 && goodput / capacity >= GOODPUT;
    (!is_met).then(|| {
        format!(
            "overload: {load} leave {goodput:.0} of {capacity:.0} decisions a second; the goal is {:.0} %",
            GOODPUT * 100.0
        )
    })
}

/// Returns a message if calls of the polite tenant were refused.
pub(crate) fn impolite(load: &str, refused: u64) -> Option<String> {
    (refused > 0).then(|| {
        format!("overload: with {load}, {refused} calls of the polite tenant were refused")
    })
}
