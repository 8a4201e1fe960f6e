//! The layer around every route: request id, log span, surface, panic handling, error shape,
//! security headers.
//!
//! It is one service and one future instead of a stack of middlewares, because every decision
//! passes through it.

use std::{
    any::Any,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, HttpBody as _},
    http::{HeaderMap, HeaderValue, Method, Request, Response, header::CONTENT_LENGTH},
};
use futures_util::{FutureExt, future::CatchUnwind};
use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;
use tower::{Layer, Service};
use tracing::{Instrument, Span, instrument::Instrumented};

use super::{
    head, headers, hook, host,
    refusal::Asker,
    request_id::{self, RequestId},
    settings::Settings,
    span,
    tls::Admission,
};
use crate::telemetry::{in_request, of_request};
use authority_api::error::{ApiError, ErrorCode};
use authority_decision::hooks::Client;
use authority_model::surfaces::Surfaces;

#[derive(Clone, Copy)]
pub(super) struct ResponseLayer {
    surfaces: Surfaces,
    admission: Admission,
    body_bytes: u64,
    https: bool,
}

impl ResponseLayer {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            surfaces: settings.surfaces,
            admission: Admission::EVERYTHING,
            body_bytes: settings.bounds.body_bytes,
            https: settings.https,
        }
    }

    /// The error of a request that is refused before routing.
    fn refusal(self, request: &Request<Body>) -> Option<ApiError> {
        if let Some(refusal) = self.admission.refusal(request.uri().path()) {
            Some(refusal)
        } else if let Some(head) = request.extensions().get::<head::TooLarge>() {
            Some(head.refusal())
        } else if let Some(problem) = host::problem(request) {
            Some(ApiError::field("host", problem))
        } else if let Some(refusal) = head::refusal(request) {
            Some(refusal)
        } else if !self.surfaces.serve(request.uri().path()) {
            Some(ApiError::plain(ErrorCode::NotFound))
        } else if declared(request.headers()) > self.body_bytes {
            Some(ApiError::plain(ErrorCode::TooLarge))
        } else {
            None
        }
    }
}

/// The declared length of the body; hyper has already refused a malformed length.
fn declared(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or_default()
}

impl<S> Layer<S> for ResponseLayer {
    type Service = ResponseService<S>;

    fn layer(&self, inner: S) -> ResponseService<S> {
        ResponseService { inner, layer: *self }
    }
}

/// The service of [`ResponseLayer`].
#[derive(Clone)]
pub struct ResponseService<S> {
    inner: S,
    layer: ResponseLayer,
}

impl<S: Clone> ResponseService<S> {
    /// The same service for a peer that may call only a part of it.
    pub(super) fn for_peer(&self, admission: Admission) -> Self {
        let surfaces = self.layer.surfaces.within(admission.surfaces);
        let layer = ResponseLayer { surfaces, admission, ..self.layer };
        Self { inner: self.inner.clone(), layer }
    }
}

impl<S> Service<Request<Body>> for ResponseService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let id = RequestId::settle(request.headers_mut());
        request.extensions_mut().insert(id.clone());
        // Which callers may call a gRPC method depends on the address that received the call.
        request.extensions_mut().insert(self.layer.surfaces);
        let (is_head, asker) = (request.method() == Method::HEAD, Asker::of(&request));
        let hook = hook::client(&request);
        let span = span::start(&request, &id);
        let answer = match self.layer.refusal(&request) {
            Some(refusal) => Stage::Refused { refusal: Some(refusal) },
            None => self.route(request, &id, &span),
        };
        ResponseFuture { answer, is_head, asker, hook, id, span, https: self.layer.https }
    }
}

impl<S: Service<Request<Body>>> ResponseService<S> {
    /// Calls the router; a panic, now or later, ends this request only.
    fn route(&mut self, request: Request<Body>, id: &RequestId, span: &Span) -> Stage<S::Future> {
        let inner = &mut self.inner;
        match catch_unwind(AssertUnwindSafe(|| {
            span.in_scope(|| in_request(id.header(), || inner.call(request)))
        })) {
            Ok(answer) => {
                let answer = of_request(id.header(), answer.instrument(span.clone()));
                Stage::Routed { answer: AssertUnwindSafe(answer).catch_unwind() }
            }
            Err(panic) => {
                report(&*panic, id);
                Stage::Refused { refusal: Some(ApiError::plain(ErrorCode::Internal)) }
            }
        }
    }
}

type Guarded<F> = CatchUnwind<AssertUnwindSafe<TaskLocalFuture<HeaderValue, Instrumented<F>>>>;

pin_project! {
    #[project = StageProjection]
    enum Stage<F> {
        Routed { #[pin] answer: Guarded<F> },
        Refused { refusal: Option<ApiError> },
    }
}

pin_project! {
    /// The future of a response.
    pub struct ResponseFuture<F> {
        #[pin]
        answer: Stage<F>,
        // Whether the response has no body.
        is_head: bool,
        asker: Asker,
        // The coding agent whose hook this is.
        hook: Option<Client>,
        id: RequestId,
        span: Span,
        https: bool,
    }
}

impl<F> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (asker, id) = (&*this.asker, &*this.id);
        let mut response = match this.answer.project() {
            StageProjection::Refused { refusal } => match refusal.take() {
                Some(refusal) => asker.refuse(refusal, id),
                None => return Poll::Pending, // polled after completion, which callers do not do
            },
            StageProjection::Routed { answer } => match ready!(answer.poll(context)) {
                Ok(Ok(response)) => asker.complete(response, id),
                Ok(Err(never)) => match never {},
                Err(panic) => {
                    report(&*panic, id);
                    asker.refuse(ApiError::plain(ErrorCode::Internal), id)
                }
            },
        };
        span::end(this.span, &response, asker.is_grpc());
        if let Some(client) = *this.hook {
            response = hook::closed(client, response, id);
        }
        if *this.is_head {
            drop_body(&mut response);
        }
        headers::put_on(&mut response, *this.https);
        response.headers_mut().insert(request_id::NAME, id.of_response());
        Poll::Ready(Ok(response))
    }
}

/// Drops the body of a response to HEAD. Its length stays in the headers. The router has already
/// dropped the bodies of its own responses.
fn drop_body(response: &mut Response<Body>) {
    if let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > 0) {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| bytes.into());
    }
    *response.body_mut() = Body::empty();
}

/// Logs a panic; the client gets only the request's id.
fn report(panic: &(dyn Any + Send), id: &RequestId) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("not text");
    metrics::counter!("authority_transport_panics_total").increment(1);
    tracing::error!(request.id = id.as_str(), panic = text, "caught a panic of a request handler");
}
