//! Refuses calls for decisions while the queue is full, or above a limit, before their bodies are
//! read.
//!
//! A refusal here costs only the reading of the request's head and the check of its credential.
//! Other calls wait for a place in `DecisionQueue::enter`, where their size is known.

use std::{convert::Infallible, sync::Arc};

use axum::{body::Body, response::Response};
use futures_util::future::{BoxFuture, Either};
use http::{Extensions, Request};
use tonic::Status;
use tower::{Layer, Service};

use super::{
    deciding::decides,
    wrapped::{Around, Wrapped},
};
use authority_api::{deadline::Deadline, error::ApiError, identity::Caller};
use authority_graph::Graph;
use authority_ids::TenantId;
use authority_runtime::{
    queue::{self, Cause, DecisionQueue},
    rates::DecisionRates,
};
use authority_store::Store;

/// A node's information about its load. Cheap to clone.
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

    /// Checks a call. `extensions` has the call's caller and deadline.
    ///
    /// # Errors
    /// `rate_limited`: the call is for decisions and would be refused.
    pub(super) async fn look(&self, rpc: &str, extensions: &Extensions) -> Result<(), ApiError> {
        let Some(refusal) = self.refusal(rpc, extensions) else { return Ok(()) };
        Err(refusal.paced(&self.queue, Deadline::of(extensions)).await)
    }

    /// Returns the refusal of a call; `None` if the call is admitted. Calls of the owner are always
    /// admitted here, because their tenant is in the body.
    fn refusal(&self, rpc: &str, extensions: &Extensions) -> Option<Refusal> {
        let caller = extensions.get::<Caller>().filter(|_| decides(rpc))?;
        let tenant_id = caller.tenant()?.clone();
        let limited = self.rates.refusal(caller).map(|error| (Cause::RateLimit, error));
        let full = || self.queue.is_full_for(&tenant_id).then(|| (Cause::QueueFull, queue::full()));
        let (cause, error) = limited.or_else(full)?;
        Some(Refusal { tenant_id, cause, error })
    }
}

/// A call's refusal, before it is sent.
struct Refusal {
    tenant_id: TenantId,
    cause: Cause,
    error: ApiError,
}

impl Refusal {
    /// Returns the error when it may be sent.
    async fn paced(self, queue: &DecisionQueue, deadline: Deadline) -> ApiError {
        queue.pace(&self.tenant_id, self.cause, deadline).await;
        self.error
    }
}

/// The layer around the gRPC methods, inside authentication. Shared, because it is cloned for each
/// call.
#[derive(Clone)]
pub(super) struct OverloadLayer(pub(super) Arc<Overload>);

impl<S> Layer<S> for OverloadLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for OverloadLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, request: Request<Body>) -> Self::Future {
        let extensions = request.extensions();
        let Some(refusal) = self.0.refusal(request.uri().path(), extensions) else {
            return Either::Left(inner.call(request));
        };
        let (queue, deadline) = (self.0.queue.clone(), Deadline::of(extensions));
        Either::Right(Box::pin(async move {
            Ok(Status::from(refusal.paced(&queue, deadline).await).into_http())
        }))
    }
}
