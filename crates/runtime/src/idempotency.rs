//! Idempotency keys of decisions: the first answer again, byte for byte, for 24 hours.

use std::time::Duration;

use authority_model::{
    proto::runtime::{AuthorizeResponse, Decision, EvaluateDecisionResponse, EvaluateResponse},
    schema::{decision_keys, decisions},
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;
use tonic::{Response, metadata::MetadataValue};

use super::{
    call::Call,
    decide::{Decided, Decider, Reached},
    normalize::{self, IntoDecisionRequest},
    permission_status::{permission_status, permitted},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::ANSWERS_KEPT,
};
use authority_core::{
    graph,
    store::{self, Db, RunQueryDsl, Scope},
};
use authority_crypto::sha256;
use authority_decision::Request;

/// Between two looks at a key that another request is about to answer.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// With less time than this left, whoever waits is told that the first request is still running.
const LEAST_LEFT: Duration = Duration::from_millis(200);

/// An idempotency key as it was given, and what it was given with.
pub(super) struct IdempotencyKey {
    /// The operation: the same key of another operation is another key.
    pub(super) scope: &'static str,
    pub(super) key: String,
    /// Whose it is: the same key of another caller is another key.
    pub(super) caller: String,
    pub(super) request_sha256: [u8; 32],
    /// Writes the operation's answer.
    pub(super) answer: fn(&Decided) -> Vec<u8>,
}

/// A operation's answer: made of a decision, kept as protobuf.
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
    /// Decides once for an idempotency key, and every time without one.
    pub(super) async fn decide_idempotent<A: IntoDecisionRequest, R: Reply>(
        &self,
        operation: &'static str,
        call: Call<A>,
    ) -> Result<Response<R>, ApiError> {
        let Call { caller, idempotency_key, deadline, message } = call;
        let request = normalize::normalize(&caller, message)?;
        if caller.is_owner() {
            self.of_a_tenant::<A>(&request).await?;
        }
        let Some(key) = idempotency_key else {
            return match self.decide(operation, &caller, &request, None).await? {
                Reached::Decided(decided) => Ok(Response::new(R::from(&decided))),
                Reached::KeyTaken => Err(ApiError::plain(ErrorCode::Internal)),
            };
        };
        let asked = serde_json_canonicalizer::to_vec(&*request).map_err(super::decide::fault)?;
        let key = IdempotencyKey {
            scope: operation,
            key,
            caller: caller.identity(),
            request_sha256: sha256(&asked),
            answer: |decided| R::from(decided).encode_to_vec(),
        };
        if let Some(first) = self.first_answer(&request, &key).await? {
            return Ok(first);
        }
        let mut pause = FIRST_PAUSE;
        loop {
            match self.decide(operation, &caller, &request, Some(&key)).await? {
                Reached::Decided(decided) => return Ok(Response::new(R::from(&decided))),
                Reached::KeyTaken => {}
            }
            if let Some(first) = self.first_answer(&request, &key).await? {
                return Ok(first);
            }
            // Whoever has the key has not committed. Where that fails, the key is free again.
            if deadline.left() < pause + LEAST_LEFT {
                let running = ApiError::plain(ErrorCode::IdempotencyInProgress);
                return Err(running.with("retry_after", "1"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The owner is of no tenant: the subject says whose authority is asked, and there must be one.
    async fn of_a_tenant<A: IntoDecisionRequest>(&self, request: &Request) -> Result<(), ApiError> {
        // Whatever tenant there is has a revision: its own record made the first.
        match self.facts.graph.tenant_at(&request.tenant_id, 1).await {
            Ok(_) => Ok(()),
            Err(graph::Error::Behind { .. }) => {
                let problem = format!("is of `{}`, which is no tenant here", request.tenant_id);
                Err(ApiError::field(normalize::named::<A>("subject"), problem))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn first_answer<R: Reply>(
        &self,
        request: &Request,
        key: &IdempotencyKey,
    ) -> Result<Option<Response<R>>, ApiError> {
        let place = Place {
            tenant_id: request.tenant_id.clone(),
            scope: key.scope,
            key: key.key.clone(),
            caller: key.caller.clone(),
        };
        let scope = Scope::service();
        let since = self.clock.now() - ANSWERS_KEPT;
        // In a task of its own: a caller that leaves must not leave a busy connection behind.
        let first = self
            .facts
            .store
            .write_tx(&scope, async move |db| first(db, place, since).await)
            .await?;
        let Some(first) = first else { return Ok(None) };
        if !first.answers(&key.request_sha256) {
            return Err(ApiError::plain(ErrorCode::IdempotencyKeyReused));
        }
        let answer = R::decode(first.answer.as_slice()).map_err(|error| {
            tracing::error!(%error, "a kept answer cannot be read");
            ApiError::plain(ErrorCode::Internal)
        })?;
        if matches!(answer.decision(), Decision::Allow | Decision::AllowWithConstraints) {
            self.still_stands(request, &first).await?;
        }
        Ok(Some(replayed(answer)))
    }

    /// Before an allow is repeated: has a stop condition of the authority that it was given under
    /// fired since, as far as the database knows?
    async fn still_stands(&self, request: &Request, first: &First) -> Result<(), ApiError> {
        let handle = self.facts.graph.tenant_at(&request.tenant_id, first.revision).await?;
        let permitted = permitted(request.clone(), &first.record)?;
        let (_, status) = permission_status(handle.as_ref(), &permitted, self.clock.now());
        let Some(reason) = status.stopped else { return Ok(()) };
        let fired = permitted.condition(reason);
        let message = format!("{fired} ended what this key was answered ({reason}); ask anew");
        let refusal = ApiError::new(ErrorCode::DecisionStopped, message);
        Err(refusal.with("stop_condition", fired.word()).with("reason_code", reason.word()))
    }
}

/// Where the answer to a key is kept.
pub(super) struct Place {
    pub(super) tenant_id: String,
    pub(super) scope: &'static str,
    pub(super) key: String,
    pub(super) caller: String,
}

/// The caller of answers that were kept before it was kept whose they are: nobody is answered those.
const NOBODY: &str = "";

/// What was answered first under a key.
pub(super) struct First {
    caller: String,
    request_sha256: Vec<u8>,
    pub(super) answer: Vec<u8>,
    record: Vec<u8>,
    /// The tenant's present revision.
    revision: i64,
}

impl First {
    /// Whether it may be repeated to a caller whose request has this digest.
    pub(super) fn answers(&self, request_sha256: &[u8; 32]) -> bool {
        self.caller != NOBODY && self.request_sha256 == request_sha256
    }
}

/// The first answer under a key of a caller at a operation, given since then.
pub(super) async fn first(
    db: &mut Db,
    place: Place,
    since: DateTime<Utc>,
) -> Result<Option<First>, store::Error> {
    let kept = || {
        decision_keys::table
            .filter(decision_keys::tenant_id.eq(&place.tenant_id))
            .filter(decision_keys::scope.eq(place.scope))
            .filter(decision_keys::key.eq(&place.key))
            .filter(decision_keys::caller.eq_any([NOBODY, place.caller.as_str()]))
    };
    diesel::delete(kept().filter(decision_keys::created_at.le(since))).execute(db).await?;
    let columns = (
        decision_keys::caller,
        decision_keys::request_sha256,
        decision_keys::answer,
        decision_keys::decision_id,
    );
    let own_first = decision_keys::caller.desc();
    let found: Option<(String, Vec<u8>, Vec<u8>, String)> =
        kept().select(columns).order(own_first).first(db).await.optional()?;
    let Some((caller, request_sha256, answer, decision_id)) = found else { return Ok(None) };
    let record = decisions::table.find(decision_id).select(decisions::record).first(db).await?;
    let revision = graph::revision(db, &place.tenant_id).await?;
    Ok(Some(First { caller, request_sha256, answer, record, revision }))
}

/// Marked as the first answer, told again.
pub(super) fn replayed<M>(answer: M) -> Response<M> {
    let mut response = Response::new(answer);
    response.metadata_mut().insert("idempotency-replayed", MetadataValue::from_static("true"));
    response
}
