//! A batch of decisions; each succeeds or fails on its own.
//!
//! It waits for a place as a whole, so that a full queue refuses all of it or nothing.

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

use super::{call::Call, decide::Decider, queue::Size};
use authority_api::{error::ApiError, idempotency::Done};

/// The most requests in a batch.
const MOST: usize = 100;

impl Decider {
    /// The response is marked as repeated if each of its results is.
    ///
    /// # Errors
    /// The batch itself is empty or too long, a limit is reached, or the queue is full.
    pub(super) async fn decide_batch(
        &self,
        call: Call<BatchEvaluateRequest>,
    ) -> Result<Done<BatchEvaluateResponse>, ApiError> {
        let Call { caller, idempotency_key, deadline, place: _, message } = call;
        let mut found = Violations::default();
        if message.requests.is_empty() || message.requests.len() > MOST {
            found.add("requests", "must hold 1 to 100 requests");
        }
        ApiError::unless_clean(found)?;
        let size = Size { decisions: message.requests.len(), bytes: message.encoded_len() };
        let place = match caller.tenant() {
            Some(tenant) => {
                self.count(&caller, tenant, size.decisions, deadline).await?;
                Some(Arc::new(self.queue.enter(tenant, size, deadline).await?))
            }
            // The owner's may be of several tenants: each request counts and takes a place by itself.
            None => None,
        };
        // Concurrently, so that one commit can store them together.
        let results = message.requests.into_iter().enumerate().map(|(number, message)| {
            // Each request has an idempotency key derived from the batch's.
            let idempotency_key = idempotency_key.as_ref().map(|key| format!("{key}#{number}"));
            let (caller, place) = (caller.clone(), place.clone());
            self.one(Call { caller, idempotency_key, deadline, place, message })
        });
        let (results, replayed): (Vec<_>, Vec<_>) = join_all(results).await.into_iter().unzip();
        let message = BatchEvaluateResponse { results };
        Ok(Done { message, replayed: replayed.into_iter().all(|replayed| replayed) })
    }

    /// The result of one request, and whether it is a repeated one.
    async fn one(&self, call: Call<DecisionRequest>) -> (BatchResult, bool) {
        match self.decide_idempotent("batch", call).await {
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
