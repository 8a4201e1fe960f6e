//! The criteria by which `script/bench` judges an overloaded service.

#[path = "../../../benches/load/goal.rs"]
mod judged;

use judged::{impolite, shortfall};

#[test]
fn four_fifths_of_the_goodput_must_remain() {
    for (capacity, goodput, is_met) in [
        (10_000.0, 10_000.0, true),
        (10_000.0, 8_000.0, true),
        (10_000.0, 7_999.0, false),
        (10_000.0, 0.0, false),
        // Without a capacity, the share of it is not a number.
        (0.0, 0.0, false),
        (0.0, 5_000.0, false),
        (f64::NAN, 5_000.0, false),
        (10_000.0, f64::NAN, false),
    ] {
        assert_eq!(
            shortfall("640 in flight", capacity, goodput).is_none(),
            is_met,
            "{goodput} of {capacity}"
        );
    }
    let told = shortfall("640 in flight", 10_000.0, 7_900.0).unwrap();
    assert_eq!(
        told,
        "overload: 640 in flight leave 7900 of 10000 decisions a second; the goal is 80 %"
    );
}

#[test]
fn the_polite_tenant_is_never_refused() {
    assert_eq!(impolite("640 in flight", 0), None);
    assert!(impolite("640 in flight", 1).is_some());
}
