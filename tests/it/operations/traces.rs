//! Traces as an OpenTelemetry collector receives them.

use std::{collections::BTreeSet, sync::Arc};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{AnyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind},
};
use parking_lot::Mutex;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::faults::process::{Folder, Service, allowed};
use crate::support::EVALUATE;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const MARKER: &str = "marker-5d10c3";

/// Collects the exports that the service sends.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(self.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        endpoint
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.0.lock();
        let scopes = received.iter().flat_map(|request| &request.resource_spans);
        let spans = scopes.flat_map(|resource| &resource.scope_spans);
        spans.flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn attribute(span: &Span, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.clone().and_then(|AnyValue { value }| value)
}

/// Returns the only span of the trace for a received request. Its parent is the caller's span.
#[track_caller]
fn the_request<'s>(all: &'s [Span], trace: &str) -> &'s Span {
    let of_trace = all.iter().filter(|span| hex::encode(&span.trace_id) == trace);
    let received = of_trace.filter(|span| span.kind() == SpanKind::Server);
    let [request] = received.collect::<Vec<_>>()[..] else { panic!("{trace}: {all:#?}") };
    assert_eq!(hex::encode(&request.parent_span_id), CALLER, "{request:#?}");
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_has_one_span_with_its_outcome() {
    const METHOD: &str = "authority.runtime.v1.RuntimeService/Evaluate";
    let collector = Collector::default();
    let endpoint = collector.start().await;
    let folder = Folder::new("spans");
    let mut service = Service::with("AGENT_AUTHORITY__TRACES__ENDPOINT", &endpoint, &folder);
    let rpc = format!("/{METHOD}");
    let unauthenticated = Value::StringValue("UNAUTHENTICATED".into());
    let status = "http.response.status_code";
    let requests = [
        // An unknown path, a head that is refused before routing, and a call without a credential.
        ("/nowhere", "text/plain", "POST", status, Value::IntValue(404)),
        ("/health", "text/plain; charset=utf-16", "POST", status, Value::IntValue(415)),
        (rpc.as_str(), "application/grpc-web", METHOD, "rpc.response.status_code", unauthenticated),
    ];
    let trace = |number: usize| format!("{number:032x}");
    for (number, (path, kind, ..)) in requests.iter().enumerate() {
        let call = service.client.http.post(format!("{}{path}", service.client.base));
        let traceparent = format!("00-{}-{CALLER}-01", trace(number + 1));
        let call = call.header("traceparent", traceparent).header("content-type", *kind);
        call.header("x-grpc-web", "1").body(vec![0; 5]).send().await.unwrap();
    }
    service.stop();

    let all = collector.spans();
    for (number, (path, _, name, key, value)) in requests.into_iter().enumerate() {
        let request = the_request(&all, &trace(number + 1));
        assert_eq!((&*request.name, attribute(request, key)), (name, Some(value)), "{path}");
        assert_eq!(attribute(request, "error.type"), None, "{path}: the caller's error");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_part_of_its_callers_trace_with_a_span_for_each_stage() {
    let collector = Collector::default();
    let endpoint = collector.start().await;
    let folder = Folder::new("traces");
    let mut service = Service::with("AGENT_AUTHORITY__TRACES__ENDPOINT", &endpoint, &folder);
    let mut question = allowed();
    question["context"]["note"] = MARKER.into();
    let url = format!("{}{EVALUATE}", service.client.base);
    let call = service.client.http.post(url).bearer_auth(&service.client.token).json(&question);
    let sent = call.header("traceparent", format!("00-{TRACE}-{CALLER}-01")).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    service.stop();

    assert!(!format!("{:?}", collector.0.lock()).contains(MARKER));
    let all = collector.spans();
    let of_trace: Vec<_> = all.iter().filter(|span| hex::encode(&span.trace_id) == TRACE).collect();
    let request = the_request(&all, TRACE);
    let path = EVALUATE;
    assert_eq!(request.name, format!("POST {path}"));
    assert_eq!(attribute(request, "http.response.status_code"), Some(Value::IntValue(200)));
    for (key, value) in [("http.request.method", "POST"), ("http.route", path), ("url.path", path)]
    {
        assert_eq!(attribute(request, key), Some(Value::StringValue(value.into())), "{key}");
    }
    let names: BTreeSet<&str> = of_trace.iter().map(|span| span.name.as_str()).collect();
    for stage in ["decide", "gather", "sign", "record"] {
        assert!(names.contains(stage), "{stage}: {names:?}");
    }
    // The parent of every span is in the trace.
    let ids: BTreeSet<_> = of_trace.iter().map(|span| &span.span_id).collect();
    for span in &of_trace {
        let has_parent = ids.contains(&span.parent_span_id);
        assert!(has_parent || span.span_id == request.span_id, "{span:#?}");
    }
}
