//! How much the fault tests do, and the figures that they print: `script/faults` makes them do more.

/// How many times as much as in the test suite: `AUTHORITY_FAULTS`.
///
/// # Panics
/// It is no whole number above 0.
#[expect(clippy::disallowed_methods, reason = "of these tests alone")]
pub(super) fn times() -> usize {
    let times = std::env::var("AUTHORITY_FAULTS").map_or(1, |text| text.parse().unwrap());
    assert!(times > 0, "AUTHORITY_FAULTS is 0");
    times
}

/// A line of the table that `script/faults` prints: what was done, and what was lost or wrong.
pub(super) fn figure(done: &str, lost: &str) {
    println!("figure | {done} | {lost} |");
}
