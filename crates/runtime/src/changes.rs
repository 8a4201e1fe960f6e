//! A simulated request with changed facts. Violations use the caller's field names.

use authority_ids::ApprovalId;
use authority_model::{proto::runtime::ChangedFacts, validate::Violation};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Number, Value};

use super::normalize;
use authority_api::{error::ApiError, identity::Role};
use authority_decision::{
    Draft, Facts, Request,
    facts::{Approval, Signature},
    levels::ApprovalState,
};

/// The maximum number of people that a policy can require.
const PEOPLE: usize = 16;

/// The changed request.
pub(super) struct Changes {
    pub(super) request: Request,
    approved: Option<bool>,
    recorded: bool,
}

impl Changes {
    /// Applies changes to a request.
    ///
    /// # Errors
    /// Every invalid field, below `changes`.
    pub(super) fn of(
        changed: ChangedFacts,
        request: &Request,
        recorded: bool,
    ) -> Result<Self, ApiError> {
        if recorded {
            check_recorded(&changed, request)?;
        }
        let approved = changed.approved;
        let (has_amount, has_place) = (changed.amount.is_some(), changed.jurisdiction.is_some());
        let draft = draft(changed, request.clone().into_draft());
        let named = |(member, problem): (String, String)| {
            let field = match member.as_str() {
                "context.amount" if has_amount => "changes.amount".to_owned(),
                "context.jurisdiction" if has_place => "changes.jurisdiction".to_owned(),
                _ => format!("changes.{member}"),
            };
            Violation::new(field, problem)
        };
        let request = Request::new(draft).map_err(|invalid| {
            ApiError::invalid(invalid.faults.into_iter().map(named).collect())
        })?;
        Ok(Self { request, approved, recorded })
    }

    /// Adds an assumed approval if `approved` is true, and removes the approval if it is false. A
    /// recorded approval that doesn't match the changed request is also removed.
    ///
    /// If the recorded request was changed, also removes its recorded decline.
    pub(super) fn approve(&self, asked: &Request, mut facts: Facts, at: DateTime<Utc>) -> Facts {
        if self.recorded && asked.question() != self.request.question() {
            (facts.declined, facts.open_requests) = (None, None);
        }
        match self.approved {
            Some(true) => facts.approval = Some(assumed_approval(at)),
            Some(false) => facts.approval = None,
            // Current facts were read for the changed request, and recorded facts for the original
            // request.
            None if self.recorded => {
                let same = asked.question() == self.request.question();
                facts.approval = facts.approval.filter(|_| same);
            }
            None => {}
        }
        facts
    }
}

fn draft(changed: ChangedFacts, mut draft: Draft) -> Draft {
    draft.explain = true;
    draft.context.extend(changed.context.into_iter().flat_map(|context| context.0));
    // Numbers that are not finite have already been refused.
    let amount = changed.amount.and_then(Number::from_f64).map(Value::Number);
    let place = changed.jurisdiction.map(Value::String);
    let own = [("amount", amount), ("jurisdiction", place)].into_iter();
    let own = own.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    draft.context.extend(own);
    let declared = changed.action_declaration.as_ref().map(normalize::declaration);
    let classified = changed.action_risk_classification.as_ref().map(normalize::classification);
    Draft {
        purpose: changed.purpose.or(draft.purpose),
        resource_id: changed.resource_id.map(Into::into).or(draft.resource_id),
        workspace_id: changed.workspace_id.map(Into::into).or(draft.workspace_id),
        delegation_id: changed.delegation_id.map(Into::into).or(draft.delegation_id),
        tool_id: changed.tool_id.map(Into::into).or(draft.tool_id),
        tool_definition_digest: changed.tool_definition_digest.or(draft.tool_definition_digest),
        action_declaration: declared.or(draft.action_declaration),
        action_risk_classification: classified.or(draft.action_risk_classification),
        approval_id: match changed.approved {
            Some(true) => Some(ApprovalId::ASSUMED.into()),
            Some(false) => None,
            None => draft.approval_id,
        },
        ..draft
    }
}

/// Refuses changes that need data which was not recorded. Recorded facts contain only the data that
/// was looked up for the decision. Adding current data about another purpose or resource would give
/// wrong results.
fn check_recorded(changed: &ChangedFacts, request: &Request) -> Result<(), ApiError> {
    let members = [
        ("purpose", changed.purpose.as_deref(), request.purpose.as_deref()),
        ("resource_id", changed.resource_id.as_deref(), request.resource_id.as_deref()),
        ("workspace_id", changed.workspace_id.as_deref(), request.workspace_id.as_deref()),
        ("delegation_id", changed.delegation_id.as_deref(), request.delegation_id.as_deref()),
        ("tool_id", changed.tool_id.as_deref(), request.tool_id.as_deref()),
    ];
    let others = members.iter().filter(|(_, given, own)| given.is_some() && given != own);
    let violations: Vec<_> = others
        .map(|(name, ..)| {
            let problem =
                "was not looked up for the stored decision; change it with `against` `present`";
            Violation::new(format!("changes.{name}"), problem)
        })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(ApiError::invalid(violations)) }
}

fn assumed_approval(at: DateTime<Utc>) -> Approval {
    let legal = |number| Signature {
        by: format!("supposed|{number}"),
        role: Role::Legal.to_string(),
        own_interest: false,
        at: Some(at),
    };
    Approval {
        id: ApprovalId::ASSUMED.into(),
        state: ApprovalState::Approved,
        same_question: true,
        same_subject: true,
        given: (0..PEOPLE).map(legal).collect(),
        expires_at: at + TimeDelta::hours(1),
    }
}

/// Prefixes the invalid fields with the field that contains them.
pub(super) fn below(member: &str, refusal: ApiError) -> ApiError {
    let mut violations = refusal.violations;
    for violation in &mut violations {
        violation.field = format!("{member}.{}", violation.field);
    }
    ApiError { violations, ..refusal }
}
