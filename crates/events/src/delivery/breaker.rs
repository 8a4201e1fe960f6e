//! An endpoint's circuit breaker in its row of `webhook_cursors`.

use authority_webhook::retry::Breaker;
use chrono::{DateTime, Utc};

/// The columns `breaker`, `breaker_count`, `breaker_until`.
pub(super) type Columns = (&'static str, i32, Option<DateTime<Utc>>);

/// Reads the columns. What cannot be read is closed: a delivery too many harms less than none.
pub(super) fn read(word: &str, count: i32, until: Option<DateTime<Utc>>) -> Breaker {
    let count = u32::try_from(count).unwrap_or_default();
    match (word, until) {
        ("open", Some(probe_at)) => Breaker::Open { failed_probes: count, probe_at },
        ("probing", Some(until)) => Breaker::Probing { failed_probes: count, until },
        // Who enables an endpoint closes its breaker by the word alone.
        ("closed", None) => Breaker::Closed { failures: count },
        _ => Breaker::default(),
    }
}

pub(super) fn write(breaker: Breaker) -> Columns {
    let (word, count, until) = match breaker {
        Breaker::Closed { failures } => ("closed", failures, None),
        Breaker::Open { failed_probes, probe_at } => ("open", failed_probes, Some(probe_at)),
        Breaker::Probing { failed_probes, until } => ("probing", failed_probes, Some(until)),
    };
    (word, i32::try_from(count).unwrap_or(i32::MAX), until)
}

/// After an attempt that was not made: if it was the probe, another may be at once.
pub(super) fn released(breaker: Breaker, now: DateTime<Utc>) -> Breaker {
    match breaker {
        Breaker::Probing { failed_probes, .. } => Breaker::Open { failed_probes, probe_at: now },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for breaker in [
            Breaker::Closed { failures: 3 },
            Breaker::Open { failed_probes: 2, probe_at: at },
            Breaker::Probing { failed_probes: 0, until: at },
        ] {
            let (word, count, until) = write(breaker);
            assert_eq!(read(word, count, until), breaker);
        }
        let probing = Breaker::Probing { failed_probes: 4, until: at };
        assert_eq!(released(probing, at), Breaker::Open { failed_probes: 4, probe_at: at });
        assert_eq!(released(Breaker::default(), at), Breaker::default());
    }
}
