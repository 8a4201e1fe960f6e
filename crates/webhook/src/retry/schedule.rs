//! The delays between the attempts of one delivery.

use std::time::Duration;

use super::{
    policy::{RetryPolicy, RetryPolicyError, Strategy},
    retry_after::LONGEST_RETRY_AFTER,
};

/// The default seconds between attempts: ten attempts within about three days.
pub const DEFAULT_DELAYS: [u32; 9] = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400];
pub const DEFAULT_JITTER: f64 = 0.2;
/// The most attempts of a delivery, including the first.
pub const MOST_ATTEMPTS: u32 = 20;
/// The maximum time from the first attempt to the last: 7 days. It includes jitter, but not the
/// waits that receivers request.
pub const LONGEST_SPAN: Duration = Duration::from_secs(7 * 86_400);

const GREATEST_FACTOR: f64 = 10.0;

/// The delays of a checked policy; both strategies are expanded to a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    delays: Vec<u32>,
    jitter: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { delays: DEFAULT_DELAYS.to_vec(), jitter: DEFAULT_JITTER }
    }
}

impl Schedule {
    /// The number of attempts of a delivery, including the first.
    pub fn attempts(&self) -> usize {
        self.delays.len() + 1
    }

    /// The delay before the next attempt after this many failures (from 1); `None` if none is left.
    ///
    /// `random` is from 0 to 1 and determines the jitter. Jitter only adds to a delay: deliveries
    /// that failed together are not retried together, and none is retried early. `retry_after` is
    /// the wait that the receiver requested. It can lengthen the delay, by at most 24 hours, and
    /// never shortens it.
    pub fn delay(
        &self,
        failures: u32,
        random: f64,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        let index = usize::try_from(failures.checked_sub(1)?).ok()?;
        let seconds = f64::from(*self.delays.get(index)?);
        let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 1.0 };
        let own = Duration::from_secs_f64(seconds * (1.0 + self.jitter * random));
        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        Some(own.max(asked))
    }
}

impl TryFrom<&RetryPolicy> for Schedule {
    type Error = RetryPolicyError;

    fn try_from(policy: &RetryPolicy) -> Result<Self, RetryPolicyError> {
        let jitter = policy.jitter.unwrap_or(DEFAULT_JITTER);
        if !(0.0..=1.0).contains(&jitter) {
            return Err(RetryPolicyError::OutOfRange { member: "jitter", allowed: "from 0 to 1" });
        }
        let (member, delays) = match policy.strategy.unwrap_or_default() {
            Strategy::Schedule => ("schedule_seconds", listed(policy)?),
            Strategy::Exponential => ("max_attempts", exponential(policy)?),
        };
        let sum: u64 = delays.iter().copied().map(u64::from).sum();
        let longest = Duration::from_secs(sum).mul_f64(1.0 + jitter);
        if longest > LONGEST_SPAN {
            return Err(RetryPolicyError::TooLong { member, seconds: longest.as_secs() });
        }
        Ok(Self { delays, jitter })
    }
}

fn listed(policy: &RetryPolicy) -> Result<Vec<u32>, RetryPolicyError> {
    let others = [
        ("base_seconds", policy.base_seconds.is_some()),
        ("factor", policy.factor.is_some()),
        ("max_delay_seconds", policy.max_delay_seconds.is_some()),
        ("max_attempts", policy.max_attempts.is_some()),
    ];
    if let Some((member, _)) = others.into_iter().find(|(_, given)| *given) {
        return Err(RetryPolicyError::OtherStrategy { member, belongs_to: "exponential" });
    }
    let Some(delays) = policy.delays() else { return Ok(DEFAULT_DELAYS.to_vec()) };
    if delays.len() >= MOST_ATTEMPTS as usize {
        return Err(RetryPolicyError::TooManyDelays { delays: delays.len() });
    }
    if delays.contains(&0) {
        let allowed = "at least 1 second each";
        return Err(RetryPolicyError::OutOfRange { member: "schedule_seconds", allowed });
    }
    Ok(delays.to_vec())
}

fn exponential(policy: &RetryPolicy) -> Result<Vec<u32>, RetryPolicyError> {
    if policy.delays().is_some() {
        let member = "schedule_seconds";
        return Err(RetryPolicyError::OtherStrategy { member, belongs_to: "schedule" });
    }
    let base = policy.base_seconds.ok_or(RetryPolicyError::Missing("base_seconds"))?;
    let factor = policy.factor.ok_or(RetryPolicyError::Missing("factor"))?;
    let longest = policy.max_delay_seconds.ok_or(RetryPolicyError::Missing("max_delay_seconds"))?;
    let attempts = policy.max_attempts.ok_or(RetryPolicyError::Missing("max_attempts"))?;
    let refuse = |member, allowed| Err(RetryPolicyError::OutOfRange { member, allowed });
    if base == 0 {
        return refuse("base_seconds", "at least 1");
    }
    if !(1.0..=GREATEST_FACTOR).contains(&factor) {
        return refuse("factor", "from 1 to 10");
    }
    if longest < base {
        return refuse("max_delay_seconds", "at least base_seconds");
    }
    if !(1..=MOST_ATTEMPTS).contains(&attempts) {
        return refuse("max_attempts", "from 1 to 20");
    }
    let mut next = f64::from(base);
    let delays = (1..attempts).map(|_| {
        let delay = whole_seconds(next.min(f64::from(longest)));
        next *= factor;
        delay
    });
    Ok(delays.collect())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the delay is at least 1 and at most `max_delay_seconds`, a u32"
)]
fn whole_seconds(seconds: f64) -> u32 {
    seconds.round() as u32
}
