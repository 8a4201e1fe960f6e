//! Authentication as a tower layer around the gRPC services.

use std::{
    net::IpAddr,
    task::{Context, Poll},
};

use authority_model::surfaces::Surfaces;
use futures_util::future::BoxFuture;
use http::{Extensions, Request, Response};
use tonic::Status;
use tower::{Layer, Service};

use super::{authenticate::Identity, caller::Caller, client_address::ClientAddress, rules::Via};
use crate::error::ApiError;

/// Reads the client's address, which the transport stored in the extensions.
type Peer = fn(&Extensions) -> Option<IpAddr>;

/// Authenticates every request that has no [`Caller`] yet (REST authenticates before it reads a
/// body), and stores the caller in its extensions. The transport has already stored the
/// [`Surfaces`] of the listening address there; without them, every call is refused.
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
        // The service that was polled ready must be called. Its clone takes its place for the next
        // call.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        if request.extensions().get::<Caller>().is_some() {
            return Box::pin(inner.call(request));
        }
        let identity = self.identity.clone();
        let peer = (self.peer)(request.extensions());
        let surfaces = request.extensions().get().copied().unwrap_or(Surfaces::NONE);
        if let Some(address) = peer {
            request.extensions_mut().insert(ClientAddress(address));
        }
        Box::pin(async move {
            // The body might not be `Sync`. Only the path and the headers are borrowed across the
            // await.
            let (uri, headers) = (request.uri().clone(), std::mem::take(request.headers_mut()));
            let found =
                identity.authenticate(uri.path(), Via::Grpc(surfaces), &headers, peer).await;
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
