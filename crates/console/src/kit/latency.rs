//! The time of decisions on this node, from its metrics.

use crate::texts as t;

/// The time of calls for decisions since the node started, as upper bounds of the histogram's
/// buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The number of measured calls.
    pub calls: u64,
    /// Half of the calls took at most this time, in seconds; `None` if it is above all buckets.
    pub p50: Option<f64>,
    /// 99 % of the calls took at most this time, in seconds; `None` if it is above all buckets.
    pub p99: Option<f64>,
}

impl Latency {
    /// Both times as a page shows them.
    pub(crate) fn in_words(self) -> String {
        t::overview::latency(bound(self.p50), bound(self.p99))
    }
}

/// `at most 2.5 ms`.
fn bound(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) if seconds < 1.0 => t::kit::at_most_ms(rounded(seconds * 1000.0)),
        Some(seconds) => t::kit::at_most_s(rounded(seconds)),
        None => t::kit::OVER_TEN_S.to_owned(),
    }
}

/// The bounds have at most two decimal places in their unit.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_unit() {
        for (seconds, shown) in [
            (Some(0.001), "at most 1 ms"),
            (Some(0.002_5), "at most 2.5 ms"),
            (Some(0.25), "at most 250 ms"),
            (Some(1.0), "at most 1 s"),
            (Some(2.5), "at most 2.5 s"),
            (None, "more than 10 s"),
        ] {
            assert_eq!(bound(seconds), shown);
        }
    }
}
