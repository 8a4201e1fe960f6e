//! A decision with its record, its later state (approval and reported outcome) and its trace.

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
    find::{DecisionQueries, readable},
    report,
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_core::{
    store::{self, RunQueryDsl},
    stored_decisions::{self, Stored},
};
use authority_crypto::sha256;
use authority_decision::{Decision, Draft, Request, decide};
use authority_evidence::{self as evidence, Sealed, sealed::Outcome};

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
struct Found {
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
        let (stored, since) = self.stored(caller, asked.decision_id).await?;
        self.shown(stored, since)
    }

    /// The same with its trace.
    pub(super) async fn inspect(
        &self,
        caller: &Caller,
        asked: InspectDecisionRequest,
    ) -> Result<GetDecisionResponse, ApiError> {
        let id = asked.decision_id;
        let (stored, since) = self.stored(caller, id.clone()).await?;
        let (scope, within) = (caller.scope(), caller.tenant().cloned());
        let whole = self.store.read_tx(&scope, async move |db| {
            Ok::<_, store::Error>(stored_decisions::one(db, within.as_ref(), &id).await?)
        });
        let trace = match whole.await? {
            // To decide takes as long as its policies do.
            Some(whole) => {
                let tenant_id = whole.tenant_id.clone();
                self.pool.run(tenant_id.as_str(), move |_| trace(&whole)).await?
            }
            None => Vec::new(),
        };
        Ok(GetDecisionResponse { trace, ..self.shown(stored, since)? })
    }

    async fn stored(&self, caller: &Caller, id: String) -> Result<(Found, Since), ApiError> {
        let (scope, by) = (caller.scope(), caller.clone());
        let missing = ApiError::not_found("decision", &id);
        let found = self.store.read_tx(&scope, async move |db| {
            let query = readable(&id, &by).select(Found::as_select());
            let stored: Option<Found> = query.first(db).await.optional()?;
            let Some(stored) = stored else { return Ok(None) };
            let mut since = Since::default();
            if let Some(approval) = &stored.approval_id {
                let found = approvals::table.find(approval).select(approvals::state);
                since.approval_state = found.first(db).await.optional()?;
            }
            since.report = report::shown(db, &stored.id).await?;
            Ok::<_, store::Error>(Some((stored, since)))
        });
        found.await?.ok_or(missing)
    }

    fn shown(&self, stored: Found, since: Since) -> Result<GetDecisionResponse, ApiError> {
        let unreadable = |_| {
            tracing::error!(id = stored.id, "a stored record cannot be read");
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
            decision_id: stored.id,
            record: match record {
                Value::Object(members) => Some(Json(members)),
                _ => None,
            },
        })
    }
}

/// What each stage found; nothing if the decision cannot be made again, or comes out otherwise.
fn trace(decision: &Stored) -> Vec<Stage> {
    again(&decision.sealed).unwrap_or_else(|error| {
        tracing::info!(%error, id = decision.id, "a decision has no trace");
        Vec::new()
    })
}

fn again(sealed: &Sealed) -> Result<Vec<Stage>, evidence::Error> {
    let recorded = sealed.recorded()?;
    let asked = Draft { explain: true, ..sealed.request()?.into_draft() };
    let unreadable = || evidence::Error::Unreadable("a stored request");
    let request = Request::new(asked).map_err(|_| unreadable())?;
    let verdict = decide(&request, &sealed.facts()?, recorded.evaluated_at);
    if Outcome::from(&verdict) != recorded.outcome {
        return Err(evidence::Error::Unreadable("its outcome"));
    }
    Ok(answer::stages(&verdict))
}

fn moment(text: &Value) -> Option<authority_model::wire::Time> {
    let parsed = chrono::DateTime::parse_from_rfc3339(text.as_str()?).ok()?;
    Some(parsed.to_utc().into())
}
