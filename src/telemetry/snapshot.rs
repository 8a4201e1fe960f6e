//! The values of all metrics at one moment. Prometheus' text and OTLP are written from them.

/// A family: all series of a name.
pub(super) struct Family {
    pub(super) name: String,
    pub(super) help: &'static str,
    /// The series, in order of their labels. All have the same kind of value.
    pub(super) series: Vec<Series>,
}

pub(super) struct Series {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: Value,
}

pub(super) enum Value {
    Count(u64),
    /// A count of fractions, such as seconds.
    Total(f64),
    Gauge(f64),
    Histogram(Histogram),
}

pub(super) struct Histogram {
    pub(super) bounds: &'static [f64],
    /// The number of values up to each bound but above the bound before it, and above all bounds.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

impl Family {
    /// Returns a family with one series, which has no labels.
    pub(super) fn of(name: &str, help: &'static str, value: Value) -> Self {
        let series = vec![Series { labels: Vec::new(), value }];
        Self { name: name.to_owned(), help, series }
    }
}
