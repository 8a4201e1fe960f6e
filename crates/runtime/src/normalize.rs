//! Converts each operation's request to the normal form. Violations use the operation's own field
//! names.

use authority_ids::{PrincipalId, TenantId, TenantRef};
use authority_model::{
    proto::{
        registry::{ActionDeclaration, ActionRiskClassification},
        runtime::{AuthorizeRequest, DecisionRequest, EvaluateRequest},
    },
    validate::{Validate, Violation, Violations},
    wire::List,
};
use prost::Message;
use serde_json::Value;

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_decision::{
    Draft, Request,
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    request,
};

/// An operation's request, which can be converted to the normal form.
pub(super) trait IntoDraft: Validate + Message {
    /// Fields of the normal form with another path in the operation's request: both paths.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];

    fn subject(&self) -> &str;

    /// Returns a tenant's request, which [`Request::new`] then checks.
    fn into_draft(self, tenant_id: TenantRef) -> Draft;
}

/// Validates a request and converts it to the normal form. The tenant is the caller's or, for the
/// owner, the subject's.
pub(super) fn normalize<A: IntoDraft>(caller: &Caller, asked: A) -> Result<Request, ApiError> {
    let mut found = Violations::default();
    asked.validate(&mut found);
    ApiError::unless_clean(found)?;
    if !caller.acts_for(asked.subject()) {
        return Err(ApiError::plain(ErrorCode::SubjectNotPermitted));
    }
    let tenant_id = match caller.tenant() {
        Some(tenant) => tenant.clone(),
        // The owner has no tenant. The subject's ID contains the tenant.
        None => match PrincipalId::parse(asked.subject()) {
            Ok(subject) => TenantId::of(&subject),
            Err(why) => return Err(ApiError::field(named::<A>("subject"), why.to_string())),
        },
    };
    Request::new(asked.into_draft(tenant_id.into())).map_err(|invalid| {
        let named = |(member, problem): (String, String)| {
            Violation::new(renamed(A::RENAMED, member), problem)
        };
        ApiError::invalid(invalid.faults.into_iter().map(named).collect())
    })
}

/// Returns the operation's name for a field of the normal form.
pub(super) fn named<A: IntoDraft>(member: &'static str) -> &'static str {
    A::RENAMED.iter().find(|(normal, _)| *normal == member).map_or(member, |(_, own)| *own)
}

fn renamed(names: &[(&str, &str)], member: String) -> String {
    let found = names.iter().find(|(normal, _)| *normal == member);
    found.map_or(member, |(_, own)| (*own).to_owned())
}

/// Builds the draft of a message. Members that are not arguments have the same name in the message.
macro_rules! draft {
    ($asked:ident, $tenant_id:ident, $subject:expr, $purpose:expr, $delegation_id:expr) => {
        Draft {
            tenant_id: $tenant_id,
            subject: $subject.into(),
            action: $asked.action,
            purpose: $purpose,
            delegation_id: $delegation_id.map(Into::into),
            tool_id: $asked.tool_id.map(Into::into),
            resource_id: $asked.resource_id.map(Into::into),
            workspace_id: $asked.workspace_id.map(Into::into),
            project_id: $asked.project_id.map(Into::into),
            context: $asked.context.map(|json| json.0).unwrap_or_default(),
            action_declaration: $asked.action_declaration.as_ref().and_then(declared),
            action_risk_classification: $asked
                .action_risk_classification
                .as_ref()
                .and_then(classified),
            approval_id: $asked.approval_id.map(Into::into),
            on_behalf_of: $asked.on_behalf_of.map(Into::into),
            supported_obligations: $asked.supported_obligations.map(names),
            justification: $asked.justification,
            client_nonce: $asked.client_nonce,
            tool_definition_digest: $asked.tool_definition_digest,
            include_record: $asked.include_record,
            explain: $asked.explain,
            at_least_revision: $asked.at_least_revision.map(i64::from),
        }
    };
}

impl IntoDraft for EvaluateRequest {
    fn subject(&self) -> &str {
        &self.subject
    }

    fn into_draft(self, tenant_id: TenantRef) -> Draft {
        let asked = self;
        draft!(asked, tenant_id, asked.subject, Some(asked.purpose), asked.delegation_id)
    }
}

impl IntoDraft for AuthorizeRequest {
    const RENAMED: &'static [(&'static str, &'static str)] =
        &[("subject", "actor.entity_id"), ("delegation_id", "acting_on_behalf_of.delegation_id")];

    fn subject(&self) -> &str {
        self.actor.as_ref().map_or("", |actor| &actor.entity_id)
    }

    fn into_draft(self, tenant_id: TenantRef) -> Draft {
        let asked = self;
        let subject = asked.actor.map(|actor| actor.entity_id).unwrap_or_default();
        let delegation_id = asked.acting_on_behalf_of.map(|behalf| behalf.delegation_id);
        draft!(asked, tenant_id, subject, asked.purpose, delegation_id)
    }
}

impl IntoDraft for DecisionRequest {
    fn subject(&self) -> &str {
        &self.subject
    }

    fn into_draft(self, tenant_id: TenantRef) -> Draft {
        let asked = self;
        draft!(asked, tenant_id, asked.subject, asked.purpose, asked.delegation_id)
    }
}

/// Returns the names in a list. An item of another type becomes the empty name, which is invalid.
fn names(list: List) -> Vec<String> {
    let name = |item| match item {
        Value::String(name) => name,
        _ => String::new(),
    };
    list.0.into_iter().map(name).collect()
}

// A declaration without fields is treated as absent. Otherwise, a declined request would count as a
// new request if an empty declaration were added.

fn declared(given: &ActionDeclaration) -> Option<request::ActionDeclaration> {
    Some(declaration(given)).filter(|own| *own != request::ActionDeclaration::default())
}

fn classified(given: &ActionRiskClassification) -> Option<request::ActionRiskClassification> {
    Some(classification(given)).filter(|own| *own != request::ActionRiskClassification::default())
}

// The proto's `in` rules have already refused unknown words.

pub(super) fn declaration(given: &ActionDeclaration) -> request::ActionDeclaration {
    request::ActionDeclaration {
        effect_class: given.effect_class.as_deref().and_then(EffectClass::from_word),
        reversibility: given.reversibility.as_deref().and_then(Reversibility::from_word),
        rollback_available: given.rollback_available,
    }
}

pub(super) fn classification(
    given: &ActionRiskClassification,
) -> request::ActionRiskClassification {
    let mode = given.required_oversight_mode.as_deref();
    request::ActionRiskClassification {
        risk_tier: given.risk_tier.as_deref().and_then(RiskTier::from_word),
        required_oversight_mode: mode.and_then(OversightMode::from_word),
    }
}
