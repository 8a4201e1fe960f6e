//! The operations that runtimes call: evaluate, authorize, batches and streams.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{
        AuthorizeRequest, AuthorizeResponse, BatchEvaluateRequest, BatchEvaluateResponse,
        DecisionUpdate, EvaluateRequest, EvaluateResponse, StopConditionEvent,
        WatchDecisionRequest, WatchStopConditionsRequest,
    },
    service::{Replies, RuntimeService},
};
use tonic::{Request, Response, Status};

use super::{call::Call, decide::Decider, live::Watches};
use authority_api::{identity::admitted, rate_limit::AppliedLimits};

/// Serves `RuntimeService`.
pub(super) struct RuntimeHandlers {
    pub(super) decider: Arc<Decider>,
    pub(super) watches: Arc<Watches>,
}

#[tonic::async_trait]
impl RuntimeService for RuntimeHandlers {
    async fn evaluate(
        &self,
        call: Request<EvaluateRequest>,
    ) -> Result<Response<EvaluateResponse>, Status> {
        let (call, mut limits) = (Call::of(call)?, AppliedLimits::default());
        let done = self.decider.decide_idempotent("evaluate", call, &mut limits).await?;
        Ok(limits.shown_in(done.reply()))
    }

    async fn authorize(
        &self,
        call: Request<AuthorizeRequest>,
    ) -> Result<Response<AuthorizeResponse>, Status> {
        let (call, mut limits) = (Call::of(call)?, AppliedLimits::default());
        let done = self.decider.decide_idempotent("authorize", call, &mut limits).await?;
        Ok(limits.shown_in(done.reply()))
    }

    async fn batch_evaluate(
        &self,
        call: Request<BatchEvaluateRequest>,
    ) -> Result<Response<BatchEvaluateResponse>, Status> {
        let (call, mut limits) = (Call::of(call)?, AppliedLimits::default());
        let done = self.decider.decide_batch(call, &mut limits).await?;
        Ok(limits.shown_in(done.reply()))
    }

    async fn watch_decision(&self, call: Request<WatchDecisionRequest>) -> Replies<DecisionUpdate> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(Arc::clone(&self.watches).updates(caller, asked).await?))
    }

    async fn watch_stop_conditions(
        &self,
        call: Request<WatchStopConditionsRequest>,
    ) -> Replies<StopConditionEvent> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(Arc::clone(&self.watches).stop_conditions(caller, asked).await?))
    }
}
