//! Layers in front of the gRPC services. A call that is not gRPC is refused as in REST; a gRPC call
//! to an unknown method is refused as in gRPC.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
};

use axum::{body::Body, response::Response};
use futures_util::future::{BoxFuture, Either};
use gateway_rest::{Fault, Host as _};
use http::{Method, Request, StatusCode};
use tonic::Status;
use tower::{Layer, Service};

use super::{
    host::RestHost,
    wrapped::{Around, Wrapped},
};
use crate::transport::{Peer, Surfaces, is_grpc};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Via,
};

/// The layer around the gRPC methods, which lets only gRPC calls through. Other calls are answered
/// as in REST: the credential is checked, then the response is 405 for another HTTP method and 415
/// for a body that is not gRPC.
#[derive(Clone)]
pub(super) struct GrpcOnlyLayer(pub(super) Arc<RestHost>);

impl<S> Layer<S> for GrpcOnlyLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for GrpcOnlyLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future {
        if request.method() == Method::POST
            && is_grpc(request.headers())
            && gateway_rest::content_coding(request.headers()).is_none()
        {
            return Either::Left(inner.call(request));
        }
        let host = Arc::clone(&self.0);
        Either::Right(Box::pin(async move { Ok(refused(&host, request).await) }))
    }
}

async fn refused(host: &RestHost, request: Request<Body>) -> Response {
    // Dropped before the await, because a body need not be `Sync`.
    let (parts, _) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().and_then(|peer| peer.client);
    let surfaces = parts.extensions.get().copied().unwrap_or(Surfaces::NONE);
    let via = Via::Grpc(surfaces);
    let admitted = host.identity.authenticate(parts.uri.path(), via, &parts.headers, peer).await;
    let fault = match (admitted, gateway_rest::content_coding(&parts.headers)) {
        (Err(error), _) => Fault::from(Status::from(ApiError::from(error))),
        (Ok(_), _) if parts.method != Method::POST => {
            let message =
                format!("this path is a gRPC method: it takes POST, not {}", parts.method);
            let refusal = ApiError::new(ErrorCode::MethodNotAllowed, message);
            Fault::from(Status::from(refusal.with("allow", "POST")))
        }
        (Ok(_), Some(coding)) => gateway_rest::unread_coding(&coding),
        (Ok(_), None) => {
            let message = "this path is a gRPC method: \
                 send its message as `Content-Type: application/grpc`";
            Fault::from(Status::from(ApiError::new(ErrorCode::UnsupportedMediaType, message)))
        }
    };
    gateway_rest::refusal(host, fault, host.request_id(&parts).as_ref())
}

/// The layer around everything that is not a gRPC method. A gRPC call gets 404, which the response
/// layer turns into UNIMPLEMENTED.
#[derive(Clone)]
pub(super) struct UnknownMethodLayer;

impl<S> Layer<S> for UnknownMethodLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for UnknownMethodLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<S::Future, Ready<Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future {
        if request.method() != Method::POST || !is_grpc(request.headers()) {
            return Either::Left(inner.call(request));
        }
        let mut unknown = Response::new(Body::empty());
        *unknown.status_mut() = StatusCode::NOT_FOUND;
        Either::Right(ready(Ok(unknown)))
    }
}
