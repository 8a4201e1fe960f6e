//! The way into the service: past the router for calls that have a shorter one.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, body::Body, http::Request, response::Response, routing::future::RouteFuture};
use futures_util::future::{BoxFuture, Either};
use tower::Service;

/// The response to a call that does not go through the router.
pub(super) type Answering = BoxFuture<'static, Result<Response, Infallible>>;

/// Answers a call, or returns it for the router.
///
/// A router clones and boxes each layer for each call, which is most of the work where the call itself is small.
pub type Direct = Arc<dyn Fn(Request<Body>) -> Result<Answering, Request<Body>> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) direct: Option<Direct>,
    pub(super) router: Router,
}

impl Service<Request<Body>> for Entry {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Answering, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(())) // as the router is
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let request = match &self.direct {
            Some(direct) => match direct(request) {
                Ok(answering) => return Either::Left(answering),
                Err(request) => request,
            },
            None => request,
        };
        Either::Right(self.router.call(request))
    }
}
