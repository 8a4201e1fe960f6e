//! The operation that coding agents call through their hooks.

use std::sync::Arc;

use authority_decision::hooks::{Asked, Client, Decided, Question, Verdict, question};
use authority_model::{
    proto::runtime::{
        DecideHookRequest, DecideHookResponse, Decision, EvaluateRequest, EvaluateResponse,
    },
    service::{HookService, Reply},
    wire::{Json, List},
};
use tonic::{Request, Response};

use super::{call::Call, decide::Decider};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::Done,
    identity::{Caller, checked},
    rate_limit::AppliedLimits,
};

/// Serves `HookService`.
pub(super) struct HookHandlers {
    pub(super) decider: Arc<Decider>,
}

#[tonic::async_trait]
impl HookService for HookHandlers {
    async fn decide_hook(&self, call: Request<DecideHookRequest>) -> Reply<DecideHookResponse> {
        let mut call = Call::of(call)?;
        checked(&call.message)?;
        let client = Client::from_word(&call.message.client)
            .ok_or_else(|| ApiError::field("client", "is unknown"))?;
        let event = call.message.event.take().unwrap_or_default().0;
        let asked = question(client, &event, &call.message.wrapped_servers).map_err(|unread| {
            ApiError::field(&format!("event.{}", unread.field), unread.problem)
        })?;
        let asked = match asked {
            Asked::Call(asked) => asked,
            Asked::Wrapped => return Ok(Response::new(response(&client.allowed()))),
        };
        let request = request(&call.caller, std::mem::take(&mut call.message.purpose), asked)?;
        let mut limits = AppliedLimits::default();
        let done: Done<EvaluateResponse> =
            self.decider.decide_idempotent("evaluate", call.with(request), &mut limits).await?;
        let answer = response(&decided(&done.message).answer(client));
        let done = Done { message: answer, replayed: done.replayed };
        Ok(limits.shown_in(done.reply()))
    }
}

/// The question of a call, for the agent of the caller's API key.
///
/// # Errors
/// The caller is not an API key that is bound to exactly one agent.
fn request(caller: &Caller, purpose: String, asked: Question) -> Result<EvaluateRequest, ApiError> {
    let Some([subject]) = caller.bound_to() else {
        let text = "a hook needs an API key that is bound to exactly one agent (`principal_ids`)";
        return Err(ApiError::new(ErrorCode::SubjectNotPermitted, text));
    };
    Ok(EvaluateRequest {
        subject: subject.to_string(),
        action: asked.action,
        purpose,
        context: Some(Json(asked.context)),
        justification: asked.justification,
        // A coding agent meets no obligations.
        supported_obligations: Some(List(Vec::new())),
        explain: true,
        ..EvaluateRequest::default()
    })
}

fn decided(answer: &EvaluateResponse) -> Decided<'_> {
    let findings = answer.trace.iter().flat_map(|stage| &stage.findings);
    let statements = findings.filter_map(|finding| finding.statement.as_ref());
    let change = answer.smallest_change.as_ref();
    Decided {
        verdict: match answer.decision() {
            Decision::Allow | Decision::AllowWithConstraints => Verdict::Allowed,
            Decision::RequireApproval => Verdict::Held,
            Decision::Deny | Decision::Unspecified => Verdict::Denied,
        },
        reason_code: &answer.reason_code,
        link: &answer.verify_url,
        has_approval: answer.approval_id.is_some(),
        nobody_eligible: answer.eligible.is_some(),
        advice: statements.filter_map(|statement| statement.advice.as_deref()).collect(),
        change: change.map(|change| change.sentence.as_str()),
    }
}

fn response(answer: &serde_json::Value) -> DecideHookResponse {
    DecideHookResponse { answer: answer.to_string() }
}
