//! Ends a gRPC stream at its caller's own deadline, with the status of a passed deadline.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::future::Either;
use http::{HeaderMap, Request};
use http_body::{Body as HttpBody, Frame};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tower::{Layer, Service};

use super::{
    deadline::{CallerDeadline, exceeded},
    wrapped::{Around, Wrapped},
};

/// The layer around the gRPC methods. It is inside the gRPC-Web layer, which encodes trailers in
/// its own way.
#[derive(Clone)]
pub(super) struct StreamDeadlineLayer;

impl<S> Layer<S> for StreamDeadlineLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for StreamDeadlineLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<S::Future, ResponseFuture<S::Future>>;

    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future {
        let callers = request.extensions().get::<CallerDeadline>().copied();
        let answer = inner.call(request);
        match callers {
            None => Either::Left(answer),
            Some(CallerDeadline(deadline)) => Either::Right(ResponseFuture {
                answer,
                end: Some(sleep_until(deadline.at().into())),
            }),
        }
    }
}

pin_project! {
    /// The response with a deadline on its stream.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        answer: F,
        end: Option<Sleep>,
    }
}

impl<F> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Ok(response) = ready!(this.answer.poll(context));
        Poll::Ready(Ok(match this.end.take() {
            Some(end) => response.map(|body| Body::new(DeadlineBody { body: Some(body), end })),
            None => response,
        }))
    }
}

pin_project! {
    /// A body that ends at its caller's deadline.
    struct DeadlineBody {
        // `None` once the body has ended; its source is then dropped.
        body: Option<Body>,
        #[pin]
        end: Sleep,
    }
}

impl HttpBody for DeadlineBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.project();
        let Some(body) = this.body.as_mut() else { return Poll::Ready(None) };
        // The deadline is polled first: a stream that always has data must also end.
        if this.end.poll(context).is_pending() {
            return Pin::new(body).poll_frame(context);
        }
        *this.body = None;
        let mut trailers = HeaderMap::new();
        // The header value is valid because the text is ours.
        let _ = exceeded().add_header(&mut trailers);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }
}
