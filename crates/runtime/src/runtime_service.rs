//! The operations that runtimes call: evaluate, authorize, batches; and the streams that they watch.

use authority_model::{
    proto::runtime::{
        AuthorizeRequest, AuthorizeResponse, BatchError, BatchEvaluateRequest,
        BatchEvaluateResponse, BatchProblem, BatchResult, DecisionRequest, DecisionUpdate,
        EvaluateDecisionResponse, EvaluateRequest, EvaluateResponse, StopConditionEvent,
        WatchDecisionRequest, WatchStopConditionsRequest,
    },
    service::{Replies, RuntimeService},
    validate::Violations,
};
use futures_util::future::join_all;
use tonic::{Request, Response, Status};

use super::Runtime;
use authority_api::{
    deadline::Deadline,
    error::ApiError,
    identity::{Caller, admitted, caller, idempotency_key},
};

#[tonic::async_trait]
impl RuntimeService for Runtime {
    async fn evaluate(
        &self,
        call: Request<EvaluateRequest>,
    ) -> Result<Response<EvaluateResponse>, Status> {
        let (caller, by) = (caller(&call)?, Deadline::of(call.extensions()));
        let (metadata, _, asked) = call.into_parts();
        Ok(self
            .decide_idempotent("evaluate", &caller, idempotency_key(&metadata)?, by, asked)
            .await?)
    }

    async fn authorize(
        &self,
        call: Request<AuthorizeRequest>,
    ) -> Result<Response<AuthorizeResponse>, Status> {
        let (caller, by) = (caller(&call)?, Deadline::of(call.extensions()));
        let (metadata, _, asked) = call.into_parts();
        Ok(self
            .decide_idempotent("authorize", &caller, idempotency_key(&metadata)?, by, asked)
            .await?)
    }

    async fn batch_evaluate(
        &self,
        call: Request<BatchEvaluateRequest>,
    ) -> Result<Response<BatchEvaluateResponse>, Status> {
        let (caller, by) = (caller(&call)?, Deadline::of(call.extensions()));
        let (metadata, _, asked) = call.into_parts();
        let key = idempotency_key(&metadata)?;
        let most = asked.requests.len();
        let mut found = Violations::default();
        // Each request fails alone; only the batch itself is checked here.
        if most == 0 || most > 100 {
            found.add("requests", "must hold 1 to 100 requests");
        }
        ApiError::unless_clean(found)?;
        // They wait for one another's commit together, not one after the other.
        let results = asked.requests.into_iter().enumerate().map(|(place, asked)| {
            // Each request of a batch has a key of its own, made of the batch's.
            let key = key.as_ref().map(|key| format!("{key}#{place}"));
            self.one(&caller, key, by, asked)
        });
        Ok(Response::new(BatchEvaluateResponse { results: join_all(results).await }))
    }

    async fn watch_decision(&self, call: Request<WatchDecisionRequest>) -> Replies<DecisionUpdate> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.updates(caller, asked).await?))
    }

    async fn watch_stop_conditions(
        &self,
        call: Request<WatchStopConditionsRequest>,
    ) -> Replies<StopConditionEvent> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.stop_conditions(caller, asked).await?))
    }
}

impl Runtime {
    async fn one(
        &self,
        caller: &Caller,
        key: Option<String>,
        by: Deadline,
        asked: DecisionRequest,
    ) -> BatchResult {
        let answer = self.decide_idempotent("batch", caller, key, by, asked).await;
        match answer {
            Ok(answer) => {
                let answer: EvaluateDecisionResponse = answer.into_inner();
                BatchResult { answer: Some(answer), error: None }
            }
            Err(refusal) => {
                let details = refusal.violations.into_iter();
                let details = details.map(|v| BatchProblem { field: v.field, problem: v.problem });
                BatchResult {
                    answer: None,
                    error: Some(BatchError {
                        error: refusal.code.word().to_owned(),
                        message: refusal.message,
                        details: details.collect(),
                    }),
                }
            }
        }
    }
}
