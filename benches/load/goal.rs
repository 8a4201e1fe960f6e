//! What an overloaded service must still do, for the run to succeed. The bench has no harness for tests:
//! tests/it/faults/goal.rs has them.

/// What remains of the decisions a second at capacity.
const GOODPUT: f64 = 0.8;

/// What fell short of the goal with so many calls in flight; `capacity` and `goodput` are decisions a second.
///
/// A service that answered nothing at capacity falls short, whatever it answered later.
pub(crate) fn shortfall(in_flight: usize, capacity: f64, goodput: f64) -> Option<String> {
    let is_met = capacity > 0.0 && goodput / capacity >= GOODPUT;
    (!is_met).then(|| {
        format!(
            "overload: {in_flight} in flight leave {goodput:.0} of {capacity:.0} decisions a second, and not {:.0} %",
            GOODPUT * 100.0
        )
    })
}

/// What fell short if calls of the polite tenant were refused.
pub(crate) fn impolite(in_flight: usize, refused: u64) -> Option<String> {
    (refused > 0).then(|| {
        format!("overload: beside {in_flight} in flight, {refused} calls of the polite tenant were refused")
    })
}
