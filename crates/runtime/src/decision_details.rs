//! A decision with its record, its later state and its trace. The later state is the approval and
//! the reported outcome.

use authority_model::{
    proto::runtime::{
        GetDecisionRequest, GetDecisionResponse, InspectDecisionRequest, OutcomeReport, Stage,
    },
    schema::{approvals, decisions},
    wire::Json,
};
use diesel::{pg::Pg, prelude::*};
use serde_json::Value;

use super::{
    answer,
    find::{DecisionQueries, decision_id, readable},
    report,
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_archive::Archived;
use authority_crypto::sha256;
use authority_decision::{Decision, Draft, Request, decide_and_observe};
use authority_evidence::{self as evidence, Sealed, sealed::Outcome};
use authority_ids::DecisionId;
use authority_ledger::stored_decisions::{self, Stored};
use authority_store::{self as store, Db, RunQueryDsl};

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
struct DetailsRow {
    id: String,
    decision: String,
    reason_code: String,
    evaluated_at: chrono::DateTime<chrono::Utc>,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
    approval_id: Option<String>,
}

/// The later state of a decision.
#[derive(Default)]
struct Since {
    approval_state: Option<String>,
    report: Option<OutcomeReport>,
}

impl DecisionQueries {
    pub(super) async fn get(
        &self,
        caller: &Caller,
        asked: GetDecisionRequest,
    ) -> Result<GetDecisionResponse, ApiError> {
        let (stored, since, _) = self.stored(caller, &decision_id(&asked.decision_id)?).await?;
        self.shown(stored, since)
    }

    /// Returns the decision with its trace. The context is included only on request.
    pub(super) async fn inspect(
        &self,
        caller: &Caller,
        asked: InspectDecisionRequest,
    ) -> Result<GetDecisionResponse, ApiError> {
        let id = decision_id(&asked.decision_id)?;
        let (stored, since, archived) = self.stored(caller, &id).await?;
        let whole = if let Some(archived) = archived {
            Some(archived.stored()?)
        } else {
            let (scope, within) = (caller.scope(), caller.tenant().cloned());
            let whole = self.store.read_tx(&scope, async move |db| {
                Ok::<_, store::Error>(stored_decisions::one(db, within.as_ref(), &id).await?)
            });
            whole.await?
        };
        let context = whole.as_ref().filter(|_| asked.context);
        let context = context.and_then(|Stored { sealed, .. }| {
            answer::context(&sealed.context, &sealed.salts.context)
        });
        let trace = match whole {
            // Runs on the compute pool, because the time to decide depends on the tenant's
            // policies.
            Some(whole) => {
                let tenant_id = whole.tenant_id.clone();
                self.pool.run(tenant_id.as_str(), move |_| trace(&whole)).await?
            }
            None => Vec::new(),
        };
        Ok(GetDecisionResponse { trace, context, ..self.shown(stored, since)? })
    }

    /// Returns the decision, from the tables or the archive.
    async fn stored(
        &self,
        caller: &Caller,
        id: &DecisionId,
    ) -> Result<(DetailsRow, Since, Option<Archived>), ApiError> {
        let (scope, by, of) = (caller.scope(), caller.clone(), id.clone());
        let found = self.store.read_tx(&scope, async move |db| {
            let query = readable(&of, &by).select(DetailsRow::as_select());
            let stored: Option<DetailsRow> = query.first(db).await.optional()?;
            let Some(stored) = stored else { return Ok(None) };
            let since = since(db, &stored).await?;
            Ok::<_, store::Error>(Some((stored, since)))
        });
        match found.await? {
            Some((stored, since)) => Ok((stored, since, None)),
            None => self.archived(caller, id).await,
        }
    }

    async fn archived(
        &self,
        caller: &Caller,
        id: &DecisionId,
    ) -> Result<(DetailsRow, Since, Option<Archived>), ApiError> {
        let missing = || ApiError::not_found("decision", id.as_str());
        let scope = caller.scope();
        let archived = self.archives.find(&scope, id).await?;
        let archived = archived.ok_or_else(missing)?;
        if !caller.acts_for(&archived.summary()?.subject) {
            return Err(missing());
        }
        let stored = of_archive(&archived)?;
        let report = archived.entry()?.report;
        let read = self.store.read_tx(&scope, async move |db| {
            let since = since(db, &stored).await?;
            Ok::<_, store::Error>((stored, since))
        });
        let (stored, mut since) = read.await?;
        since.report = since.report.or_else(|| report.map(reported));
        Ok((stored, since, Some(archived)))
    }

    fn shown(&self, stored: DetailsRow, since: Since) -> Result<GetDecisionResponse, ApiError> {
        let unreadable = |_| {
            tracing::error!(decision.id = stored.id, "failed to read a stored record");
            ApiError::plain(ErrorCode::Internal)
        };
        let record: Value = serde_json::from_slice(&stored.record).map_err(unreadable)?;
        let verdict = &record["verdict"];
        let texts = |member: &str| -> Vec<String> {
            let list = verdict[member].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(GetDecisionResponse {
            decision: Decision::from_word(&stored.decision).map_or(0, answer::word),
            reason_code: stored.reason_code,
            reasons: texts("reasons"),
            obligations: texts("obligations"),
            stop_conditions: texts("stop_conditions"),
            evaluated_at: Some(stored.evaluated_at.into()),
            valid_until: moment(&record["valid_until"]),
            authority_revision: record["authority_revision"]
                .as_u64()
                .and_then(|revision| revision.try_into().ok())
                .unwrap_or_default(),
            approval_id: stored.approval_id,
            approval_state: since.approval_state,
            report: since.report,
            evidence_pack: Some(answer::pack(
                &sha256(&stored.record),
                &stored.kid,
                &stored.signature,
            )),
            verify_url: self.receipts.url(&stored.id),
            trace: Vec::new(),
            context: None,
            decision_id: stored.id,
            record: match record {
                Value::Object(members) => Some(Json(members)),
                _ => None,
            },
        })
    }
}

async fn since(db: &mut Db, stored: &DetailsRow) -> QueryResult<Since> {
    let mut since = Since::default();
    if let Some(approval) = &stored.approval_id {
        let found = approvals::table.find(approval).select(approvals::state);
        since.approval_state = found.first(db).await.optional()?;
    }
    since.report = report::shown(db, &stored.id).await?;
    Ok(since)
}

/// Rebuilds a decision's row as it was before it was archived.
fn of_archive(archived: &Archived) -> Result<DetailsRow, authority_archive::Error> {
    let (entry, summary) = (archived.entry()?, archived.summary()?);
    let stored = archived.stored()?;
    Ok(DetailsRow {
        id: entry.decision_id.into(),
        decision: summary.decision,
        reason_code: summary.reason_code,
        evaluated_at: summary.evaluated_at,
        record: stored.sealed.record,
        kid: stored.kid,
        signature: stored.signature,
        approval_id: entry.approval_id.map(String::from),
    })
}

fn reported(report: authority_archive::format::entry::Report) -> OutcomeReport {
    OutcomeReport { outcome: report.outcome, at: Some(report.at.into()), detail: report.detail }
}

/// Returns the findings of each stage. Empty if the decision can't be repeated or its repetition
/// has another result.
fn trace(decision: &Stored) -> Vec<Stage> {
    again(&decision.sealed).unwrap_or_else(|error| {
        tracing::debug!(
            %error,
            decision.id = decision.id.as_str(),
            "failed to compute the trace of a decision"
        );
        Vec::new()
    })
}

fn again(sealed: &Sealed) -> Result<Vec<Stage>, evidence::Error> {
    let recorded = sealed.recorded()?;
    let asked = Draft { explain: true, ..sealed.request()?.into_draft() };
    let unreadable = || evidence::Error::Unreadable("a stored request");
    let request = Request::new(asked).map_err(|_| unreadable())?;
    let verdict = decide_and_observe(&request, &sealed.facts()?, recorded.evaluated_at);
    if Outcome::from(&verdict) != recorded.outcome {
        return Err(evidence::Error::Unreadable("its outcome"));
    }
    Ok(answer::stages(&verdict))
}

fn moment(text: &Value) -> Option<authority_model::wire::Time> {
    let parsed = chrono::DateTime::parse_from_rfc3339(text.as_str()?).ok()?;
    Some(parsed.to_utc().into())
}
