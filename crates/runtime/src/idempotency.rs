//! Idempotency keys of decisions. The first response is repeated, byte for byte, for 24 hours.

use std::{sync::Arc, time::Duration};

use authority_ids::TenantId;
use authority_model::proto::runtime::{
    AuthorizeResponse, Decision, EvaluateDecisionResponse, EvaluateResponse,
};
use chrono::{DateTime, Utc};
use prost::Message;

use super::{
    call::Call,
    decide::{Decider, Reached, SCOPE},
    decided::Decided,
    decision_key::DecisionKey,
    fault::fault,
    normalize::{self, IntoDraft},
    permission_status::permission_status,
    queue::{Cause, Size},
    stored_permission::{StoredPermission, unreadable},
};
use authority_api::{
    deadline::Deadline,
    error::{ApiError, ErrorCode},
    idempotency::{self, Done, FirstAnswer, IdempotencyKey},
    identity::Caller,
    rate_limit::AppliedLimits,
};
use authority_decision::{Gathered, Reason, Request, StopCondition, moment};
use authority_graph as graph;
use authority_store::{Db, Scope};

/// The first pause before looking again for the response of a key that another request has claimed.
/// Each pause is twice as long as the one before, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// The minimum time until a waiting request's deadline. With less time left, the response states
/// that the first request is still running.
const LEAST_LEFT: Duration = Duration::from_millis(200);

/// An operation's response, built from a decision and stored as protobuf.
pub(super) trait Reply: Message + Default + for<'d> From<&'d Decided> {
    fn decision(&self) -> Decision;
}

macro_rules! replies {
    ($($reply:ty),*) => { $(
        impl Reply for $reply {
            fn decision(&self) -> Decision {
                self.decision()
            }
        }
    )* };
}
replies!(EvaluateResponse, AuthorizeResponse, EvaluateDecisionResponse);

impl Decider {
    /// Decides once for each idempotency key, and each time if a call has no key. Sets `limits` to
    /// the limits that apply to the call.
    pub(super) async fn decide_idempotent<A: IntoDraft, R: Reply>(
        &self,
        operation: &'static str,
        call: Call<A>,
        limits: &mut AppliedLimits,
    ) -> Result<Done<R>, ApiError> {
        let Call { caller, idempotency_key, deadline, place, mut turn, message } = call;
        let size = Size { decisions: 1, bytes: message.encoded_len() };
        let request = normalize::normalize(&caller, message)?;
        if caller.is_owner() {
            Box::pin(self.of_a_tenant::<A>(&request)).await?;
        }
        let enter = async || match &place {
            Some(place) => Ok(Arc::clone(place)),
            None => self.queue.enter(request.tenant(), size, deadline).await.map(Arc::new),
        };
        let Some(key) = idempotency_key else {
            if place.is_none() {
                *limits = self.count(&caller, request.tenant(), 1, deadline).await?;
            }
            let place = enter().await?;
            return match self.decide(operation, &caller, &request, None, &place, &mut turn).await? {
                Reached::Decided(decided) => Ok(Done::now(R::from(&decided))),
                Reached::KeyTaken => Err(ApiError::plain(ErrorCode::Internal)),
            };
        };
        let asked = serde_json_canonicalizer::to_vec(&*request).map_err(fault)?;
        let key = DecisionKey {
            key: IdempotencyKey::new(&caller, operation, key, &asked)
                .within(Some(request.tenant())),
            answer: |decided| R::from(decided).encode_to_vec(),
        };
        let repeat = async |first: First| {
            let done: Done<R> = first.kept.read()?;
            if matches!(done.message.decision(), Decision::Allow | Decision::AllowWithConstraints) {
                // Judging the permission again costs as much as a decision, so the repetition also
                // waits for a place in the queue.
                let _place = enter().await?;
                Box::pin(self.check_in_force(&caller, &request, &first)).await?;
            }
            Ok(done)
        };
        if let Some(first) = self.first_answer(&request, &key.key).await? {
            // A repeated response does not count, and no limit refuses it.
            *limits = self.rates.take(&caller, request.tenant(), 0).await.unwrap_or_default();
            return Box::pin(repeat(first)).await;
        }
        if place.is_none() {
            *limits = self.count(&caller, request.tenant(), 1, deadline).await?;
        }
        let mut pause = FIRST_PAUSE;
        loop {
            {
                // The place is released before the wait for another request.
                let place = enter().await?;
                match self
                    .decide(operation, &caller, &request, Some(&key), &place, &mut turn)
                    .await?
                {
                    Reached::Decided(decided) => return Ok(Done::now(R::from(&decided))),
                    Reached::KeyTaken => {}
                }
            }
            if let Some(first) = self.first_answer(&request, &key.key).await? {
                return Box::pin(repeat(first)).await;
            }
            // The request that claimed the key has not committed. If it fails, the key becomes free
            // again.
            if deadline.left() < pause + LEAST_LEFT {
                let running = ApiError::plain(ErrorCode::IdempotencyInProgress);
                return Err(running.with("retry_after", "1"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Counts a call for the limits of its tenant and its API key.
    ///
    /// # Errors
    /// `rate_limited`: a limit is exceeded.
    pub(super) async fn count(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        decisions: usize,
        deadline: Deadline,
    ) -> Result<AppliedLimits, ApiError> {
        let counted = self.rates.take(caller, tenant_id, decisions).await;
        if counted.as_ref().is_err_and(|refusal| refusal.code == ErrorCode::RateLimited) {
            Box::pin(self.queue.pace(tenant_id, Cause::RateLimit, deadline)).await;
        }
        counted
    }

    /// Checks that the tenant of an owner's request exists. The request's subject determines this
    /// tenant.
    async fn of_a_tenant<A: IntoDraft>(&self, request: &Request) -> Result<(), ApiError> {
        // The creation of a tenant raises its revision to 1.
        match self.facts.graph.tenant_at(request.tenant(), 1).await {
            Ok(_) => Ok(()),
            Err(graph::Error::Behind { .. }) => {
                let problem = format!(
                    "belongs to `{}`, which is not a tenant of this installation",
                    request.tenant_id
                );
                Err(ApiError::field(normalize::named::<A>("subject"), problem))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn first_answer(
        &self,
        request: &Request,
        key: &IdempotencyKey,
    ) -> Result<Option<First>, ApiError> {
        let scope = Scope::service();
        let (key, tenant_id, now) = (key.clone(), request.tenant().clone(), self.clock.now());
        // `write_tx` runs in a task of its own. A caller that disconnects then leaves no busy
        // connection behind.
        let read = async move |db: &mut Db| first(db, &key, &tenant_id, now).await;
        Ok(Box::pin(self.facts.store.write_tx(&scope, read)).await?)
    }

    /// Checks that an allow would still be permitted on current authority. Called before the allow
    /// is repeated.
    async fn check_in_force(
        &self,
        caller: &Caller,
        request: &Request,
        first: &First,
    ) -> Result<(), ApiError> {
        let handle = self.facts.graph.tenant_at(request.tenant(), first.revision).await?;
        let (handle, now) = (handle.as_ref(), self.clock.now());
        self.credentials.check(caller, SCOPE, Some(&request.subject), now)?;
        let stored = first.permission.as_ref().ok_or_else(unreadable)?;
        let question = stored.question().map_err(|error| {
            tracing::warn!(%error, "failed to read back a permission to repeat it");
            unreadable()
        })?;
        let permitted = &question.permitted;
        let (_, status) = permission_status(handle, permitted, now);
        if let Some(reason) = status.stopped {
            return Err(ended(permitted.condition(reason), reason));
        }
        if question.valid_until <= now {
            let end = moment::text(question.valid_until);
            let text = format!(
                "the permission for this key expired at {end} (`valid_until`); ask again with a new \
                 Idempotency-Key"
            );
            return Err(ApiError::new(ErrorCode::DecisionStopped, text).with("valid_until", end));
        }
        let nothing = Gathered::default;
        let gathered =
            handle.map_or_else(nothing, |tenant| tenant.read().gather(&permitted.request));
        let gathered = Arc::new(gathered);
        let verdict = self.facts.judge_again(handle, &question, &gathered, Some(caller), now);
        if verdict.decision.permits() {
            return Ok(());
        }
        Err(ended(StopCondition::AuthorityChanged, verdict.reason_code))
    }
}

/// Returns the refusal to repeat an allow that would not be permitted now.
fn ended(condition: StopCondition, reason: Reason) -> ApiError {
    let text = format!(
        "{condition} ended the permission under this key ({reason}); ask again with a new Idempotency-Key"
    );
    let refusal = ApiError::new(ErrorCode::DecisionStopped, text);
    refusal.with("stop_condition", condition.word()).with("reason_code", reason.word())
}

/// The decision stored under a used key.
struct First {
    kept: FirstAnswer,
    /// `None` if the decision is not in the tables any more.
    permission: Option<StoredPermission>,
    /// The tenant's current revision.
    revision: i64,
}

async fn first(
    db: &mut Db,
    key: &IdempotencyKey,
    tenant_id: &TenantId,
    now: DateTime<Utc>,
) -> Result<Option<First>, idempotency::Error> {
    // An old key is deleted here, because the recorder, which claims keys, may not delete them.
    key.forget_old(db, now).await?;
    let Some(kept) = key.find(db, now).await? else { return Ok(None) };
    let id = kept.decision_id.clone().unwrap_or_default();
    let mut stored = StoredPermission::read(db, tenant_id, std::slice::from_ref(&id)).await?;
    let revision = graph::revision(db, tenant_id).await?;
    Ok(Some(First { kept, permission: stored.remove(&id), revision }))
}
