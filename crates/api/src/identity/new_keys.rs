//! API keys that another node has just created.
//!
//! A caller with a key that this node does not know yet waits for a read of the change log. All
//! such callers share the read.
//!
//! A caller with a forged id only occupies a place for waiting callers: the id is not looked up in
//! the database, and the number of reads does not depend on the number of callers. If no place is
//! free, the response is 401 at once.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until, timeout},
};

use super::directory::Directory;

/// How long a key counts as new. Because the clocks of nodes differ, the key's time may also be
/// this far in the future.
const NEW_FOR: TimeDelta = TimeDelta::seconds(10);
/// The interval of reads of the log.
const INTERVAL: Duration = Duration::from_millis(250);
/// The longest time that a caller waits.
const PATIENCE: Duration = Duration::from_millis(250);
/// The most callers that wait at a time.
const PLACES: usize = 100;

pub(super) struct NewKeys {
    places: Semaphore,
    planned: Mutex<Option<Planned>>,
}

/// The last planned read, whether or not it has started.
struct Planned {
    begins: Instant,
    done: Shared<BoxFuture<'static, ()>>,
}

impl Default for NewKeys {
    fn default() -> Self {
        Self { places: Semaphore::new(PLACES), planned: Mutex::default() }
    }
}

impl NewKeys {
    /// Whether a key with this public id may be too new to be known: the id starts with the time of
    /// its creation (RFC 9562, version 7).
    pub(super) fn is_new(public_id: &str, now: DateTime<Utc>) -> bool {
        let millis = public_id.get(..12).and_then(|time| i64::from_str_radix(time, 16).ok());
        let made = millis.and_then(DateTime::from_timestamp_millis);
        made.is_some_and(|made| (now - made).abs() < NEW_FOR)
    }

    /// Waits for a read of the log that starts after this call, if there is a place to wait.
    pub(super) async fn wait(&self, directory: &Arc<dyn Directory>) {
        let Ok(_place) = self.places.try_acquire() else { return };
        // A timeout is not an error: the caller looks the key up again in any case.
        let _ = timeout(PATIENCE, self.join(directory)).await;
    }

    fn join(&self, directory: &Arc<dyn Directory>) -> Shared<BoxFuture<'static, ()>> {
        let mut planned = self.planned.lock();
        let now = Instant::now();
        if let Some(next) = planned.as_ref().filter(|next| next.begins > now) {
            return next.done.clone();
        }
        let begins = planned.as_ref().map_or(now, |last| now.max(last.begins + INTERVAL));
        let directory = Arc::clone(directory);
        let done = async move {
            sleep_until(begins).await;
            directory.catch_up().await;
        };
        let done = done.boxed().shared();
        *planned = Some(Planned { begins, done: done.clone() });
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_age() {
        let now = DateTime::from_timestamp_millis(1_700_000_000_000).unwrap_or_default();
        let id = |millis: i64| format!("{millis:012x}70008000000000000000");
        let at = now.timestamp_millis();
        for (made, is_new) in [
            (at, true),
            (at - 9_999, true),
            (at + 9_999, true),
            (at - 10_000, false),
            (at + 10_000, false),
            (0, false),
        ] {
            assert_eq!(NewKeys::is_new(&id(made), now), is_new, "{made}");
        }
        for id in ["", "01890a5d", "ffffffffffff", "zzzzzzzzzzzz70008000000000000000"] {
            assert!(!NewKeys::is_new(id, now), "{id}");
        }
    }
}
