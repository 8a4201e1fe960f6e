//! Reports of the outcome of a permitted decision. A decision has at most one report, which is
//! signed and bound to the decision's record.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{OutcomeReport, ReportDecisionRequest, ReportDecisionResponse},
    schema::{decision_reports, decisions},
    wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;
use tonic::Response;

use super::{
    answer,
    find::{decision_id, readable},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, IdempotencyKey},
    identity::Caller,
};
use authority_crypto::{Signer, sha256};
use authority_decision::Decision;
use authority_evidence::{self as evidence, OutcomeReport as Terms, SignedText};
use authority_keys::{Keys, Purpose};
use authority_process::clock::Clock;
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store, row_id};

/// The scope of reports' idempotency keys.
const OPERATION: &str = "report";

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
struct Reported {
    tenant_id: String,
    decision: String,
    evaluated_at: DateTime<Utc>,
    record: Vec<u8>,
}

/// A report to be stored.
struct Report {
    caller: Caller,
    asked: ReportDecisionRequest,
    key: Option<IdempotencyKey>,
    signer: Arc<Signer>,
    now: DateTime<Utc>,
}

/// Stores reports.
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
        let keyed = |key| IdempotencyKey::new(caller, OPERATION, key, &asked.encode_to_vec());
        let report = Report {
            caller: caller.clone(),
            key: key.map(keyed),
            asked,
            signer: self.keys.signer(Purpose::Evidence),
            now: self.clock.now(),
        };
        // Uses the service's own scope. The query filters by tenant.
        let scope = Scope { tenant: None, ..caller.scope() };
        let made = self.store.write_tx(&scope, async move |db| report.make(db).await).await?;
        Ok(made.reply())
    }
}

impl Report {
    async fn make(&self, db: &mut Db) -> Result<Done<ReportDecisionResponse>, ApiError> {
        let id = decision_id(&self.asked.decision_id)?;
        let found: Option<Reported> = readable(&id, &self.caller)
            .select(Reported::as_select())
            .first(db)
            .await
            .optional()
            .map_err(store::Error::from)?;
        let found = found.ok_or_else(|| ApiError::not_found("decision", id.as_str()))?;
        let tenant_id = row_id(&found.tenant_id).map_err(store::Error::from)?;
        let key = self.key.clone().map(|key| key.within(Some(&tenant_id)));
        if let Some(key) = &key
            && let Some(first) = key.claim(db, self.now).await?
        {
            return Ok(Done::before(&first)?);
        }
        let at = self.moment(&found)?;
        let by = self.caller.identity();
        let terms = Terms {
            tenant_id: &tenant_id,
            decision_id: &id,
            record_digest: &sha256(&found.record),
            outcome: &self.asked.outcome,
            at,
            detail: self.asked.detail.as_deref(),
            reported_by: &by,
        };
        let signed = evidence::sign_report(&terms, &self.signer)?;
        if self.insert(db, &terms, &signed).await.map_err(store::Error::from)? == 0 {
            let message = "the outcome of this decision has already been reported";
            return Err(ApiError::new(ErrorCode::AlreadyExists, message));
        }
        let answer = ReportDecisionResponse {
            decision_id: id.into(),
            outcome: self.asked.outcome.clone(),
            at: Some(at.into()),
            detail: self.asked.detail.clone(),
            signature: Some(answer::signed(&signed.kid, &signed.signature)),
            record: signed.record,
        };
        if let Some(key) = key {
            key.keep(db, &answer).await?;
        }
        Ok(Done::now(answer))
    }

    /// Returns the time of the outcome. Refuses a time at which no outcome is possible.
    fn moment(&self, found: &Reported) -> Result<DateTime<Utc>, ApiError> {
        if !Decision::from_word(&found.decision).is_some_and(Decision::permits) {
            let message = format!(
                "the decision is `{}`: only permitted decisions have an outcome",
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
                decision_reports::decision_id.eq(terms.decision_id.as_str()),
                decision_reports::tenant_id.eq(terms.tenant_id.as_str()),
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
}

/// Returns the report in the form shown with its decision.
pub(super) async fn shown(db: &mut Db, decision_id: &str) -> QueryResult<Option<OutcomeReport>> {
    let found: Option<(String, Time, Option<String>)> = decision_reports::table
        .find(decision_id)
        .select((decision_reports::outcome, decision_reports::at, decision_reports::detail))
        .first(db)
        .await
        .optional()?;
    Ok(found.map(|(outcome, at, detail)| OutcomeReport { outcome, at: Some(at), detail }))
}
