//! A clock that counts the sleep of the machine, which `Instant` does not.

use std::{pin::pin, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::timeout;

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
/// Counts the sleep on macOS.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// How often the clock is read during a wait: timers do not count the sleep.
const LOOK: Duration = Duration::from_secs(1);

/// A moment of this clock, which never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        // The time since the start of the machine is never negative.
        Self(Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// Waits for a future until `limit` has passed since a moment; `None` if it is not ready then.
pub(crate) async fn within<F: Future>(
    limit: Duration,
    since: Moment,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        let left = limit.saturating_sub(since.elapsed());
        if let Ok(output) = timeout(left.min(LOOK), future.as_mut()).await {
            return Some(output);
        }
        if since.elapsed() >= limit {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use super::*;

    #[tokio::test]
    async fn a_wait_ends_after_its_limit() {
        let since = Moment::now();
        let limit = Duration::from_millis(20);
        assert_eq!(within(limit, since, future::pending::<()>()).await, None);
        assert!(since.elapsed() >= limit);
        assert_eq!(within(limit, Moment::now(), async { 1 }).await, Some(1));
    }
}
