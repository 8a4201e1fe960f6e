//! Limits the open streams of each tenant and of each caller on a node, across methods.
//!
//! A stream has no deadline, and takes memory for as long as its caller wants. A node that is
//! stopping opens no streams: they would end at once.

use std::{
    collections::HashSet,
    convert::Infallible,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, ready},
};

use axum::{body::Body, response::Response};
use futures_util::future::{Either, Ready, ready as at_once};
use http::Request;
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::{Layer, Service};

use super::wrapped::{Around, Wrapped};
use crate::routes::ROUTES;
use authority_api::{
    error::{ApiError, ErrorCode, LIMIT_HEADERS},
    identity::Caller,
    stream::{Places, StreamPlace},
};

/// The maximum number of streams of one tenant on a node. Each stream takes some tens of KiB of
/// memory.
pub(super) const MOST: usize = 2000;
/// The number of places of one caller is the tenant's number of places, divided by this.
const CALLERS: usize = 2;

/// The layer that takes a place for each open stream. It is inside authentication. Cheap to clone.
#[derive(Clone)]
pub(super) struct StreamsLayer {
    places: Places,
    stopping: CancellationToken,
}

impl StreamsLayer {
    /// Limits the streams of a tenant to `most`.
    pub(super) fn new(most: usize, stopping: CancellationToken) -> Self {
        Self { places: Places::new("streams", most, most.div_ceil(CALLERS)), stopping }
    }

    /// Takes a place for a stream; `None` if its caller has no tenant.
    fn admit(&self, caller: Option<&Caller>) -> Result<Option<StreamPlace>, ApiError> {
        if self.stopping.is_cancelled() {
            let text = "the service is stopping; open the stream again: another node will serve it";
            return Err(ApiError::new(ErrorCode::Unavailable, text).with("retry_after", "1"));
        }
        let Some((caller, tenant_id)) = caller.and_then(|one| Some((one, one.tenant()?))) else {
            return Ok(None);
        };
        self.places.enter(tenant_id, caller.identity()).map(Some)
    }
}

impl<S> Layer<S> for StreamsLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for StreamsLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<ResponseFuture<S::Future>, Ready<Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future {
        if !STREAMS.contains(request.uri().path()) {
            return Either::Left(ResponseFuture { answer: inner.call(request), open: None });
        }
        let caller = request.extensions().get::<Caller>();
        match self.admit(caller) {
            Ok(open) => Either::Left(ResponseFuture { answer: inner.call(request), open }),
            Err(refusal) => Either::Right(at_once(Ok(Status::from(refusal).into_http()))),
        }
    }
}

/// The methods that return a stream.
static STREAMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| ROUTES.iter().filter(|route| route.streams).map(|route| route.rpc).collect());

pin_project! {
    /// The response. Its body keeps the place of its stream.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        answer: F,
        open: Option<StreamPlace>,
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
            Some(open) => held(response, open),
            None => response,
        }))
    }
}

/// Returns the response with the limits of streams. Its body keeps the stream's place until it is
/// dropped.
fn held(mut response: Response, open: StreamPlace) -> Response {
    let headers = response.headers_mut();
    // A method may have a smaller limit, which it has added. An error opens no stream.
    if !headers.contains_key(LIMIT_HEADERS[0]) && !headers.contains_key(Status::GRPC_STATUS) {
        open.limits().show(headers);
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &open;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use authority_api::identity::{CallerKind, Role};
    use authority_ids::TenantId;

    use super::*;

    fn layer() -> StreamsLayer {
        StreamsLayer::new(MOST, CancellationToken::new())
    }

    fn member(subject: &str) -> Caller {
        let kind = CallerKind::Member {
            tenant_id: TenantId::from_slug("own").unwrap(),
            role: Role::from("viewer"),
            issuer: String::from("https://id.example.org"),
            subject: subject.to_owned(),
            email: None,
        };
        Caller { kind, ..Caller::anonymous() }
    }

    /// One agent runtime may watch hundreds of permitted actions with one API key.
    #[test]
    fn a_caller_has_half_of_its_tenants_streams() {
        let streams = layer();
        let open = |subject: &str| streams.admit(Some(&member(subject)));
        let refused = |subject: &str| open(subject).err().unwrap().message;
        let mut all: Vec<_> = (0..1000).map(|_| open("first").unwrap().unwrap()).collect();
        assert!(refused("first").starts_with("this credential has 1000 streams"));
        all.extend((0..1000).map(|_| open("second").unwrap().unwrap()));
        assert!(refused("third").starts_with("the tenant has 2000 streams"));
        all.pop();
        assert!(open("third").is_ok());
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
