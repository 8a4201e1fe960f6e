//! Tracing spans: one for a request, one for each stage of its decision and one for each
//! transaction.

use std::{
    collections::BTreeMap,
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Id, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Record},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

use crate::support::{TestApp, asking};

/// Collects the fields of the opened spans, by name.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<BTreeMap<&'static str, String>>>);

struct Fields<'s>(&'s mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} "); // a text takes everything
    }
}

impl<S: Subscriber + for<'s> tracing_subscriber::registry::LookupSpan<'s>> Layer<S> for Spans {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        span.record(&mut Fields(spans.entry(span.metadata().name()).or_default()));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let name = context.span(id).unwrap().name();
        values.record(&mut Fields(self.0.lock().unwrap().entry(name).or_default()));
    }
}

/// Runs on one thread, where this thread's subscriber sees every span.
#[tokio::test]
async fn each_stage_has_a_span_with_ids_and_outcome() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let spans = Spans::default();
    let client = app.client(&demo.api_key);
    let mut body = asking(1200.0, "DE");
    body["context"]["note"] = "a secret of the caller".into();

    let listening = tracing_subscriber::registry().with(spans.clone()).set_default();
    let (status, decided) = client.evaluate(body).await;
    drop(listening);

    assert_eq!(status, 200, "{decided}");
    let spans = spans.0.lock().unwrap();
    for stage in
        ["request", "decide", "tenant_at", "gather", "evaluate", "sign", "record", "worker"]
    {
        assert!(spans.contains_key(stage), "no span `{stage}`: {spans:?}");
    }
    let request = &spans["request"];
    for field in
        ["otel.kind=\"server\"", "http.request.method=\"POST\"", "http.response.status_code=200"]
    {
        assert!(request.contains(field), "{field}: {request}");
    }
    assert_eq!(request.matches("otel.kind").count(), 1, "one span for a request: {request}");
    let decide = &spans["decide"];
    assert!(decide.contains("operation=\"evaluate\""), "{decide}");
    assert!(decide.contains(decided["decision_id"].as_str().unwrap()), "{decide}");
    assert!(decide.contains("allow") && decide.contains("svc:tenant:acme"), "{decide}");
    for (name, fields) in spans.iter().filter(|(name, _)| stages(name)) {
        assert!(!fields.contains("a secret of the caller"), "{name}: {fields}");
    }
}

/// Returns whether the span belongs to the service and not to a library.
fn stages(name: &str) -> bool {
    [
        "request",
        "decide",
        "tenant_at",
        "gather",
        "evaluate",
        "sign",
        "record",
        "batch",
        "transaction",
    ]
    .contains(&name)
}
