//! The approval request that a held decision opens. The approval is valid only for the decided
//! request, identified by its digest.

use authority_ids::ApprovalId;
use authority_model::{proto::approval::ApprovalAuthority, wire::Json};
use chrono::TimeDelta;
use serde_json::{Map, Value, json};

use super::{
    decide::Decider, decided::Decided, facts::RecordingSettings, fault::fault, recorder::Hold,
};
use authority_api::error::{ApiError, ErrorCode};
use authority_decision::{
    Gathered, Request,
    bounds::Bounds,
    facts::{Constraints, Used},
    pattern::Pattern,
    verdict::{AuthorityKind, AuthorityUsed, HeldBy},
};
use authority_ledger::spending;
use authority_store::new_id;

impl Decider {
    pub(super) fn hold(
        &self,
        request: &Request,
        gathered: &Gathered,
        decided: &Decided,
        recording: RecordingSettings,
    ) -> Result<Option<Hold>, ApiError> {
        let verdict = &decided.verdict;
        let Some(needed) = &verdict.approvals_needed else { return Ok(None) };
        if decided.ready_approval_id.is_some() {
            return Ok(None);
        }
        let Some(requester) = &decided.requester else {
            return Err(ApiError::plain(ErrorCode::Internal));
        };
        let request_digest = spending::question(request).map_err(fault)?;
        let ttl = recording.approval_ttl.unwrap_or(self.settings.approval_ttl);
        let ttl = TimeDelta::from_std(ttl).unwrap_or(TimeDelta::days(1));
        Ok(Some(Hold {
            approval_id: ApprovalId::new(new_id()),
            request_digest,
            needed: i32::try_from(needed.count.max(1)).unwrap_or(i32::MAX),
            roles: needed.roles.clone(),
            expires_at: decided.evaluated_at + ttl,
            authority: verdict.authority.as_ref().map(|used| authority(used, gathered)),
            policies: verdict.held_by.iter().map(policy).collect(),
            reality: json!(verdict.held_by_reality),
            asker: requester.by.clone(),
            asker_email: requester.email.clone(),
            nobody_eligible: requester.nobody_eligible,
            insufficient: decided.insufficient.clone(),
            facts: decided.facts.clone(),
            justification: request.justification.clone(),
            declined_for: recording.declined_for,
            limit: recording.open_requests,
        }))
    }
}

/// Returns an `ApprovalPolicy` in its stored form.
fn policy(held_by: &HeldBy) -> Value {
    let HeldBy { policy_id, statement, advice } = held_by;
    json!({"id": policy_id, "statement": statement, "advice": advice})
}

/// Returns the authority that was used. Its actions and bounds are from the time of the decision.
fn authority(used: &AuthorityUsed, gathered: &Gathered) -> ApprovalAuthority {
    let (actions, bounds) = match used.kind {
        AuthorityKind::Delegation => delegation(&used.id, gathered),
        AuthorityKind::Uses => uses(&used.id, gathered),
        AuthorityKind::ActsIn => acts_in(&used.id, gathered),
    }
    .unwrap_or_default();
    ApprovalAuthority {
        kind: used.kind.word().to_owned(),
        id: used.id.clone(),
        chain: used.chain.iter().map(String::from).collect(),
        actions,
        bounds: Some(Json(bounds)),
    }
}

/// Action patterns and their bounds.
type Terms = (Vec<String>, Map<String, Value>);

fn delegation(id: &str, gathered: &Gathered) -> Option<Terms> {
    let mut links = gathered.delegations.iter().filter_map(|chain| chain.0.first());
    let link = links.find(|link| link.id == id)?;
    Some((texts(&link.actions), object(&link.bounds)))
}

fn uses(id: &str, gathered: &Gathered) -> Option<Terms> {
    let uses = gathered.uses.iter().find(|uses| uses.row.id == id)?;
    let actions = match &uses.used {
        Used::Action(pattern) => vec![pattern.to_string()],
        Used::Tool(tool) => texts(&tool.actions),
        Used::Model(model) => texts(&model.actions),
        Used::ExternalApp(app) => texts(&app.actions),
        Used::Resource(_) | Used::Missing(_) => Vec::new(),
    };
    let bounds = match &uses.row.constraints {
        Constraints::Bounds(bounds) => object(bounds),
        Constraints::Malformed(_) => Map::new(),
    };
    Some((actions, bounds))
}

fn acts_in(id: &str, gathered: &Gathered) -> Option<Terms> {
    let row = gathered.acts_in.iter().find(|row| row.id == id)?;
    let place = ("workspace_id".to_owned(), row.workspace_id.as_str().into());
    let actions = row.allowed_actions.as_deref().map(texts).unwrap_or_default();
    Some((actions, Map::from_iter([place])))
}

fn texts(patterns: &[Pattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn object(bounds: &Bounds) -> Map<String, Value> {
    match serde_json::to_value(bounds) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
