//! A circuit breaker: an endpoint that keeps failing gets one probe at a time.
//!
//! Each function returns the next state. The caller stores it in the endpoint's row while holding
//! the row's lock. A delivery that is not admitted waits without using up an attempt.

use chrono::{DateTime, TimeDelta, Utc};

/// Consecutive failures that open the breaker.
pub const FAILURES_TO_OPEN: u32 = 5;
/// The time from opening to the first probe; each failed probe doubles it.
pub const COOLDOWN: TimeDelta = TimeDelta::seconds(10);
pub const LONGEST_COOLDOWN: TimeDelta = TimeDelta::minutes(10);
/// The time after which a probe without a result counts as lost: the lease of its delivery.
pub const PROBE_LEASE: TimeDelta = TimeDelta::seconds(60);

/// The state of one endpoint's breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Attempts are admitted; the last `failures` of them failed.
    Closed { failures: u32 },
    /// No attempt is admitted before `probe_at`; the last `failed_probes` probes failed.
    Open { failed_probes: u32, probe_at: DateTime<Utc> },
    /// One attempt is in flight. If it has no result by `until`, another may start.
    Probing { failed_probes: u32, until: DateTime<Utc> },
}

/// Whether an attempt may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A normal attempt.
    Admitted,
    /// The probe: no other attempt starts until its result is recorded or its lease ends.
    Probe,
    /// No attempt before this time.
    WaitUntil(DateTime<Utc>),
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// The number of failures since the last success. An open breaker counts its probes.
    pub fn failures(self) -> u32 {
        match self {
            Self::Closed { failures } => failures,
            Self::Open { failed_probes, .. } | Self::Probing { failed_probes, .. } => {
                FAILURES_TO_OPEN + failed_probes
            }
        }
    }

    /// Requests admission of one attempt at `now`.
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

    /// Records the result of an attempt at `now`.
    ///
    /// Any success closes the breaker, even the success of an attempt sent before the breaker
    /// opened. A failure of such an attempt does not delay the next probe. While a probe is in
    /// flight, the failure counts as the probe's.
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
