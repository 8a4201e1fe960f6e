//! A batch of decisions. Each decision succeeds or fails on its own.
//!
//! A tenant's batch takes one place in the queue. The queue therefore takes or refuses the batch as
//! a whole.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{
        BatchError, BatchEvaluateRequest, BatchEvaluateResponse, BatchProblem, BatchResult,
        DecisionRequest, EvaluateDecisionResponse,
    },
    validate::Violations,
};
use futures_util::future::join_all;
use prost::Message;

use super::{call::Call, decide::Decider, queue::Size, turn::Turn};
use authority_api::{error::ApiError, idempotency::Done, rate_limit::AppliedLimits};

/// The maximum number of requests in a batch.
const MOST: usize = 100;

impl Decider {
    /// Decides each request. The response is marked as repeated if all its results are repeated.
    /// Sets `limits` to the limits that apply to the batch.
    ///
    /// # Errors
    /// The batch itself is empty or too long, a limit is reached, or the queue is full.
    pub(super) async fn decide_batch(
        &self,
        call: Call<BatchEvaluateRequest>,
        limits: &mut AppliedLimits,
    ) -> Result<Done<BatchEvaluateResponse>, ApiError> {
        let Call { caller, idempotency_key, deadline, message, .. } = call;
        let mut found = Violations::default();
        if message.requests.is_empty() || message.requests.len() > MOST {
            found.add("requests", "must contain 1 to 100 requests");
        }
        ApiError::unless_clean(found)?;
        let size = Size { decisions: message.requests.len(), bytes: message.encoded_len() };
        let place = match caller.tenant() {
            Some(tenant) => {
                *limits = self.count(&caller, tenant, size.decisions, deadline).await?;
                Some(Arc::new(self.queue.enter(tenant, size, deadline).await?))
            }
            // The owner's requests may belong to several tenants. Each request is counted and takes
            // a place separately.
            None => None,
        };
        // The requests run concurrently. One commit can then store all their decisions.
        let turns = Turn::of_batch(size.decisions);
        let requests = message.requests.into_iter().zip(turns).enumerate();
        let results = requests.map(|(number, (message, turn))| {
            // Each request has an idempotency key derived from the batch's.
            let idempotency_key = idempotency_key.as_ref().map(|key| format!("{key}#{number}"));
            let (caller, place) = (caller.clone(), place.clone());
            let turn = Some(turn);
            self.one(Call { caller, idempotency_key, deadline, place, turn, message })
        });
        let (results, replayed): (Vec<_>, Vec<_>) = join_all(results).await.into_iter().unzip();
        let message = BatchEvaluateResponse { results };
        Ok(Done { message, replayed: replayed.into_iter().all(|replayed| replayed) })
    }

    /// Returns the result of one request, and whether it is a repeated result.
    async fn one(&self, call: Call<DecisionRequest>) -> (BatchResult, bool) {
        // Not returned, because requests of the owner may have different limits.
        let mut limits = AppliedLimits::default();
        match self.decide_idempotent("batch", call, &mut limits).await {
            Ok(Done { message, replayed }) => {
                let answer: EvaluateDecisionResponse = message;
                (BatchResult { answer: Some(answer), error: None }, replayed)
            }
            Err(error) => (BatchResult { answer: None, error: Some(batch_error(error)) }, false),
        }
    }
}

fn batch_error(error: ApiError) -> BatchError {
    let details = error.violations.into_iter();
    let details = details.map(|v| BatchProblem { field: v.field, problem: v.problem });
    BatchError {
        error: error.code.word().to_owned(),
        message: error.message,
        details: details.collect(),
    }
}
