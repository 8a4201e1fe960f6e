//! The path of a call for a decision: the layers of [`Served`](super::served) as one service,
//! without a router.

use std::{
    convert::Infallible,
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};

use authority_api::identity::Authenticated;
use authority_model::service::Service as Methods;
use axum::body::Body;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either},
};
use http::{HeaderValue, Method, Request, Response, Version, header};
use tonic::{codegen::StdError, service::Routes};
use tower::Service;

use super::{connections, deciding::decides, host::GRPC_LIMIT};
use crate::{
    routes::ROUTES,
    transport::{Direct, is_grpc},
};

/// The services with methods that decide. Cheap to clone.
#[derive(Clone)]
pub(super) struct Deciding(Arc<[Methods]>);

impl Deciding {
    /// Selects the services with methods that decide from all services.
    pub(super) fn of(services: &[Methods]) -> Self {
        let of = |service: &&Methods| service.paths().any(|path| decides(&path));
        let limited = |service: &Methods| service.clone().limited_to(GRPC_LIMIT);
        Self(services.iter().filter(of).map(limited).collect())
    }
}

impl<B> Service<Request<B>> for Deciding
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        connections::note_tenant(request.extensions());
        let path = request.uri().path();
        let Some(service) = self.0.iter().find(|service| service.has(path)) else {
            let status = tonic::Status::unimplemented("no such method");
            return Box::pin(ready(Ok(status.into_http())));
        };
        service.clone().call(request)
    }
}

/// The services that the REST gateway calls after it has admitted a call. Decisions bypass the
/// router.
#[derive(Clone)]
pub(super) struct BelowRest {
    pub(super) deciding: Deciding,
    pub(super) others: Authenticated<Routes>,
}

impl Service<Request<tonic::body::Body>> for BelowRest {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<tonic::body::Body>>::poll_ready(&mut self.others, context)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        if decides(request.uri().path()) {
            self.deciding.call(request)
        } else {
            self.others.call(request)
        }
    }
}

/// Sends a call for a decision to the service for its transport, and returns every other call.
pub(super) fn direct<G, R>(grpc: G, rest: R) -> Direct
where
    G: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    G: Clone + Send + Sync + 'static,
    G::Future: Send + 'static,
    R: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    R: Clone + Send + Sync + 'static,
    R::Future: Send + 'static,
{
    let paths = ROUTES.iter().filter(|route| decides(route.rpc) && route.variables.is_empty());
    let paths: Arc<[_]> = paths.map(|route| route.path).collect();
    Arc::new(move |request| {
        let path = request.uri().path();
        let is_rest = || request.method() == Method::POST && !is_grpc(request.headers());
        if is_native(&request) && decides(path) {
            Either::Left(grpc.clone().call(request).boxed())
        } else if is_rest() && paths.contains(&path) {
            Either::Left(rest.clone().call(request).boxed())
        } else {
            Either::Right(request)
        }
    })
}

/// Whether a request is plain gRPC: HTTP/2, not gRPC-Web, without a content coding.
fn is_native(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    request.version() == Version::HTTP_2
        && request.method() == Method::POST
        && matches!(kind, Some(b"application/grpc" | b"application/grpc+proto"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}
