//! Metrics by OTLP over gRPC, if `metrics.endpoint` is set: the families that Prometheus scrapes,
//! under the same names.
//!
//! A worker sends the present values. A collector that is slow or absent costs the worker its run,
//! and no call waits for it: the next run sends the sums again, because they are cumulative.

use std::time::Duration;

use opentelemetry_proto::{
    tonic::{
        collector::metrics::v1::{
            ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
        },
        common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
        metrics::v1::{
            AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
            ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
        },
        resource::v1::Resource,
    },
    transform::common::tonic::ResourceAttributesWithSchema,
};
use tonic::{
    Status,
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use super::{
    metrics::Metrics,
    snapshot::{Family, Series, Value},
    traces,
};
use authority_config::MetricsConfig;
use authority_process::{clock::Clock, worker::Worker};

/// The maximum time of an export. A worker that runs when the service stops is waited for.
const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the URL of a gRPC server, such as http://127.0.0.1:4317")]
pub struct Error(String);

/// Sends metrics to a collector.
#[derive(Clone)]
pub struct Exporter {
    endpoint: Endpoint,
    every: Duration,
}

impl Exporter {
    /// Returns the configured exporter, if there is an endpoint.
    ///
    /// # Errors
    /// The endpoint is not the URL of a gRPC server.
    pub fn new(config: &MetricsConfig) -> Result<Option<Self>, Error> {
        let endpoint = config.endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
        let Some(endpoint) = endpoint else { return Ok(None) };
        let unfit = |_| Error(endpoint.to_owned());
        let parsed = Endpoint::from_shared(endpoint.to_owned()).map_err(unfit)?;
        let mut parsed = parsed.connect_timeout(TIMEOUT).timeout(TIMEOUT);
        if parsed.uri().scheme_str() == Some("https") {
            let tls = ClientTlsConfig::new().with_enabled_roots();
            parsed = parsed.tls_config(tls).map_err(unfit)?;
        }
        Ok(Some(Self { endpoint: parsed, every: Duration::from_secs(config.interval_seconds) }))
    }

    /// Returns the worker that sends the metrics, which `read` brings up to date. Needs a Tokio
    /// runtime.
    pub fn worker(&self, read: impl Fn() -> Metrics + Send + 'static) -> Worker {
        let client = self.client();
        Worker::periodic("metrics_export", self.every, move || {
            let (mut client, request) = (client.clone(), request(&read()));
            async move { client.export(request).await.map(drop) }
        })
    }

    /// Sends the metrics once, at the end of the process.
    ///
    /// # Errors
    /// The collector did not accept them in time.
    pub async fn send(&self, metrics: &Metrics) -> Result<(), Status> {
        self.client().export(request(metrics)).await.map(drop)
    }

    fn client(&self) -> MetricsServiceClient<Channel> {
        MetricsServiceClient::new(self.endpoint.connect_lazy())
    }
}

fn request(metrics: &Metrics) -> ExportMetricsServiceRequest {
    let times = Times {
        started: nanos(metrics.started()),
        now: Clock::default().now().timestamp_nanos_opt().unwrap_or_default().unsigned_abs(),
    };
    let families = metrics.families();
    let scope = ScopeMetrics {
        scope: Some(InstrumentationScope {
            name: traces::SERVICE.to_owned(),
            ..InstrumentationScope::default()
        }),
        metrics: families.into_iter().map(|family| metric(family, times)).collect(),
        ..ScopeMetrics::default()
    };
    let ResourceAttributesWithSchema { attributes, .. } = (&traces::resource()).into();
    let resource = Resource { attributes: attributes.0, ..Resource::default() };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![scope],
            ..ResourceMetrics::default()
        }],
    }
}

/// The start of the cumulative values and the present time, as Unix time in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    started: u64,
    now: u64,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds since 1970")]
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Converts a family. Its series have one kind of value.
fn metric(family: Family, times: Times) -> Metric {
    let Family { name, help, series } = family;
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    let data = match series.first().map(|series| &series.value) {
        Some(Value::Histogram(_)) => {
            let data_points = series.into_iter().filter_map(|series| histogram(series, times));
            let data_points = data_points.collect();
            Data::Histogram(Histogram { data_points, aggregation_temporality })
        }
        Some(Value::Gauge(_)) | None => Data::Gauge(Gauge { data_points: numbers(series, times) }),
        Some(Value::Count(_) | Value::Total(_)) => Data::Sum(Sum {
            data_points: numbers(series, times),
            aggregation_temporality,
            is_monotonic: true,
        }),
    };
    let unit = unit(&name).to_owned();
    Metric { name, description: help.to_owned(), unit, data: Some(data), ..Metric::default() }
}

/// Returns the unit, which is also part of the name.
fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total");
    match name.rsplit_once('_') {
        Some((_, "seconds")) => "s",
        Some((_, "bytes")) => "By",
        _ => "",
    }
}

fn numbers(series: Vec<Series>, times: Times) -> Vec<NumberDataPoint> {
    use number_data_point::Value::{AsDouble, AsInt};
    let points = series.into_iter().filter_map(|Series { labels, value }| {
        let (start, value) = match value {
            Value::Count(count) => (times.started, AsInt(count.try_into().unwrap_or(i64::MAX))),
            Value::Total(total) => (times.started, AsDouble(total)),
            // A gauge has no start.
            Value::Gauge(value) => (0, AsDouble(value)),
            Value::Histogram(_) => return None,
        };
        Some(NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: times.now,
            value: Some(value),
            ..NumberDataPoint::default()
        })
    });
    points.collect()
}

fn histogram(series: Series, times: Times) -> Option<HistogramDataPoint> {
    let Value::Histogram(histogram) = series.value else { return None };
    Some(HistogramDataPoint {
        attributes: attributes(series.labels),
        start_time_unix_nano: times.started,
        time_unix_nano: times.now,
        count: histogram.counts.iter().sum(),
        sum: Some(histogram.sum),
        bucket_counts: histogram.counts,
        explicit_bounds: histogram.bounds.to_vec(),
        ..HistogramDataPoint::default()
    })
}

fn attributes(labels: Vec<(String, String)>) -> Vec<KeyValue> {
    let attribute = |(key, value)| KeyValue {
        key,
        value: Some(AnyValue { value: Some(any_value::Value::StringValue(value)) }),
        ..KeyValue::default()
    };
    labels.into_iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_the_end_of_a_name() {
        let units = [
            ("authority_request_seconds", "s"),
            ("process_cpu_seconds_total", "s"),
            ("process_resident_memory_bytes", "By"),
            ("authority_decisions_total", ""),
            ("authority_recorder_batch_size", ""),
        ];
        for (name, expected) in units {
            assert_eq!(unit(name), expected, "{name}");
        }
    }

    #[test]
    fn only_urls_are_endpoints() {
        let new = |endpoint: &str| {
            let endpoint = Some(endpoint.to_owned());
            Exporter::new(&MetricsConfig { endpoint, ..MetricsConfig::default() })
        };
        assert!(new("http://127.0.0.1:4317").unwrap().is_some());
        assert!(new("https://collector.example.org:4317").unwrap().is_some());
        assert!(new("").unwrap().is_none());
        assert!(new("http://[").is_err());
    }
}
