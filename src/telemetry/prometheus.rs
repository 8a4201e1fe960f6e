//! Prometheus' text format.

use std::fmt::Write;

use super::snapshot::{Family, Value};

/// Renders families, in their order.
pub(super) fn text(families: &[Family]) -> String {
    let mut text = String::new();
    for Family { name, help, series } in families {
        let kind = series.first().map_or("untyped", |series| kind(&series.value));
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for series in series {
            write(&mut text, name, &joined(&series.labels), &series.value);
        }
    }
    text
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Count(_) | Value::Total(_) => "counter",
        Value::Gauge(_) => "gauge",
        Value::Histogram(_) => "histogram",
    }
}

fn write(text: &mut String, name: &str, labels: &str, value: &Value) {
    let own = braced(labels);
    let _ = match value {
        Value::Count(count) => writeln!(text, "{name}{own} {count}"),
        Value::Total(value) | Value::Gauge(value) => writeln!(text, "{name}{own} {value}"),
        Value::Histogram(histogram) => {
            let (comma, mut count) = (if labels.is_empty() { "" } else { "," }, 0);
            for (index, bucket) in histogram.counts.iter().enumerate() {
                count += bucket;
                let bound = histogram.bounds.get(index).map_or("+Inf".to_owned(), f64::to_string);
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
            }
            let sum = histogram.sum;
            writeln!(text, "{name}_sum{own} {sum}\n{name}_count{own} {count}")
        }
    };
}

/// Formats labels as `name="value",…`.
fn joined(labels: &[(String, String)]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}
