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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_part_of_its_callers_trace_with_a_span_for_each_stage() {
    let collector = Collector::default();
    let endpoint = collector.start().await;
    let folder = Folder::new("traces");
    let mut service = Service::with("AGENT_AUTHORITY__TRACES__ENDPOINT", &endpoint, &folder);
    let mut question = allowed();
    question["context"]["note"] = MARKER.into();
    let url = format!("{}/api/v1/runtime/evaluate", service.client.base);
    let call = service.client.http.post(url).bearer_auth(&service.client.token).json(&question);
    let sent = call.header("traceparent", format!("00-{TRACE}-{CALLER}-01")).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    service.stop();

    assert!(!format!("{:?}", collector.0.lock()).contains(MARKER));
    let all = collector.spans();
    let of_trace: Vec<_> = all.iter().filter(|span| hex::encode(&span.trace_id) == TRACE).collect();
    let by_caller = |span: &&&Span| hex::encode(&span.parent_span_id) == CALLER;
    let [request] = of_trace.iter().filter(by_caller).collect::<Vec<_>>()[..] else {
        panic!("{of_trace:#?}")
    };
    assert_eq!(request.name, "RuntimeService/Evaluate");
    assert_eq!(request.kind(), SpanKind::Server);
    assert_eq!(attribute(request, "http.response.status_code"), Some(Value::IntValue(200)));
    assert_eq!(
        attribute(request, "path"),
        Some(Value::StringValue("/api/v1/runtime/evaluate".into()))
    );
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
