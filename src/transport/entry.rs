//! The entry point of the service. Some calls bypass the router.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, body::Body, http::Request, response::Response, routing::future::RouteFuture};
use futures_util::future::{BoxFuture, Either};
use tower::{Layer as _, Service, util::Either as EitherService};
use tower_http::cors::Cors;

use authority_model::surfaces::Surfaces;

use super::{
    cors,
    response::{ResponseLayer, ResponseService},
    settings::Settings,
    tls::Admission,
};

/// The response to a call that does not go through the router.
pub(super) type Answering = BoxFuture<'static, Result<Response, Infallible>>;

/// Answers a call, or returns it for the router.
///
/// For each call, a router clones and boxes every layer. For a small call that is most of the work.
pub type Direct = Arc<dyn Fn(Request<Body>) -> Either<Answering, Request<Body>> + Send + Sync>;

/// The services and pages behind all addresses, without the response layer. Cheap to clone.
#[derive(Clone)]
pub struct Entry {
    pub direct: Option<Direct>,
    pub router: Router,
}

impl From<Router> for Entry {
    fn from(router: Router) -> Self {
        Self { direct: None, router }
    }
}

impl Service<Request<Body>> for Entry {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Answering, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(())) // the router is always ready
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let request = match &self.direct {
            Some(direct) => match direct(request) {
                Either::Left(answering) => return Either::Left(answering),
                Either::Right(request) => request,
            },
            None => request,
        };
        Either::Right(self.router.call(request))
    }
}

type Layered = ResponseService<EitherService<Cors<Entry>, Entry>>;

/// Everything that responds at an address. Cheap to clone.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a box would be allocated for each call")]
pub enum Answers {
    /// The services and pages, with the response layer. It is not a router, because a router clones
    /// and boxes every layer for each call.
    Layered(Layered),
    /// A complete router, without the response layer.
    Router(Router),
}

impl Answers {
    /// Adds the headers, limits and panic handling of every response.
    pub fn layered(entry: Entry, settings: &Settings) -> Self {
        let inner = match cors::layer(settings) {
            Some(cors) => EitherService::Left(cors.layer(entry)),
            None => EitherService::Right(entry),
        };
        Self::Layered(ResponseLayer::new(settings).layer(inner))
    }

    /// The answers to a peer that may call only a part of them.
    pub(super) fn for_peer(&self, admission: Admission, settings: &Settings) -> Self {
        match self {
            Self::Layered(layered) => Self::Layered(layered.for_peer(admission)),
            // A router has no surfaces: it is for a peer or it is not.
            Self::Router(_) if admission.surfaces == Surfaces::NONE => {
                Self::layered(Router::new().into(), settings).for_peer(admission, settings)
            }
            Self::Router(router) => Self::Router(router.clone()),
        }
    }
}

impl From<Router> for Answers {
    fn from(router: Router) -> Self {
        Self::Router(router)
    }
}

impl Service<Request<Body>> for Answers {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<<Layered as Service<Request<Body>>>::Future, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(())) // services and routers are always ready
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self {
            Self::Layered(layered) => Either::Left(layered.call(request)),
            Self::Router(router) => Either::Right(router.call(request)),
        }
    }
}
