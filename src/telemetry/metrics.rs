//! The metrics of this process.

use std::sync::OnceLock;

use ::metrics::Key;

use super::{families, process, prometheus, recorder::Recorder, snapshot::Family};
use authority_process::clock::Clock;

/// The values reported to the macros of `metrics`, such as `metrics::counter!`. Names end in their
/// unit: `_seconds`, `_total`, `_size`.
#[derive(Clone)]
pub struct Metrics {
    recorder: Recorder,
    /// The start of the process as Unix time, in seconds.
    started: f64,
}

static INSTALLED: OnceLock<Metrics> = OnceLock::new();

/// The distribution of measured times. The quantiles are upper bounds of the histogram's buckets,
/// in seconds. They are `None` above all buckets, and without values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    pub count: u64,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Returns the distribution of the counts of buckets, the last of which has no bound.
    fn of(bounds: &[f64], counts: &[u64]) -> Self {
        let count: u64 = counts.iter().sum();
        let bound = |percent: u64| {
            let needed = (count * percent).div_ceil(100).max(1);
            let mut reached = 0;
            let bucket = counts.iter().position(|count| {
                reached += count;
                reached >= needed
            });
            bounds.get(bucket?).copied()
        };
        Self { count, p50: bound(50), p99: bound(99) }
    }
}

impl Metrics {
    /// Returns the distribution of the values of all histograms of a family with these labels, in
    /// the recorder of this process.
    pub fn quantiles(name: &str, is_counted: impl Fn(&Key) -> bool) -> Quantiles {
        let found = INSTALLED.get().and_then(|all| all.recorder.buckets(name, is_counted));
        found.map_or_else(Quantiles::default, |(bounds, counts)| Quantiles::of(bounds, &counts))
    }

    /// Installs the recorder of this process.
    pub fn install() -> Self {
        let installed = INSTALLED.get_or_init(|| {
            let recorder = Recorder::default();
            // Fails only if another recorder is installed. Ours then stays empty.
            let _ = ::metrics::set_global_recorder(recorder.clone());
            families::begin();
            let started = Clock::default().now().timestamp_micros();
            Self { recorder, started: seconds(started) }
        });
        installed.clone()
    }

    /// Renders the metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        prometheus::text(&self.families())
    }

    pub(super) fn families(&self) -> Vec<Family> {
        let mut families = self.recorder.families();
        families.extend(process::families(self.started));
        families
    }

    /// Returns the start of the process as Unix time, in seconds.
    pub(super) fn started(&self) -> f64 {
        self.started
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^52")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let bounds = [0.001, 0.01, 0.1];
        let of = |counts: [u64; 4]| {
            let Quantiles { count, p50, p99 } = Quantiles::of(&bounds, &counts);
            (count, p50, p99)
        };
        assert_eq!(of([0, 0, 0, 0]), (0, None, None));
        assert_eq!(of([1, 0, 0, 0]), (1, Some(0.001), Some(0.001)));
        assert_eq!(of([50, 49, 1, 0]), (100, Some(0.001), Some(0.01)));
        assert_eq!(of([49, 50, 1, 0]), (100, Some(0.01), Some(0.01)));
        assert_eq!(of([49, 49, 2, 0]), (100, Some(0.01), Some(0.1)));
        assert_eq!(of([0, 0, 0, 3]), (3, None, None));
    }
}
