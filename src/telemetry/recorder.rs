//! Stores the values reported to macros such as `metrics::counter!`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use parking_lot::RwLock;

use super::{
    families, prometheus,
    snapshot::{self, Family, Value},
};

/// Bucket bounds of durations in seconds, from the time of a decision in memory to the longest
/// timeout.
const SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
/// Bucket bounds of the durations of calls, in seconds. There are fewer buckets, because there are
/// several hundred combinations of labels.
const REQUEST: &[f64] =
    &[0.001, 0.002_5, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Bucket bounds of counts, such as the size of a batch or of a queue.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// All metrics of a process, or of a test's thread. Cheap to clone.
#[derive(Clone, Default)]
pub struct Recorder(Arc<RwLock<HashMap<Key, Series>>>);

/// One combination of a name and labels. A gauge is stored as the bits of an `f64`.
#[derive(Clone)]
enum Series {
    Counter(Arc<AtomicU64>),
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

/// The number of values up to each bound and above all bounds, and their sum as the bits of an
/// `f64`.
struct Buckets {
    bounds: &'static [f64],
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Buckets {
    fn new(name: &str) -> Self {
        let bounds = match name {
            "authority_request_seconds" => REQUEST,
            name if name.ends_with("_seconds") => SECONDS,
            _ => COUNTS,
        };
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    fn read(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        metrics::GaugeFn::increment(&self.sum, value);
    }
}

impl Recorder {
    /// Returns the series of a key; the first report creates it.
    fn series(&self, key: &Key, first: impl FnOnce() -> Series) -> Series {
        if let Some(series) = self.0.read().get(key) {
            return series.clone();
        }
        self.0.write().entry(key.clone()).or_insert_with(first).clone()
    }

    /// Adds up the histograms of a family with these labels. Returns the bounds of the buckets, and
    /// the number of values up to each bound and above all bounds. `None` without a histogram.
    pub(super) fn buckets(
        &self,
        name: &str,
        is_counted: impl Fn(&Key) -> bool,
    ) -> Option<(&'static [f64], Vec<u64>)> {
        let all = self.0.read();
        let found = all.iter().filter(|(key, _)| key.name() == name && is_counted(key));
        let mut histograms = found.filter_map(|(_, series)| match series {
            Series::Histogram(buckets) => Some(buckets),
            Series::Counter(_) | Series::Gauge(_) => None,
        });
        let first = histograms.next()?;
        let mut sum = first.read();
        for histogram in histograms {
            sum.iter_mut().zip(histogram.read()).for_each(|(sum, count)| *sum += count);
        }
        Some((first.bounds, sum))
    }

    /// Returns the current values, ordered by name and labels.
    pub(super) fn families(&self) -> Vec<Family> {
        let all: BTreeMap<Key, Series> =
            self.0.read().iter().map(|(key, series)| (key.clone(), series.clone())).collect();
        let mut families: Vec<Family> = Vec::new();
        for (key, series) in &all {
            let labels = key.labels().map(|label| (label.key().into(), label.value().into()));
            let series = snapshot::Series { labels: labels.collect(), value: series.value() };
            match families.last_mut().filter(|family| family.name == key.name()) {
                Some(family) => family.series.push(series),
                None => families.push(Family {
                    name: key.name().to_owned(),
                    help: families::help(key.name()).unwrap_or("No help."),
                    series: vec![series],
                }),
            }
        }
        families
    }

    /// Renders Prometheus' text format, ordered by name and labels.
    pub fn render(&self) -> String {
        prometheus::text(&self.families())
    }
}

impl Series {
    fn value(&self) -> Value {
        let of = |bits: &AtomicU64| f64::from_bits(bits.load(Ordering::Relaxed));
        match self {
            Self::Counter(count) => Value::Count(count.load(Ordering::Relaxed)),
            Self::Gauge(bits) => Value::Gauge(of(bits)),
            Self::Histogram(buckets) => Value::Histogram(snapshot::Histogram {
                bounds: buckets.bounds,
                counts: buckets.read(),
                sum: of(&buckets.sum),
            }),
        }
    }
}

impl metrics::Recorder for Recorder {
    // Descriptions are ignored: `families` has the help text of each family.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.series(key, || Series::Counter(Arc::default())) {
            Series::Counter(count) => Counter::from_arc(count),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.series(key, || Series::Gauge(Arc::default())) {
            Series::Gauge(bits) => Gauge::from_arc(bits),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.series(key, || Series::Histogram(Arc::new(Buckets::new(key.name())))) {
            Series::Histogram(buckets) => Histogram::from_arc(buckets),
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics::{counter, gauge, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn histograms_with_the_labels_are_added_up() {
        let recorder = Recorder::default();
        with_local_recorder(&recorder, || {
            for (operation, seconds) in [("a", 0.001), ("a", 0.02), ("b", 20.0), ("c", 0.001)] {
                histogram!("authority_request_seconds", "operation" => operation).record(seconds);
            }
            counter!("authority_request_seconds_of_another_kind").increment(1);
        });
        let is_counted = |key: &Key| key.labels().any(|label| label.value() != "c");
        let (bounds, counts) = recorder.buckets("authority_request_seconds", is_counted).unwrap();
        assert_eq!(bounds, REQUEST);
        assert_eq!(counts, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(recorder.buckets("authority_recorder_batch_size", |_| true).is_none());
    }

    #[test]
    fn the_text_is_as_prometheus_reads_it() {
        let recorder = Recorder::default();
        with_local_recorder(&recorder, || {
            counter!("authority_refusals_total", "reason" => "a\"b\\c\nd").increment(2);
            counter!("authority_refusals_total", "reason" => "a\"b\\c\nd").increment(1);
            gauge!("authority_transport_connections").increment(3.0);
            gauge!("authority_transport_connections").decrement(0.5);
            for size in [1.0, 2.0, 3.0, 5000.0] {
                histogram!("authority_recorder_batch_size").record(size);
            }
            histogram!("authority_decision_stage_seconds", "stage" => "sign").record(0.000_05);
        });
        let text = recorder.render();
        let lines: Vec<_> = text.lines().collect();
        for line in [
            "# TYPE authority_refusals_total counter",
            "authority_refusals_total{reason=\"a\\\"b\\\\c\\nd\"} 3",
            "# TYPE authority_transport_connections gauge",
            "authority_transport_connections 2.5",
            "# TYPE authority_recorder_batch_size histogram",
            "authority_recorder_batch_size_bucket{le=\"1\"} 1",
            "authority_recorder_batch_size_bucket{le=\"2\"} 2",
            "authority_recorder_batch_size_bucket{le=\"4\"} 3",
            "authority_recorder_batch_size_bucket{le=\"1024\"} 3",
            "authority_recorder_batch_size_bucket{le=\"+Inf\"} 4",
            "authority_recorder_batch_size_sum 5006",
            "authority_recorder_batch_size_count 4",
            "authority_decision_stage_seconds_bucket{stage=\"sign\",le=\"0.00005\"} 1",
            "authority_decision_stage_seconds_count{stage=\"sign\"} 1",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
        let first = lines.iter().position(|line| line.ends_with("connections 2.5")).unwrap();
        assert!(
            lines[first - 2].starts_with("# HELP authority_transport_connections Open"),
            "{text}"
        );
    }
}
