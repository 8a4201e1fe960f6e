//! A tower service around another one, with the code of one layer.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use http::Request;
use tower::Service;

/// The code of a layer around a service of this kind.
pub(super) trait Around<S>: Clone {
    type Future: Future<Output = Result<Response, Infallible>>;

    /// Answers a call, by the inner service or without it.
    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future;
}

/// A service with a layer around it.
#[derive(Clone)]
pub(super) struct Wrapped<L, S> {
    layer: L,
    inner: S,
}

impl<L: Clone, S> Wrapped<L, S> {
    pub(super) fn new(layer: &L, inner: S) -> Self {
        Self { layer: layer.clone(), inner }
    }
}

impl<L, S> Service<Request<Body>> for Wrapped<L, S>
where
    L: Around<S>,
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = L::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> L::Future {
        self.layer.call(&mut self.inner, request)
    }
}
