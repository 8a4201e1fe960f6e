//! The layer that measures every call: `authority_request_seconds{operation, transport, status}`
//! and `authority_refusals_total{reason}`.
//!
//! This layer wraps the layer that enforces deadlines, so it also counts calls that time out. No
//! label contains a tenant.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::{body::Body, response::Response};
use gateway_rest::{Refused, Route};
use http::{Request, StatusCode};
use metrics::Histogram;
use pin_project_lite::pin_project;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tower::{Layer, Service};

use super::wrapped::{Around, Wrapped};
use crate::{
    routes::ROUTES,
    telemetry::{Metrics, Quantiles, traces},
    transport::is_grpc,
};
use authority_api::error::ErrorCode;
use authority_console::Latency;

/// The family of the times of calls.
const NAME: &str = "authority_request_seconds";
/// The operations that make one decision, as their labels name them.
const DECISIONS: [&str; 4] = [
    "RuntimeService/Evaluate",
    "RuntimeService/Authorize",
    "DecisionService/EvaluateDecision",
    "HookService/DecideHook",
];

/// The operation of a call without a known method: a page, or an unknown path.
const OTHER: &str = "other";

/// The operation of a call. For REST it is stored in the call's extensions, and is known once the
/// call is routed.
#[derive(Clone, Default)]
pub(super) struct Operation(Arc<OnceLock<Called>>);

#[derive(Clone, Copy)]
pub(super) enum Called {
    /// A gRPC method, by its path.
    Method(&'static str),
    Route(&'static Route),
}

impl Operation {
    pub(super) fn set(&self, called: Called) {
        // This fails only if the operation is already set: a call has one operation.
        let _ = self.0.set(called);
    }
}

impl Called {
    fn rpc(self) -> &'static str {
        match self {
            Self::Method(rpc) => rpc,
            Self::Route(route) => route.rpc,
        }
    }

    fn name_span(self) {
        match self {
            Self::Method(rpc) => traces::name_by_method(rpc),
            Self::Route(route) => traces::name_by_route(route.method, route.path),
        }
    }
}

/// The layer around all routes.
#[derive(Clone)]
pub(super) struct MeasureLayer {
    /// The histograms by the path of each method.
    operations: Arc<HashMap<&'static str, Times>>,
}

/// The histograms of one operation. The histogram of successes is looked up only once for each
/// transport.
struct Times {
    /// The name in the label, such as `RuntimeService/Evaluate`.
    name: &'static str,
    grpc: OnceLock<Histogram>,
    rest: OnceLock<Histogram>,
}

impl Times {
    fn of(name: &'static str) -> Self {
        Self { name, grpc: OnceLock::new(), rest: OnceLock::new() }
    }

    fn took(&self, time: Duration, is_grpc: bool, status: StatusCode) {
        let histogram = || histogram(self.name, is_grpc, status);
        let success = if is_grpc { &self.grpc } else { &self.rest };
        if status == StatusCode::OK {
            success.get_or_init(histogram).record(time.as_secs_f64());
        } else {
            histogram().record(time.as_secs_f64());
        }
    }
}

fn histogram(operation: &'static str, is_grpc: bool, status: StatusCode) -> Histogram {
    metrics::histogram!(
        NAME,
        "operation" => operation,
        "transport" => if is_grpc { "grpc" } else { "rest" },
        "status" => status.as_str().to_owned()
    )
}

/// Returns the time of the decisions of all tenants since this node started.
pub(super) fn latency() -> Latency {
    let Quantiles { count, p50, p99 } = Metrics::quantiles(NAME, |key| {
        let has = |name: &str, is_it: &dyn Fn(&str) -> bool| {
            key.labels().any(|label| label.key() == name && is_it(label.value()))
        };
        has("operation", &|operation| DECISIONS.contains(&operation))
            && has("status", &|status| status == StatusCode::OK.as_str())
    });
    Latency { calls: count, p50, p99 }
}

impl MeasureLayer {
    /// Creates the counter of every reason at the start, to make its first increase visible.
    pub(super) fn new() -> Self {
        for code in ErrorCode::ALL {
            refusals(*code).increment(0);
        }
        let times = |rpc: &'static str| (rpc, Times::of(short(rpc)));
        let others = [(OTHER, Times::of(OTHER))];
        let all = ROUTES.iter().map(|route| times(route.rpc)).chain(others);
        Self { operations: Arc::new(all.collect()) }
    }
}

/// The service's name without its package, and the method.
fn short(rpc: &'static str) -> &'static str {
    let package = rpc.rsplit_once('/').and_then(|(service, _)| service.rfind('.'));
    package.and_then(|dot| rpc.get(dot + 1..)).unwrap_or(rpc)
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for MeasureLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = ResponseFuture<S::Future>;

    fn call(&self, inner: &mut S, mut request: Request<Body>) -> Self::Future {
        let since = Instant::now();
        let operation = Operation::default();
        let is_grpc = is_grpc(request.headers());
        if is_grpc {
            if let Some((rpc, _)) = self.operations.get_key_value(request.uri().path()) {
                operation.set(Called::Method(rpc));
            }
        } else {
            request.extensions_mut().insert(operation.clone());
        }
        let operations = Arc::clone(&self.operations);
        let call = Measured { since, operation, is_grpc, operations };
        ResponseFuture { answer: inner.call(request), call }
    }
}

pin_project! {
    /// The future of a measured response.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        answer: F,
        call: Measured,
    }
}

impl<F> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(context));
        if let Ok(response) = &answer {
            this.call.note(response);
        }
        Poll::Ready(answer)
    }
}

/// A call in progress.
struct Measured {
    since: Instant,
    operation: Operation,
    is_grpc: bool,
    operations: Arc<HashMap<&'static str, Times>>,
}

impl Measured {
    fn note(&self, response: &Response) {
        let called = self.operation.0.get().copied();
        let rpc = called.map_or(OTHER, Called::rpc);
        let Some(times) = self.operations.get(rpc).or_else(|| self.operations.get(OTHER)) else {
            return;
        };
        let refusal = refusal(response);
        let status = refusal.map_or_else(|| response.status(), ErrorCode::http);
        if let Some(called) = called {
            called.name_span();
        }
        if let Some(code) = refusal {
            refusals(code).increment(1);
        }
        times.took(self.since.elapsed(), self.is_grpc, status);
    }
}

fn refusals(code: ErrorCode) -> metrics::Counter {
    metrics::counter!("authority_refusals_total", "reason" => code.word())
}

/// Returns the error in a response, for either transport; `None` for a success.
fn refusal(response: &Response) -> Option<ErrorCode> {
    let by_word = |word: &str| ErrorCode::ALL.iter().copied().find(|code| code.word() == word);
    if let Some(refused) = response.extensions().get::<Refused>() {
        return by_word(&refused.reason).or_else(|| of_http(response.status()));
    }
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::Ok => None,
        Some(status) => {
            let info = status.get_details_error_info();
            let known = info.and_then(|info| by_word(&info.reason));
            Some(known.unwrap_or_else(|| ErrorCode::of(status.code())))
        }
        None => of_http(response.status()),
    }
}

/// Returns the error for the HTTP status of a page's or a library's response.
fn of_http(status: StatusCode) -> Option<ErrorCode> {
    let fails = status.is_client_error() || status.is_server_error();
    let known = ErrorCode::ALL.iter().copied().find(|code| code.http() == status);
    fails.then(|| known.unwrap_or(ErrorCode::Internal))
}

#[cfg(test)]
mod tests {
    use authority_api::error::ApiError;

    use super::*;

    #[test]
    fn an_error_is_the_same_in_both_transports() {
        let status = Status::from(ApiError::plain(ErrorCode::RateLimited));
        assert_eq!(refusal(&status.into_http()), Some(ErrorCode::RateLimited));
        let mut rest = Response::new(Body::empty());
        *rest.status_mut() = ErrorCode::RecordIsFinal.http();
        rest.extensions_mut()
            .insert(Refused { reason: "record_is_final".into(), message: "".into() });
        assert_eq!(refusal(&rest), Some(ErrorCode::RecordIsFinal));
        assert_eq!(refusal(&Response::new(Body::empty())), None);
    }

    #[test]
    fn an_operation_is_named_without_its_package() {
        assert_eq!(
            short("/authority.runtime.v1.RuntimeService/Evaluate"),
            "RuntimeService/Evaluate"
        );
    }
}
