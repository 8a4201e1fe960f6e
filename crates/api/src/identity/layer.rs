//! The same check as a tower layer, around the gRPC services.

use std::{
    net::IpAddr,
    task::{Context, Poll},
};

use authority_model::access::Surfaces;
use futures_util::future::BoxFuture;
use http::{Extensions, Request, Response};
use tonic::Status;
use tower::{Layer, Service};

use super::{Caller, Identity, Via};
use crate::error::ApiError;

/// Where a request came from, as the transport left it in the extensions.
type Peer = fn(&Extensions) -> Option<IpAddr>;

/// Authenticates every request that does not carry a [`Caller`] yet (the REST side checks its own
/// before it reads a body), and puts the caller into its extensions. The transport has put the
/// [`Surfaces`] of the address there; a call without them came to no address, and reaches none.
#[derive(Clone)]
pub struct AuthenticateLayer {
    identity: Identity,
    peer: Peer,
}

impl AuthenticateLayer {
    pub fn new(identity: Identity, peer: Peer) -> Self {
        Self { identity, peer }
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Authenticated<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authenticated { inner, identity: self.identity.clone(), peer: self.peer }
    }
}

/// A service behind [`AuthenticateLayer`].
#[derive(Clone)]
pub struct Authenticated<S> {
    inner: S,
    identity: Identity,
    peer: Peer,
}

impl<S, In, Out> Service<Request<In>> for Authenticated<S>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send,
    In: Send + 'static,
    Out: Default,
{
    type Response = Response<Out>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<In>) -> Self::Future {
        // The one that is ready is the one to call; its clone waits for its turn.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        if request.extensions().get::<Caller>().is_some() {
            return Box::pin(inner.call(request));
        }
        let identity = self.identity.clone();
        let peer = (self.peer)(request.extensions());
        let surfaces = request.extensions().get().copied().unwrap_or(Surfaces::NONE);
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            // The body need not be Sync, so what is borrowed while waiting is the headers alone.
            let headers = std::mem::take(request.headers_mut());
            let found = identity.authenticate(&path, Via::Grpc(surfaces), &headers, peer).await;
            *request.headers_mut() = headers;
            match found {
                Ok(caller) => {
                    request.extensions_mut().insert(caller);
                    inner.call(request).await
                }
                Err(error) => Ok(Status::from(ApiError::from(error)).into_http()),
            }
        })
    }
}
