//! Tracks endpoints and tenants that are slowed down by their own limits.
//!
//! Their running attempts have reached the limit for the endpoint or its tenant, or the endpoint
//! has reached its rate limit. Metrics of late deliveries leave them out, because the service isn't
//! the cause.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The weight of a new sample in the moving average.
const WEIGHT: f64 = 0.1;
/// The share of samples above which an endpoint counts as limited.
const MOSTLY: f64 = 0.5;
/// The share below which an entry is removed.
const SELDOM: f64 = 0.01;
/// How long the samples stay valid after the last one.
const KNOWN: Duration = Duration::from_secs(10);

/// How often each endpoint or tenant was at a limit: a share of samples, with more weight on recent
/// samples.
#[derive(Default)]
pub(super) struct Limited(Mutex<Looks>);

#[derive(Default)]
struct Looks {
    shares: HashMap<String, f64>,
    last: Option<Instant>,
}

impl Limited {
    /// Records the endpoints and tenants that are at their limits now.
    pub(super) fn note(&self, at_limit: HashSet<String>, now: Instant) {
        let mut looks = self.0.lock();
        looks.last = Some(now);
        let shares = &mut looks.shares;
        for share in shares.values_mut() {
            *share *= 1.0 - WEIGHT;
        }
        for id in at_limit {
            *shares.entry(id).or_default() += WEIGHT;
        }
        shares.retain(|_, share| *share > SELDOM);
    }

    /// Whether the endpoint or tenant is at its limit most of the time.
    pub(super) fn has(&self, id: &str, now: Instant) -> bool {
        let looks = self.0.lock();
        looks.last.is_some_and(|last| now < last + KNOWN)
            && looks.shares.get(id).is_some_and(|share| *share > MOSTLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_mostly_at_a_limit_is_held_back_by_it() {
        let (limited, now) = (Limited::default(), Instant::now());
        let at = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        for second in 0..20 {
            let seen = if second % 4 == 0 { at(&["slow", "seldom"]) } else { at(&["slow"]) };
            limited.note(seen, now);
        }
        let has = |id| limited.has(id, now);
        assert!(has("slow") && !has("seldom") && !has("never"));
        assert!(!limited.has("slow", now + KNOWN), "the samples are outdated");
        for _ in 0..10 {
            limited.note(at(&[]), now);
        }
        assert!(!has("slow"));
    }
}
