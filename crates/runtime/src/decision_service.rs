//! Decisions in their normal form, and their records.

use authority_model::{
    proto::runtime::{
        EvaluateDecisionRequest, EvaluateDecisionResponse, ExportDecisionsRequest,
        ExportDecisionsResponse, GetDecisionRequest, GetDecisionResponse, ImpactPoliciesRequest,
        ImpactPoliciesResponse, ListDecisionsRequest, ListDecisionsResponse,
        ListReasonCodesRequest, ListReasonCodesResponse, OutcomeReport, ReasonCode,
        ReportDecisionRequest, ReportDecisionResponse, SimulateDecisionRequest,
        SimulateDecisionResponse,
    },
    schema::{approvals, decisions},
    service::{DecisionService, Replies},
    wire::Json,
};
use diesel::{pg::Pg, prelude::*};
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::{Runtime, answer, changes::below, report};
use authority_api::{
    deadline::Deadline,
    error::{ApiError, ErrorCode},
    identity::{Caller, admitted, caller, checked, idempotency_key},
};
use authority_core::store::{self, RunQueryDsl};
use authority_crypto::sha256;
use authority_decision::{Decision, OwnReason, Reason};

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
struct Stored {
    id: String,
    decision: String,
    reason_code: String,
    evaluated_at: chrono::DateTime<chrono::Utc>,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
    approval_id: Option<String>,
}

#[tonic::async_trait]
impl DecisionService for Runtime {
    async fn evaluate_decision(
        &self,
        call: Request<EvaluateDecisionRequest>,
    ) -> Result<Response<EvaluateDecisionResponse>, Status> {
        let (caller, by) = (caller(&call)?, Deadline::of(call.extensions()));
        let (metadata, _, asked) = call.into_parts();
        let asked = asked.request.ok_or_else(|| ApiError::field("request", "is required"))?;
        let answer =
            self.decide_idempotent("decide", &caller, idempotency_key(&metadata)?, by, asked).await;
        Ok(answer.map_err(|refusal| below("request", refusal))?)
    }

    async fn get_decision(
        &self,
        call: Request<GetDecisionRequest>,
    ) -> Result<Response<GetDecisionResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        let (stored, since) = self.stored(&caller, asked.decision_id).await?;
        Ok(Response::new(self.shown(stored, since)?))
    }

    async fn report_decision(
        &self,
        call: Request<ReportDecisionRequest>,
    ) -> Result<Response<ReportDecisionResponse>, Status> {
        let caller = caller(&call)?;
        let (metadata, _, asked) = call.into_parts();
        checked(&asked)?;
        Ok(self.report(&caller, idempotency_key(&metadata)?, asked).await?)
    }

    async fn list_decisions(
        &self,
        call: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.find(&caller, by).await?))
    }

    async fn export_decisions(
        &self,
        call: Request<ExportDecisionsRequest>,
    ) -> Replies<ExportDecisionsResponse> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.export_found(caller, asked).await?))
    }

    async fn simulate_decision(
        &self,
        call: Request<SimulateDecisionRequest>,
    ) -> Result<Response<SimulateDecisionResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.simulate(&caller, asked).await?))
    }

    async fn impact_policies(
        &self,
        call: Request<ImpactPoliciesRequest>,
    ) -> Result<Response<ImpactPoliciesResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.impact(&caller, asked).await?))
    }

    async fn list_reason_codes(
        &self,
        _: Request<ListReasonCodesRequest>,
    ) -> Result<Response<ListReasonCodesResponse>, Status> {
        let codes = Reason::ALL.iter().map(|reason| ReasonCode {
            code: reason.word().to_owned(),
            stage: reason.stage().word().to_owned(),
            decision: reason.decision().word().to_owned(),
            meaning: reason.sentence().to_owned(),
        });
        Ok(Response::new(ListReasonCodesResponse {
            reason_codes: codes.collect(),
            own_pattern: OwnReason::PATTERN.to_owned(),
        }))
    }
}

/// What has come of a decision since it was made.
#[derive(Default)]
struct Since {
    approval_state: Option<String>,
    report: Option<OutcomeReport>,
}

/// The decision, where it is of the caller's tenant and, for a bound API key, of its principals; the
/// owner reads every tenant's.
pub(super) fn readable<'q>(id: &'q str, caller: &'q Caller) -> decisions::BoxedQuery<'q, Pg> {
    let mut query = decisions::table.filter(decisions::id.eq(id)).into_boxed();
    if let Some(tenant) = caller.tenant() {
        query = query.filter(decisions::tenant_id.eq(tenant));
    }
    if let Some(own) = caller.bound_to() {
        query = query.filter(decisions::subject.eq_any(own));
    }
    query
}

impl Runtime {
    async fn stored(&self, caller: &Caller, id: String) -> Result<(Stored, Since), ApiError> {
        let (scope, by) = (caller.scope(), caller.clone());
        let missing = ApiError::not_found("decision", &id);
        let found = self.0.store.read_tx(&scope, async move |db| {
            let query = readable(&id, &by).select(Stored::as_select());
            let stored: Option<Stored> = query.first(db).await.optional()?;
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

    fn shown(&self, stored: Stored, since: Since) -> Result<GetDecisionResponse, ApiError> {
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
            verify_url: self.receipt_url(&stored.id),
            decision_id: stored.id,
            record: match record {
                Value::Object(members) => Some(Json(members)),
                _ => None,
            },
        })
    }
}

fn moment(text: &Value) -> Option<authority_model::wire::Time> {
    let parsed = chrono::DateTime::parse_from_rfc3339(text.as_str()?).ok()?;
    Some(parsed.to_utc().into())
}
