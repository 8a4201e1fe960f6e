//! Bounds the open streams of each tenant on a node, whatever their method: a stream has no deadline, and takes memory
//! for as long as its caller likes. A node that stops opens none: it would end at once.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, ready},
};

use authority_ids::TenantId;
use axum::{body::Body, response::Response};
use futures_util::future::{Either, Ready, ready as at_once};
use http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::{Layer, Service};

use crate::routes::ROUTES;
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};

/// Streams of one tenant on a node; each takes some tens of KiB.
pub(super) const MOST: usize = 2000;

/// The open streams by tenant, and the layer that counts them, inside authentication. Cheap to clone.
#[derive(Clone)]
pub(super) struct StreamsLayer {
    counts: Arc<Mutex<HashMap<TenantId, usize>>>,
    most: usize,
    stopping: CancellationToken,
}

impl StreamsLayer {
    /// At most so many streams of a tenant.
    pub(super) fn new(most: usize, stopping: CancellationToken) -> Self {
        Self { counts: Arc::default(), most, stopping }
    }

    /// The place of a stream; `None` if it is of no tenant.
    fn admit(&self, tenant_id: Option<&TenantId>) -> Result<Option<Open>, ApiError> {
        if self.stopping.is_cancelled() {
            let text =
                "the service is stopping; open the stream again, which another node will serve";
            return Err(ApiError::new(ErrorCode::Unavailable, text).with("retry_after", "1"));
        }
        tenant_id.map(|tenant_id| self.open(tenant_id)).transpose()
    }

    fn open(&self, tenant_id: &TenantId) -> Result<Open, ApiError> {
        let mut counts = self.counts.lock();
        let count = counts.entry(tenant_id.clone()).or_default();
        let most = self.most;
        if *count >= most {
            let text = format!("the tenant has {most} streams open on this node; close one");
            return Err(ApiError::new(ErrorCode::RateLimited, text).with("retry_after", "10"));
        }
        *count += 1;
        Ok(Open { streams: self.clone(), tenant_id: tenant_id.clone() })
    }
}

/// An open stream of a tenant, until it is dropped.
struct Open {
    streams: StreamsLayer,
    tenant_id: TenantId,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut counts = self.streams.counts.lock();
        if let Some(count) = counts.get_mut(&self.tenant_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant_id);
            }
        }
    }
}

impl<S> Layer<S> for StreamsLayer {
    type Service = StreamsService<S>;

    fn layer(&self, inner: S) -> StreamsService<S> {
        StreamsService { inner, streams: self.clone() }
    }
}

/// The service of [`StreamsLayer`].
#[derive(Clone)]
pub(super) struct StreamsService<S> {
    inner: S,
    streams: StreamsLayer,
}

impl<S> Service<Request<Body>> for StreamsService<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<ResponseFuture<S::Future>, Ready<Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !STREAMS.contains(request.uri().path()) {
            return Either::Left(ResponseFuture { answer: self.inner.call(request), open: None });
        }
        let caller = request.extensions().get::<Caller>();
        match self.streams.admit(caller.and_then(Caller::tenant)) {
            Ok(open) => Either::Left(ResponseFuture { answer: self.inner.call(request), open }),
            Err(refusal) => Either::Right(at_once(Ok(Status::from(refusal).into_http()))),
        }
    }
}

/// The methods that answer with a stream.
static STREAMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| ROUTES.iter().filter(|route| route.streams).map(|route| route.rpc).collect());

pin_project! {
    /// The response, whose body holds the place of its stream.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        answer: F,
        open: Option<Open>,
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
        Poll::Ready(Ok(match this.open.take() {
            Some(open) => response.map(|body| held(body, open)),
            None => response,
        }))
    }
}

/// The same body, which has the stream's place until it is dropped.
fn held(body: Body, open: Open) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _ = &open;
        frame
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer() -> StreamsLayer {
        StreamsLayer::new(MOST, CancellationToken::new())
    }

    #[test]
    fn a_tenant_has_its_number_of_streams_and_no_more() {
        let (streams, own) = (layer(), TenantId::from_slug("own").unwrap());
        let mut open: Vec<_> = (0..MOST).map(|_| streams.open(&own).unwrap()).collect();
        assert!(streams.open(&own).is_err_and(|refused| refused.code == ErrorCode::RateLimited));
        assert!(streams.open(&TenantId::from_slug("other").unwrap()).is_ok());
        open.pop();
        open.push(streams.open(&own).unwrap());
        drop(open);
        assert!(streams.counts.lock().is_empty());
    }

    #[test]
    fn a_node_that_stops_opens_none() {
        let streams = layer();
        assert!(streams.admit(None).is_ok_and(|open| open.is_none()));
        streams.stopping.cancel();
        assert!(streams.admit(None).is_err_and(|refused| refused.code == ErrorCode::Unavailable));
    }

    #[test]
    fn the_methods_that_stream_are_known() {
        assert!(STREAMS.contains("/authority.runtime.v1.RuntimeService/WatchStopConditions"));
        assert!(!STREAMS.contains("/authority.runtime.v1.RuntimeService/Evaluate"));
    }
}
