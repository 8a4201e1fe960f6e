//! What an overloaded service must still do, for the run to succeed.

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

// The bench has no harness for tests: tests/it/faults runs these.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_of_the_goodput_must_remain() {
        for (capacity, goodput, is_met) in [
            (10_000.0, 10_000.0, true),
            (10_000.0, 8_000.0, true),
            (10_000.0, 7_999.0, false),
            (10_000.0, 0.0, false),
            // Nothing was answered: no share is a number then.
            (0.0, 0.0, false),
            (0.0, 5_000.0, false),
            (f64::NAN, 5_000.0, false),
            (10_000.0, f64::NAN, false),
        ] {
            assert_eq!(
                shortfall(640, capacity, goodput).is_none(),
                is_met,
                "{goodput} of {capacity}"
            );
        }
        let told = shortfall(640, 10_000.0, 7_900.0).unwrap();
        assert_eq!(
            told,
            "overload: 640 in flight leave 7900 of 10000 decisions a second, and not 80 %"
        );
    }

    #[test]
    fn the_polite_tenant_is_never_refused() {
        assert_eq!(impolite(640, 0), None);
        assert!(impolite(640, 1).is_some());
    }
}
