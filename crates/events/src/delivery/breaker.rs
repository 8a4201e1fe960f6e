//! Reads and writes an endpoint's circuit breaker in its row of `webhook_cursors`.

use authority_webhook::retry::Breaker;
use chrono::{DateTime, Utc};

/// The columns `breaker`, `breaker_count`, `breaker_until`.
pub(super) type Columns = (&'static str, i32, Option<DateTime<Utc>>);

/// Reads the columns. An unreadable breaker counts as closed: an extra delivery does less harm than
/// a missing one.
pub(super) fn read(word: &str, count: i32, until: Option<DateTime<Utc>>) -> Breaker {
    let count = u32::try_from(count).unwrap_or_default();
    match (word, until) {
        ("open", Some(probe_at)) => Breaker::Open { failed_probes: count, probe_at },
        ("probing", Some(until)) => Breaker::Probing { failed_probes: count, until },
        // When an endpoint is enabled, only `breaker` is set to `closed`. A row with
        // `breaker_until` therefore falls through to the default.
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

/// Returns the breaker after a probe that was not sent. Another probe may follow at once.
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
