//! The breaker as a state machine.

use chrono::TimeDelta;
use proptest::prelude::*;

use super::at;
use crate::retry::{Admission, Breaker, COOLDOWN, FAILURES_TO_OPEN, LONGEST_COOLDOWN, PROBE_LEASE};

fn opened() -> Breaker {
    (0..FAILURES_TO_OPEN).fold(Breaker::default(), |breaker, _| breaker.record(false, at(0)))
}

#[test]
fn the_fifth_failure_in_a_row_opens_it() {
    let four = (0..4).fold(Breaker::default(), |breaker, _| breaker.record(false, at(0)));
    assert_eq!(four.admit(at(0)).1, Admission::Admitted);
    assert_eq!(four.record(true, at(0)), Breaker::default());
    assert_eq!(opened(), Breaker::Open { failed_probes: 0, probe_at: at(10) });
    assert_eq!(four.record(false, at(0)), opened());
}

#[test]
fn one_probe_at_a_time() {
    let open = opened();
    assert_eq!(open.admit(at(9)), (open, Admission::WaitUntil(at(10))));
    let (probing, admission) = open.admit(at(10));
    assert_eq!(admission, Admission::Probe);
    assert_eq!(probing.admit(at(11)), (probing, Admission::WaitUntil(at(70))));
    // The probe's lease has ended without a result: another probe is admitted.
    assert_eq!(probing.admit(at(10) + PROBE_LEASE).1, Admission::Probe);
    assert_eq!(probing.record(true, at(11)), Breaker::default());
    let again = Breaker::Open { failed_probes: 1, probe_at: at(12) + COOLDOWN * 2 };
    assert_eq!(probing.record(false, at(12)), again);
}

#[test]
fn attempts_that_were_out_before_it_opened_do_not_put_off_the_probe() {
    assert_eq!(opened().record(false, at(5)), opened());
    assert_eq!(opened().record(true, at(5)), Breaker::default());
}

#[test]
fn cooldowns_double_up_to_a_bound() {
    let mut breaker = opened();
    let mut waits = Vec::new();
    for _ in 0..40 {
        let Breaker::Open { probe_at, .. } = breaker else { panic!("{breaker:?}") };
        let (probing, _) = breaker.admit(probe_at);
        breaker = probing.record(false, probe_at);
        let Breaker::Open { probe_at: next, .. } = breaker else { panic!("{breaker:?}") };
        waits.push((next - probe_at).num_seconds());
    }
    assert_eq!(waits[..7], [20, 40, 80, 160, 320, 600, 600]);
    assert!(waits[6..].iter().all(|wait| *wait == LONGEST_COOLDOWN.num_seconds()));
}

proptest! {
    /// Checks that two probes never run within one lease while the breaker is not closed, and that
    /// the breaker always returns a time at which it admits an attempt.
    #[test]
    fn probes_never_overlap(steps in prop::collection::vec((0_i64..200, 0_u8..3), 0..200)) {
        let (mut breaker, mut now, mut probe) = (Breaker::default(), at(0), None);
        for (seconds, step) in steps {
            now += TimeDelta::seconds(seconds);
            if step < 2 {
                breaker = breaker.record(step == 0, now);
                probe = None;
                continue;
            }
            let (next, admission) = breaker.admit(now);
            breaker = next;
            match admission {
                Admission::Admitted => {
                    let closed = matches!(breaker, Breaker::Closed { .. });
                    prop_assert!(closed);
                },
                Admission::Probe => {
                    prop_assert!(probe.is_none_or(|at| now - at >= PROBE_LEASE));
                    probe = Some(now);
                }
                Admission::WaitUntil(at) => {
                    prop_assert!(at > now && at - now <= LONGEST_COOLDOWN);
                    prop_assert_eq!(breaker.admit(at).1, Admission::Probe);
                }
            }
        }
    }
}
