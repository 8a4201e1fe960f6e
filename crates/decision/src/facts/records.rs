//! The records in facts, with the fields that a decision uses.

use std::sync::Arc;

use authority_ids::{ApprovalRef, DelegationRef, EntityRef, PrincipalRef, TenantRef};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{bounds::Bounds, gate::Tightening};
use crate::{
    levels::{AccessLevel, ApprovalState, DelegationState, PrincipalClass, RiskTier},
    moment::{self, Window},
    pattern::Pattern,
    policy::validation::ContextSchema,
    request::{
        draft::{ActionDeclaration, ActionRiskClassification},
        input_schema::InputReference,
    },
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: TenantRef,
    /// Whether the tenant is in state `active` and not deleted.
    pub active: bool,
    /// Whether undeclared actions are refused. A request, tool or model can declare an action.
    #[serde(default)]
    pub require_declaration: bool,
    /// The tenant's tightenings of the gate.
    #[serde(default)]
    pub gate: Vec<Tightening>,
    /// The seconds within which an allowed action must begin.
    #[serde(default = "default_validity")]
    pub valid_for_seconds: u32,
    /// The tenant's declared types of the context's fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<Arc<ContextSchema>>,
    /// The IANA name of the tenant's time zone. `None` for UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// The default validity of an allow, in seconds.
pub const fn default_validity() -> u32 {
    60
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: PrincipalRef,
    pub class: PrincipalClass,
    pub name: String,
    /// Whether the principal is in state `active` and not deleted.
    pub active: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub team_id: EntityRef,
    pub window: Window,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopSignal {
    pub id: EntityRef,
    pub actor_id: PrincipalRef,
}

/// A quarantine. It applies to requests that match all of its fields; without fields, to all
/// requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    pub id: EntityRef,
    pub subject_id: Option<PrincipalRef>,
    pub action: Option<Pattern>,
    /// The id of the quarantined delegation's line: [`Delegation::line`].
    pub delegation_id: Option<DelegationRef>,
}

/// A delegation with all delegations above it: itself first, the root last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Chain(pub Vec<Arc<Delegation>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    pub id: DelegationRef,
    pub version: i64,
    pub parent_id: Option<DelegationRef>,
    pub delegator_id: PrincipalRef,
    pub delegate_id: PrincipalRef,
    pub state: DelegationState,
    pub window: Window,
    pub actions: Vec<Pattern>,
    pub bounds: Bounds,
    pub can_delegate: bool,
    pub needs_standing_approval: bool,
    /// The signatures of the standing approval.
    pub standing: Vec<Signature>,
    /// The first delegation of the line, if this delegation renews another. Absent for the first
    /// delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_id: Option<Box<str>>,
}

impl Delegation {
    /// Returns the id of the first delegation of the line. A line is a delegation followed by its
    /// renewals. Counters, quarantines and policies belong to the line.
    pub fn line(&self) -> &str {
        self.line_id.as_deref().unwrap_or(&self.id)
    }
}

/// One person's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The time of the approval. A reality finding needs an approval that was given after the
    /// finding began. An approval without a time does not count for a finding.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The person: `<iss>|<sub>`.
    pub by: String,
    /// `approver`, `legal`, `admin` or `owner`.
    pub role: String,
    /// Whether the person made the request, owns the agent or delegated to it. Such an approval
    /// counts only if a single approval is needed.
    #[serde(default, rename = "self", skip_serializing_if = "std::ops::Not::not")]
    pub own_interest: bool,
}

/// A `uses` row with the record it refers to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uses {
    pub row: Arc<UsesRow>,
    pub used: Used,
}

/// A `uses` row that denies. Its principal takes part in a chain, but is not the subject.
///
/// A principal who is denied something cannot let others do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainDenial {
    pub principal_id: PrincipalRef,
    pub denial: Uses,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsesRow {
    /// Identifies the row among its principal's rows.
    pub id: EntityRef,
    pub allowed: bool,
    pub window: Window,
    pub constraints: Constraints,
}

/// The parsed `constraints_json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraints {
    Bounds(Box<Bounds>),
    /// Stored, but malformed, with the error. The row then permits no action.
    Malformed(String),
}

impl Constraints {
    /// Parses `constraints_json`.
    pub fn read(text: &str) -> Self {
        match Bounds::read(text) {
            Ok(bounds) => Self::Bounds(Box::new(bounds)),
            Err(why) => Self::Malformed(why),
        }
    }
}

/// The target of a `uses` row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Used {
    Action(Pattern),
    Tool(Arc<Tool>),
    Model(Arc<Model>),
    ExternalApp(Arc<ExternalApp>),
    Resource(EntityRef),
    /// The row's reference does not resolve.
    Missing(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub id: EntityRef,
    /// Whether the model is not retired.
    pub live: bool,
    pub risk_tier: Option<RiskTier>,
    pub actions: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalApp {
    pub id: EntityRef,
    pub live: bool,
    pub actions: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    pub id: EntityRef,
    pub slug: String,
    /// Whether the purpose is in state `active` and not deleted.
    pub active: bool,
    pub allowed_actions: Vec<Pattern>,
    pub principal_classes: Vec<PrincipalClass>,
    pub jurisdictions: Vec<String>,
    pub window: Window,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub id: EntityRef,
    /// Whether the tool is neither deprecated nor retired.
    pub live: bool,
    /// The workspace that it serves; `None` for all.
    #[serde(default)]
    pub workspace_id: Option<EntityRef>,
    pub actions: Vec<Pattern>,
    /// The names of members that a request must have: fields of the context, `resource_id` or
    /// `workspace_id`.
    pub requires: Vec<String>,
    pub access_level: Option<AccessLevel>,
    pub action_declaration: Option<ActionDeclaration>,
    pub action_risk_classification: Option<ActionRiskClassification>,
    /// The schema for its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputReference>,
    /// The definition of a tool of an MCP server. `None` for other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Definition>,
}

/// Whether a person has pinned the definition that the server of a tool sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// The digest of the pinned definition: `sha256:` and hex.
    Pinned(String),
    /// No definition is pinned, or another one was seen since.
    Unpinned,
}

impl Tool {
    /// Whether the tool's declaration or risk classification has any field.
    pub fn is_declared(&self) -> bool {
        self.action_declaration.unwrap_or_default() != ActionDeclaration::default()
            || self.action_risk_classification.unwrap_or_default()
                != ActionRiskClassification::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub id: EntityRef,
    /// The workspace that it belongs to, if any.
    #[serde(default)]
    pub workspace_id: Option<EntityRef>,
    pub kind: String,
    pub name: String,
    pub sensitivity: Option<String>,
    /// Whether the resource is not archived.
    pub live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: EntityRef,
    pub live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub id: EntityRef,
    pub live: bool,
    pub workspace_id: Option<EntityRef>,
    pub visible_in_workspaces: Vec<EntityRef>,
}

/// The subject's membership of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActsIn {
    /// Identifies the row among the subject's rows.
    pub id: EntityRef,
    pub workspace_id: EntityRef,
    pub window: Window,
    /// `allowed_actions_json`. If absent, the row gives no authority, and does not limit the
    /// actions for which the subject has other authority. If empty or malformed, the row permits no
    /// action.
    pub allowed_actions: Option<Vec<Pattern>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: EntityRef,
    pub resource_id: EntityRef,
    pub grantee_id: String,
    /// `team`, or a kind of principal.
    pub grantee_kind: String,
    pub access_level: AccessLevel,
}

/// The approval that a request cites.
///
/// Its fields are in the order of RFC 8785, like a decision's facts. This also applies to its
/// signatures, [`Declined`] and [`OpenRequests`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    #[serde(with = "moment")]
    pub expires_at: DateTime<Utc>,
    pub given: Vec<Signature>,
    pub id: ApprovalRef,
    /// Whether the approval's digest is the digest of this request's question.
    pub same_question: bool,
    /// Whether the approval was given to this request's subject. It only improves the explanation
    /// in the trace: `same_question` is false for another subject, because a question includes its
    /// subject.
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    pub same_subject: bool,
    pub state: ApprovalState,
}

/// A decline of the request's question. It turns a hold into a denial, and is only looked up for
/// requests that would be held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    pub approval_id: ApprovalRef,
    #[serde(with = "moment")]
    pub at: DateTime<Utc>,
}

/// The subject's pending requests, if they have reached the tenant's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequests {
    pub limit: u32,
    pub pending: u32,
}

/// The default of a field that is left out if it is true.
const fn yes() -> bool {
    true
}
