//! Decisions in the normal form, and their records.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{
        EvaluateDecisionRequest, EvaluateDecisionResponse, ExportDecisionsRequest,
        ExportDecisionsResponse, GetDecisionRequest, GetDecisionResponse, ImpactPoliciesRequest,
        ImpactPoliciesResponse, InspectDecisionRequest, ListDecisionsRequest,
        ListDecisionsResponse, ListReasonCodesRequest, ListReasonCodesResponse, ReasonCode,
        ReportDecisionRequest, ReportDecisionResponse, SimulateDecisionRequest,
        SimulateDecisionResponse,
    },
    service::{DecisionService, Replies},
};
use tonic::{Request, Response, Status};

use super::{
    call::Call, changes::below, decide::Decider, find::DecisionQueries, impact::ImpactRun,
    report::Reports, simulate::Simulator,
};
use authority_api::{
    error::ApiError,
    identity::{admitted, checked},
    rate_limit::AppliedLimits,
};
use authority_decision::{OwnReason, Reason};

/// Serves `DecisionService`.
pub(super) struct DecisionHandlers {
    pub(super) decider: Arc<Decider>,
    pub(super) queries: DecisionQueries,
    pub(super) reports: Reports,
    pub(super) simulator: Simulator,
    pub(super) impact: ImpactRun,
}

#[tonic::async_trait]
impl DecisionService for DecisionHandlers {
    async fn evaluate_decision(
        &self,
        call: Request<EvaluateDecisionRequest>,
    ) -> Result<Response<EvaluateDecisionResponse>, Status> {
        let mut call = Call::of(call)?;
        let asked = call.message.request.take();
        let asked = asked.ok_or_else(|| ApiError::field("request", "is required"))?;
        let (call, mut limits) = (call.with(asked), AppliedLimits::default());
        let answer = self.decider.decide_idempotent("decide", call, &mut limits).await;
        Ok(limits.shown_in(answer.map_err(|refusal| below("request", refusal))?.reply()))
    }

    async fn get_decision(
        &self,
        call: Request<GetDecisionRequest>,
    ) -> Result<Response<GetDecisionResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.queries.get(&caller, asked).await?))
    }

    async fn inspect_decision(
        &self,
        call: Request<InspectDecisionRequest>,
    ) -> Result<Response<GetDecisionResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.queries.inspect(&caller, asked).await?))
    }

    async fn report_decision(
        &self,
        call: Request<ReportDecisionRequest>,
    ) -> Result<Response<ReportDecisionResponse>, Status> {
        let Call { caller, idempotency_key, message, .. } = Call::of(call)?;
        checked(&message)?;
        Ok(self.reports.take(&caller, idempotency_key, message).await?)
    }

    async fn list_decisions(
        &self,
        call: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.queries.list(&caller, by).await?))
    }

    async fn export_decisions(
        &self,
        call: Request<ExportDecisionsRequest>,
    ) -> Replies<ExportDecisionsResponse> {
        let (caller, asked) = admitted(call)?;
        Ok(self.queries.export(caller, asked).await?)
    }

    async fn simulate_decision(
        &self,
        call: Request<SimulateDecisionRequest>,
    ) -> Result<Response<SimulateDecisionResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.simulator.simulate(&caller, asked).await?))
    }

    async fn impact_policies(
        &self,
        call: Request<ImpactPoliciesRequest>,
    ) -> Result<Response<ImpactPoliciesResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.impact.run(&caller, asked).await?))
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
