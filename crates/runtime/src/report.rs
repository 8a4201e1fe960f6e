//! What came of a permitted decision: told once, signed, sealed to its record.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{OutcomeReport, ReportDecisionRequest, ReportDecisionResponse},
    schema::{decision_keys, decision_reports, decisions},
    wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;
use tonic::Response;

use super::{
    answer,
    find::readable,
    idempotency::{Place, first, replayed},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::ANSWERS_KEPT,
    identity::Caller,
};
use authority_core::{
    clock::Clock,
    keys::{Keys, Purpose},
    store::{self, Db, RunQueryDsl, Scope, Store},
};
use authority_crypto::{Signer, sha256};
use authority_decision::Decision;
use authority_evidence::{self as evidence, OutcomeReport as Terms, SignedText};

/// The operation of reports: its idempotency keys are its own.
const OPERATION: &str = "report";

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
struct Reported {
    tenant_id: String,
    decision: String,
    evaluated_at: DateTime<Utc>,
    record: Vec<u8>,
}

/// A report on its way in.
struct Report {
    caller: Caller,
    asked: ReportDecisionRequest,
    /// The idempotency key, and the digest of what it was given with.
    key: Option<(String, [u8; 32])>,
    signer: Arc<Signer>,
    now: DateTime<Utc>,
}

/// Takes reports.
pub(super) struct Reports {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) keys: Keys,
}

impl Reports {
    pub(super) async fn take(
        &self,
        caller: &Caller,
        key: Option<String>,
        asked: ReportDecisionRequest,
    ) -> Result<Response<ReportDecisionResponse>, ApiError> {
        let sha256 = sha256(&asked.encode_to_vec());
        let report = Report {
            caller: caller.clone(),
            asked,
            key: key.map(|key| (key, sha256)),
            signer: self.keys.signer(Purpose::Evidence),
            now: self.clock.now(),
        };
        // The service's own scope: keys of decisions are kept there. Whose decision it is, the
        // query says.
        let scope = Scope { tenant: None, actor: caller.actor.clone() };
        self.store.write_tx(&scope, async move |db| report.make(db).await).await
    }
}

impl Report {
    async fn make(&self, db: &mut Db) -> Result<Response<ReportDecisionResponse>, ApiError> {
        let id = &self.asked.decision_id;
        let found: Option<Reported> = readable(id, &self.caller)
            .select(Reported::as_select())
            .first(db)
            .await
            .optional()
            .map_err(store::Error::from)?;
        let found = found.ok_or_else(|| ApiError::not_found("decision", id))?;
        if let Some(first) = self.first_answer(db, &found.tenant_id).await? {
            return Ok(first);
        }
        let at = self.moment(&found)?;
        let by = self.caller.identity();
        let terms = Terms {
            tenant_id: &found.tenant_id,
            decision_id: id,
            record_digest: &sha256(&found.record),
            outcome: &self.asked.outcome,
            at,
            detail: self.asked.detail.as_deref(),
            reported_by: &by,
        };
        let signed = evidence::sign_report(&terms, &self.signer)?;
        if self.insert(db, &terms, &signed).await.map_err(store::Error::from)? == 0 {
            // Whoever was faster may have come with this very key.
            if let Some(first) = self.first_answer(db, &found.tenant_id).await? {
                return Ok(first);
            }
            let message = "what came of this decision was reported already";
            return Err(ApiError::new(ErrorCode::AlreadyExists, message));
        }
        let answer = ReportDecisionResponse {
            decision_id: id.clone(),
            outcome: self.asked.outcome.clone(),
            at: Some(at.into()),
            detail: self.asked.detail.clone(),
            signature: Some(answer::signed(&signed.kid, &signed.signature)),
            record: signed.record,
        };
        self.keep(db, &found.tenant_id, &answer).await?;
        Ok(Response::new(answer))
    }

    /// When it happened, if it can have.
    fn moment(&self, found: &Reported) -> Result<DateTime<Utc>, ApiError> {
        if !Decision::from_word(&found.decision).is_some_and(Decision::permits) {
            let message = format!(
                "the decision is `{}`: nothing was permitted that could have an outcome",
                found.decision
            );
            return Err(ApiError::new(ErrorCode::TransitionNotAllowed, message));
        }
        let at = self.asked.at.and_then(Time::moment).unwrap_or(self.now);
        if at > self.now {
            return Err(ApiError::field("at", "is in the future"));
        }
        if at < found.evaluated_at {
            return Err(ApiError::field("at", "is before the decision"));
        }
        Ok(at)
    }

    async fn insert(
        &self,
        db: &mut Db,
        terms: &Terms<'_>,
        signed: &SignedText,
    ) -> QueryResult<usize> {
        diesel::insert_into(decision_reports::table)
            .values((
                decision_reports::decision_id.eq(terms.decision_id),
                decision_reports::tenant_id.eq(terms.tenant_id),
                decision_reports::outcome.eq(terms.outcome),
                decision_reports::at.eq(terms.at),
                decision_reports::detail.eq(terms.detail),
                decision_reports::reported_by.eq(terms.reported_by),
                decision_reports::record.eq(&signed.record),
                decision_reports::kid.eq(&*signed.kid),
                decision_reports::signature.eq(&signed.signature[..]),
                decision_reports::created_at.eq(self.now),
            ))
            .on_conflict_do_nothing()
            .execute(db)
            .await
    }

    /// What was answered before under this key.
    async fn first_answer(
        &self,
        db: &mut Db,
        tenant_id: &str,
    ) -> Result<Option<Response<ReportDecisionResponse>>, ApiError> {
        let Some((key, sha256)) = &self.key else { return Ok(None) };
        let place = Place {
            tenant_id: tenant_id.to_owned(),
            scope: OPERATION,
            key: key.clone(),
            caller: self.caller.identity(),
        };
        let first = first(db, place, self.now - ANSWERS_KEPT).await?;
        let Some(first) = first else { return Ok(None) };
        if !first.answers(sha256) {
            return Err(ApiError::plain(ErrorCode::IdempotencyKeyReused));
        }
        let answer = ReportDecisionResponse::decode(first.answer.as_slice());
        let unreadable = |_| store::Error::Internal("a kept answer cannot be read".to_owned());
        Ok(Some(replayed(answer.map_err(unreadable)?)))
    }

    async fn keep(
        &self,
        db: &mut Db,
        tenant_id: &str,
        answer: &ReportDecisionResponse,
    ) -> Result<(), ApiError> {
        let Some((key, sha256)) = &self.key else { return Ok(()) };
        let kept = diesel::insert_into(decision_keys::table)
            .values((
                decision_keys::tenant_id.eq(tenant_id),
                decision_keys::scope.eq(OPERATION),
                decision_keys::key.eq(key),
                decision_keys::caller.eq(self.caller.identity()),
                decision_keys::request_sha256.eq(&sha256[..]),
                decision_keys::decision_id.eq(&answer.decision_id),
                decision_keys::answer.eq(answer.encode_to_vec()),
                decision_keys::created_at.eq(self.now),
            ))
            .on_conflict_do_nothing()
            .execute(db)
            .await
            .map_err(store::Error::from)?;
        // Taken meanwhile for the report of another decision.
        let reused = || ApiError::plain(ErrorCode::IdempotencyKeyReused);
        if kept == 1 { Ok(()) } else { Err(reused()) }
    }
}

/// What a decision shows of its report.
pub(super) async fn shown(db: &mut Db, decision_id: &str) -> QueryResult<Option<OutcomeReport>> {
    let found: Option<(String, Time, Option<String>)> = decision_reports::table
        .find(decision_id)
        .select((decision_reports::outcome, decision_reports::at, decision_reports::detail))
        .first(db)
        .await
        .optional()?;
    Ok(found.map(|(outcome, at, detail)| OutcomeReport { outcome, at: Some(at), detail }))
}
