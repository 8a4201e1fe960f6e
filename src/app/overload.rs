//! Refuses calls for decisions while the queue is full, or above a limit, before their bodies are read.
//!
//! Here a refusal costs a request's head and the check of its credential. What passes waits for a place in
//! `DecisionQueue::enter`, where its size is known.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use futures_util::future::{BoxFuture, Either};
use http::{Extensions, Request};
use tonic::Status;
use tower::{Layer, Service};

use super::deciding::decides;
use authority_api::{deadline::Deadline, error::ApiError, identity::Caller};
use authority_core::{graph::Graph, store::Store};
use authority_runtime::{
    queue::{self, DecisionQueue},
    rates::DecisionRates,
};

/// What a node knows of its load. Cheap to clone.
#[derive(Clone)]
pub(super) struct Overload {
    pub(super) queue: DecisionQueue,
    pub(super) rates: DecisionRates,
}

impl Overload {
    pub(super) fn new(graph: &Arc<Graph>, store: &Store) -> Self {
        let rates = DecisionRates::new(Arc::clone(graph), store.clone());
        Self { queue: DecisionQueue::default(), rates }
    }

    /// Checks a call whose caller and deadline are in its extensions.
    ///
    /// # Errors
    /// `rate_limited`: it is for decisions and would be refused.
    pub(super) async fn look(&self, rpc: &str, extensions: &Extensions) -> Result<(), ApiError> {
        let Some(refusal) = self.refusal(rpc, extensions) else { return Ok(()) };
        self.queue.pace(Deadline::of(extensions)).await;
        Err(refusal)
    }

    /// `None` for the owner, too: the tenant is in the body.
    fn refusal(&self, rpc: &str, extensions: &Extensions) -> Option<ApiError> {
        let caller = extensions.get::<Caller>().filter(|_| decides(rpc))?;
        let is_full = self.queue.is_full_for(caller.tenant()?);
        self.rates.refusal(caller).or_else(|| is_full.then(queue::full))
    }
}

/// The layer around the gRPC methods, inside authentication.
#[derive(Clone)]
pub(super) struct OverloadLayer(pub(super) Overload);

impl<S> Layer<S> for OverloadLayer {
    type Service = OverloadService<S>;

    fn layer(&self, inner: S) -> OverloadService<S> {
        OverloadService { inner, overload: self.0.clone() }
    }
}

/// The service of [`OverloadLayer`].
#[derive(Clone)]
pub(super) struct OverloadService<S> {
    inner: S,
    overload: Overload,
}

impl<S> Service<Request<Body>> for OverloadService<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let extensions = request.extensions();
        let Some(refusal) = self.overload.refusal(request.uri().path(), extensions) else {
            return Either::Left(self.inner.call(request));
        };
        let (queue, deadline) = (self.overload.queue.clone(), Deadline::of(extensions));
        Either::Right(Box::pin(async move {
            queue.pace(deadline).await;
            Ok(Status::from(refusal).into_http())
        }))
    }
}
