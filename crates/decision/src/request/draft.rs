//! The normal form of a request. Every operation converts its own body to this form.
//!
//! [`Draft`] has the plain fields. [`Request`] is a valid draft, with its amount in normal form.
//! Only a `Request` can be decided.

use std::{ops::Deref, str::FromStr};

use authority_ids::{
    ApprovalRef, DelegationRef, EntityRef, PrincipalId, PrincipalRef, TenantId, TenantRef,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{amount::Amount, currency, jurisdiction, obligations};
use crate::{
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    pattern::check_action,
};

/// The maximum depth of `context`, including its own level.
pub const DEEPEST: usize = 32;
const LONGEST_ID: usize = 512;

/// The caller's declaration of the action's effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionDeclaration {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_class: Option<EffectClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversibility: Option<Reversibility>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_available: Option<bool>,
}

/// The caller's declaration of the risk, and the oversight it requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionRiskClassification {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_tier: Option<RiskTier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_oversight_mode: Option<OversightMode>,
}

/// The unchecked fields of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Draft {
    pub tenant_id: TenantRef,
    pub subject: PrincipalRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<DelegationRef>,
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<EntityRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<EntityRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<EntityRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<EntityRef>,
    pub context: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_declaration: Option<ActionDeclaration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_risk_classification: Option<ActionRiskClassification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalRef>,
    /// The principal that the action is for: a delegator in the chain of the authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PrincipalRef>,
    /// The obligations that the caller can meet. `None` if it does not declare them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_obligations: Option<Vec<String>>,
    /// The requester's own reason. The record does not contain it, because the text may be personal
    /// data, which must be erasable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// A value by which the caller recognises the record of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_nonce: Option<String>,
    /// The digest of the tool's definition that the caller knows: `sha256:` and hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_definition_digest: Option<String>,
    /// Whether the response has the record. This is not recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_record: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least_revision: Option<i64>,
}

impl Draft {
    /// Returns the look-up keys of a request's facts: its tenant, subject and action, and its other
    /// references.
    pub fn keys(&self) -> ([&str; 3], [Option<&str>; 6]) {
        let named = [
            self.delegation_id.as_deref(),
            self.tool_id.as_deref(),
            self.purpose.as_deref(),
            self.resource_id.as_deref(),
            self.workspace_id.as_deref(),
            self.project_id.as_deref(),
        ];
        ([&self.tenant_id, &self.subject, &self.action], named)
    }
}

/// An invalid field and its problem.
pub type Fault = (String, String);

/// The problems of an invalid draft.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is invalid: {}", faults_text(.faults))]
pub struct Invalid {
    pub faults: Vec<Fault>,
}

fn faults_text(faults: &[Fault]) -> String {
    let texts: Vec<_> = faults.iter().map(|(member, why)| format!("`{member}` {why}")).collect();
    texts.join("; ")
}

/// A valid request. Its fields are accessed through its [`Draft`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Draft", into = "Draft")]
pub struct Request {
    draft: Draft,
    tenant: TenantId,
    amount: Option<Amount>,
}

impl Request {
    /// Checks and normalises a draft.
    ///
    /// # Errors
    /// All invalid fields at once.
    pub fn new(mut draft: Draft) -> Result<Self, Invalid> {
        let faults = validate(&draft);
        let tenant = TenantId::parse(&draft.tenant_id);
        let (true, Ok(tenant)) = (faults.is_empty(), tenant) else {
            return Err(Invalid { faults });
        };
        draft.context.retain(|_, value| !value.is_null());
        if let Some(supported) = &mut draft.supported_obligations {
            // Equal sets are the same question.
            supported.sort_unstable();
            supported.dedup();
        }
        let amount = match draft.context.get_mut("amount") {
            Some(Value::Number(number)) => {
                let amount = Amount::from_number(number).unwrap_or_default();
                *number = amount.to_number();
                Some(amount)
            }
            _ => None,
        };
        Ok(Self { draft, tenant, amount })
    }

    /// Returns the tenant of the request.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    pub fn amount(&self) -> Option<Amount> {
        self.amount
    }

    pub fn currency(&self) -> Option<&str> {
        self.draft.context.get("currency")?.as_str()
    }

    pub fn jurisdiction(&self) -> Option<&str> {
        self.draft.context.get("jurisdiction")?.as_str()
    }

    /// Returns the question that an approval is for: the normal form without the fields that do not
    /// change the question.
    ///
    /// An approval's digest is the digest of the question's canonical JSON.
    #[must_use]
    pub fn question(&self) -> Draft {
        Draft {
            approval_id: None,
            justification: None,
            client_nonce: None,
            include_record: false,
            explain: false,
            at_least_revision: None,
            ..self.draft.clone()
        }
    }

    pub fn into_draft(self) -> Draft {
        self.draft
    }
}

impl Deref for Request {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl TryFrom<Draft> for Request {
    type Error = Invalid;

    fn try_from(draft: Draft) -> Result<Self, Invalid> {
        Self::new(draft)
    }
}

impl From<Request> for Draft {
    fn from(request: Request) -> Self {
        request.draft
    }
}

/// Returns the problems of a draft. Empty if it is valid.
pub fn validate(draft: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |member: &str, why: &str| faults.push((member.to_owned(), why.to_owned()));
    for (member, text) in texts(draft) {
        if text.is_empty() {
            fault(member, "is empty");
        } else if text.len() > LONGEST_ID {
            fault(member, &format!("is longer than {LONGEST_ID} bytes"));
        } else if text.contains(char::is_control) {
            fault(member, "holds a control character");
        }
    }
    if !draft.tenant_id.is_empty()
        && let Err(why) = TenantId::check(&draft.tenant_id)
    {
        fault("tenant_id", &why.to_string());
    }
    if !draft.subject.is_empty()
        && let Err(why) = PrincipalId::check(&draft.subject)
    {
        fault("subject", &why.to_string());
    }
    if let Some(principal) = draft.on_behalf_of.as_deref().filter(|id| !id.is_empty())
        && let Err(why) = PrincipalId::check(principal)
    {
        fault("on_behalf_of", &why.to_string());
    }
    if let Some(problem) = draft.supported_obligations.as_deref().and_then(obligations::problem) {
        fault("supported_obligations", &problem);
    }
    if !draft.action.is_empty()
        && let Err(why) = check_action(&draft.action)
    {
        fault("action", &why.to_string());
    }
    check_context(&draft.context, &mut fault);
    faults
}

fn texts(draft: &Draft) -> impl Iterator<Item = (&'static str, &str)> {
    [
        ("tenant_id", Some(draft.tenant_id.as_str())),
        ("subject", Some(draft.subject.as_str())),
        ("delegation_id", draft.delegation_id.as_deref()),
        ("action", Some(draft.action.as_str())),
        ("tool_id", draft.tool_id.as_deref()),
        ("purpose", draft.purpose.as_deref()),
        ("resource_id", draft.resource_id.as_deref()),
        ("workspace_id", draft.workspace_id.as_deref()),
        ("project_id", draft.project_id.as_deref()),
        ("approval_id", draft.approval_id.as_deref()),
        ("on_behalf_of", draft.on_behalf_of.as_deref()),
        ("client_nonce", draft.client_nonce.as_deref()),
        ("tool_definition_digest", draft.tool_definition_digest.as_deref()),
    ]
    .into_iter()
    .filter_map(|(member, text)| Some((member, text?)))
}

fn check_context(context: &Map<String, Value>, fault: &mut impl FnMut(&str, &str)) {
    match context.get("amount") {
        None | Some(Value::Null) => {}
        Some(Value::Number(number)) => {
            if let Err(why) = Amount::from_number(number) {
                fault("context.amount", &why.to_string());
            }
        }
        Some(_) => fault("context.amount", "must be a number"),
    }
    let (money, place) = (
        "must be a currency: 3 to 8 capital letters or digits, a letter first, such as `EUR`",
        "must be a code of ISO 3166: a country, `DE`, or a subdivision, `DE-BY`",
    );
    type IsCode = fn(&str) -> bool;
    let codes: [(&str, IsCode, &str); 2] =
        [("currency", currency::is_code, money), ("jurisdiction", jurisdiction::is_code, place)];
    for (member, is_code, problem) in codes {
        match context.get(member) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if is_code(text) => {}
            Some(Value::String(_)) => fault(&format!("context.{member}"), problem),
            Some(_) => fault(&format!("context.{member}"), "must be a string"),
        }
    }
    for (key, value) in context {
        let member = format!("context.{}", key.replace('\0', "\u{fffd}"));
        if key.contains('\0') || holds_nul(value, DEEPEST) {
            fault(&member, "holds U+0000");
        }
        // The amount was checked above.
        if key != "amount" && holds_huge(value, DEEPEST) {
            let problem =
                "is beyond 2^53-1, where numbers would be rounded; send an identifier as text";
            fault(&member, problem);
        }
        if is_deeper(value, DEEPEST - 1) {
            fault(&member, &format!("is nested deeper than {DEEPEST}"));
        }
    }
}

fn is_deeper(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left == 0 || items.iter().any(|v| is_deeper(v, left - 1)),
        Value::Object(members) => left == 0 || members.values().any(|v| is_deeper(v, left - 1)),
        _ => false,
    }
}

fn holds_nul(value: &Value, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(|v| holds_nul(v, left)),
        Value::Object(members) => {
            members.iter().any(|(key, v)| key.contains('\0') || holds_nul(v, left))
        }
        _ => false,
    }
}

/// Whether the value has a number from 2^53 on. Doubles skip integers there, and two readers could
/// disagree.
fn holds_huge(value: &Value, left: usize) -> bool {
    const BEYOND: f64 = 9_007_199_254_740_992.0;
    let Some(left) = left.checked_sub(1) else { return false };
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| number.abs() >= BEYOND),
        Value::Array(items) => items.iter().any(|v| holds_huge(v, left)),
        Value::Object(members) => members.values().any(|v| holds_huge(v, left)),
        _ => false,
    }
}

impl FromStr for Request {
    type Err = serde_json::Error;

    fn from_str(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}
