//! Metrics as an OpenTelemetry collector receives them.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::{
        ExportMetricsServiceRequest, ExportMetricsServiceResponse,
        metrics_service_server::{MetricsService, MetricsServiceServer},
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    metrics::v1::{
        AggregationTemporality, HistogramDataPoint, Metric, NumberDataPoint, metric::Data,
        number_data_point,
    },
};
use parking_lot::Mutex;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::faults::process::{Folder, Service, allowed};

const ENDPOINT: &str = "AGENT_AUTHORITY__METRICS__ENDPOINT";
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// Collects the exports that the service sends.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportMetricsServiceRequest>>>);

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.lock().push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

impl Collector {
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder()
            .add_service(MetricsServiceServer::new(self.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        endpoint
    }
}

fn metrics(export: &ExportMetricsServiceRequest) -> Vec<&Metric> {
    let scopes = export.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    scopes.flat_map(|scope| &scope.metrics).collect()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => Some(text),
        _ => None,
    }
}

#[track_caller]
fn data<'a>(all: &[&'a Metric], name: &str) -> &'a Data {
    let found = all.iter().find(|metric| metric.name == name);
    found.and_then(|metric| metric.data.as_ref()).unwrap_or_else(|| panic!("no {name}"))
}

#[track_caller]
fn counts<'a>(all: &[&'a Metric], name: &str) -> &'a [NumberDataPoint] {
    let Data::Sum(sum) = data(all, name) else { panic!("{name} is no sum") };
    assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE, "{name}");
    &sum.data_points
}

#[track_caller]
fn stage<'a>(all: &[&'a Metric], stage: &str) -> &'a HistogramDataPoint {
    let Data::Histogram(stages) = data(all, "authority_decision_stage_seconds") else {
        panic!("no histogram")
    };
    assert_eq!(stages.aggregation_temporality, CUMULATIVE);
    let mut points = stages.data_points.iter();
    points.find(|point| text(&point.attributes, "stage") == Some(stage)).unwrap()
}

/// Returns the names of the families of a scrape.
fn scraped_families(scraped: &str) -> BTreeSet<&str> {
    let types = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_receives_the_families_that_prometheus_scrapes() {
    let collector = Collector::default();
    let endpoint = collector.start().await;
    let folder = Folder::new("metrics-export");
    let mut service = Service::with(ENDPOINT, &endpoint, &folder);
    assert_eq!(service.client.evaluate(allowed()).await.0, 200);
    let scraped = service.metrics().await;
    service.stop();

    let exports = collector.0.lock();
    assert!(exports.len() > 1, "one at the start and one at the end, at least");
    let last = exports.last().unwrap();
    let resource = last.resource_metrics[0].resource.as_ref().unwrap();
    let attribute = |key| text(&resource.attributes, key);
    assert_eq!(attribute("service.name"), Some("agent-authority"));
    assert_eq!(attribute("service.version"), Some(env!("CARGO_PKG_VERSION")));
    assert!(attribute("service.instance.id").is_some_and(|id| !id.is_empty()));

    let all = metrics(last);
    let names: BTreeSet<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "a family is sent once");
    let families = scraped_families(&scraped);
    let missing: Vec<_> = families.difference(&names).collect();
    assert!(missing.is_empty(), "{missing:?}");

    let [decisions] = counts(&all, "authority_decisions_total") else { panic!("{all:#?}") };
    assert_eq!(decisions.value, Some(number_data_point::Value::AsInt(1)));
    assert_eq!(text(&decisions.attributes, "decision"), Some("allow_with_constraints"));
    assert!(decisions.start_time_unix_nano > 0);
    assert!(decisions.start_time_unix_nano < decisions.time_unix_nano);
    assert!(!counts(&all, "process_cpu_seconds_total").is_empty());

    let record = stage(&all, "record");
    assert_eq!(record.count, 1);
    assert_eq!(record.bucket_counts.iter().sum::<u64>(), 1);
    assert_eq!(record.bucket_counts.len(), record.explicit_bounds.len() + 1);
    let taken = record.sum.unwrap();
    let bucket = record.bucket_counts.iter().position(|count| *count == 1).unwrap();
    assert!(record.explicit_bounds.get(bucket).is_none_or(|bound| taken <= *bound));
    assert!(bucket == 0 || record.explicit_bounds[bucket - 1] < taken);
    // The last export is sent after the recorder has stopped.
    let ready = exports.iter().any(|export| {
        let all = metrics(export);
        let Data::Gauge(ready) = data(&all, "authority_recorder_ready") else { panic!() };
        ready.data_points[0].value == Some(number_data_point::Value::AsDouble(1.0))
    });
    assert!(ready, "{exports:#?}");
    assert!(!format!("{exports:?}").contains("acme"), "a label names a tenant");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_delays_no_call() {
    // It never reads: connections wait in the backlog.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", hanging.local_addr().unwrap());
    let folder = Folder::new("metrics-hang");
    let mut service = Service::with(ENDPOINT, &endpoint, &folder);
    let failed = "authority_worker_runs_total{name=\"metrics_export\",ok=\"false\"}";
    let mut scraped = String::new();
    for _ in 0..60 {
        let started = Instant::now();
        assert_eq!(service.client.evaluate(allowed()).await.0, 200);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        scraped = service.metrics().await;
        if scraped.contains(failed) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(scraped.contains(failed), "the export never failed\n{scraped}");
    let ready = format!("{}/health/ready", service.client.base);
    assert_eq!(service.client.http.get(ready).send().await.unwrap().status(), 200);
    let started = Instant::now();
    service.stop();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(hanging);
}
