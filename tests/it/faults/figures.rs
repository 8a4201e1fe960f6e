//! The amount of work of the fault tests, and the figures that they print. `script/faults` sets a
//! larger amount.

/// Returns by how much the tests' work is multiplied, from `AUTHORITY_FAULTS`.
///
/// # Panics
/// Panics if the variable is not an integer above 0.
#[expect(clippy::disallowed_methods, reason = "only these tests read it")]
pub(super) fn times() -> usize {
    let times = std::env::var("AUTHORITY_FAULTS").map_or(1, |text| text.parse().unwrap());
    assert!(times > 0, "AUTHORITY_FAULTS is 0");
    times
}

/// Prints a line of the table of `script/faults`: the fault, and the losses or errors.
pub(super) fn figure(done: &str, lost: &str) {
    println!("figure | {done} | {lost} |");
}
