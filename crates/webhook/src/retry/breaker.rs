//! A circuit breaker: an endpoint that keeps failing gets one probe at a time.
//!
//! Each function returns the state that follows. The caller stores it, in the endpoint's row under its lock.
//! A delivery that is not admitted waits, and spends no attempt.

use chrono::{DateTime, TimeDelta, Utc};

/// Failures in a row that open the breaker.
pub const FAILURES_TO_OPEN: u32 = 5;
/// From opening to the first probe; doubled by each probe that fails.
pub const COOLDOWN: TimeDelta = TimeDelta::seconds(10);
pub const LONGEST_COOLDOWN: TimeDelta = TimeDelta::minutes(10);
/// A probe without a result after this time counts as lost, like the lease of its delivery.
pub const PROBE_LEASE: TimeDelta = TimeDelta::seconds(60);

/// The state of one endpoint's breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Attempts go out; the last `failures` of them failed.
    Closed { failures: u32 },
    /// No attempt goes out before `probe_at`; `failed_probes` in a row have failed.
    Open { failed_probes: u32, probe_at: DateTime<Utc> },
    /// One attempt is in flight; without a result, another may start at `until`.
    Probing { failed_probes: u32, until: DateTime<Utc> },
}

/// Whether an attempt may go out now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Like any other.
    Admitted,
    /// As the probe: no other attempt starts until its result is recorded or its lease ends.
    Probe,
    /// Not before this time.
    WaitUntil(DateTime<Utc>),
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// Asks to send one attempt at `now`.
    pub fn admit(self, now: DateTime<Utc>) -> (Self, Admission) {
        match self {
            Self::Closed { .. } => (self, Admission::Admitted),
            Self::Open { probe_at: at, failed_probes }
            | Self::Probing { until: at, failed_probes } => {
                if now < at {
                    return (self, Admission::WaitUntil(at));
                }
                (Self::Probing { failed_probes, until: now + PROBE_LEASE }, Admission::Probe)
            }
        }
    }

    /// Records how an attempt ended at `now`. Any success closes the breaker, also that of an attempt
    /// which was out before it opened. A failure of such an attempt does not put off the next probe; while a
    /// probe is out, it counts as the probe's.
    #[must_use]
    pub fn record(self, succeeded: bool, now: DateTime<Utc>) -> Self {
        if succeeded {
            return Self::default();
        }
        match self {
            Self::Closed { failures } if failures + 1 < FAILURES_TO_OPEN => {
                Self::Closed { failures: failures + 1 }
            }
            Self::Closed { .. } => Self::Open { failed_probes: 0, probe_at: now + cooldown(0) },
            Self::Open { .. } => self,
            Self::Probing { failed_probes, .. } => {
                let failed_probes = failed_probes.saturating_add(1);
                Self::Open { failed_probes, probe_at: now + cooldown(failed_probes) }
            }
        }
    }
}

fn cooldown(failed_probes: u32) -> TimeDelta {
    let doubled = 2_i32.checked_pow(failed_probes).and_then(|power| COOLDOWN.checked_mul(power));
    doubled.map_or(LONGEST_COOLDOWN, |span| span.min(LONGEST_COOLDOWN))
}
