//! Traces by OTLP over gRPC, if `traces.endpoint` is set: a span for each request, with spans for
//! the stages of a decision.
//!
//! Like the log lines, a span has a name, times, ids and the path, but no values from the request.

use std::{process, sync::OnceLock, time::Duration};

use http::{HeaderMap, HeaderName};
use nix::unistd::gethostname;
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator},
    trace::{TraceContextExt, TracerProvider as _},
};
pub use opentelemetry_otlp::ExporterBuildError as Error;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use authority_config::Traces;

/// The name of the service in traces and metrics.
pub(super) const SERVICE: &str = "agent-authority";
/// How long the process waits for the collector before exiting.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Set once, because a process has one subscriber.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Returns the layer that sends spans, if there is an endpoint. Needs a Tokio runtime.
///
/// # Errors
/// The endpoint is not the URL of a gRPC server.
pub(super) fn layer<S>(config: &Traces) -> Result<Option<impl Layer<S> + use<S>>, Error>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let endpoint = config.endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
    let Some(endpoint) = endpoint else { return Ok(None) };
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.ratio)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource())
        .build();
    let tracer = PROVIDER.get_or_init(|| provider).tracer(SERVICE);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    Ok(Some(layer.with_filter(filter_fn(is_ours))))
}

/// Describes this process to a collector: the service, its version, and the host with the process id.
pub(super) fn resource() -> Resource {
    let host = gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    let attributes = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", format!("{host}:{}", process::id())),
    ];
    Resource::builder().with_service_name(SERVICE).with_attributes(attributes).build()
}

/// Accepts spans of this service at every level. Spans of libraries and log lines are left out.
fn is_ours(about: &Metadata<'_>) -> bool {
    let target = about.target();
    about.is_span() && (target.starts_with("authority_") || target.starts_with("agent_authority"))
}

/// The headers of a request, for the propagator.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// Makes a request's span part of the caller's trace, given in `traceparent` (W3C Trace Context).
pub fn follow(span: &Span, headers: &HeaderMap) {
    if PROVIDER.get().is_none() {
        return;
    }
    let caller =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
    // Errors can be ignored. `set_parent` fails for a span that has started or is not sampled. This
    // span has not started yet, and an unsampled span does not need a parent.
    let _ = span.set_parent(caller);
}

/// Names the current span after a gRPC method, given as its path: `/package.v1.Service/Method`.
pub fn name_by_method(path: &'static str) {
    if PROVIDER.get().is_none() {
        return;
    }
    let (span, method) = (Span::current(), path.trim_start_matches('/'));
    span.context().span().update_name(method);
    span.set_attribute("rpc.system.name", "grpc");
    span.set_attribute("rpc.method", method);
}

/// Names the current span after a REST operation, given as HTTP method and path template.
pub fn name_by_route(method: &'static str, path: &'static str) {
    if PROVIDER.get().is_none() {
        return;
    }
    let span = Span::current();
    span.context().span().update_name(format!("{method} {path}"));
    span.set_attribute("http.route", path);
}

/// Sends the remaining spans at the end of the process.
pub fn flush() {
    if let Some(Err(error)) = PROVIDER.get().map(|all| all.shutdown_with_timeout(LAST_SPANS)) {
        tracing::warn!(%error, "failed to send the last traces");
    }
}
