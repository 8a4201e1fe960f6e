//! Facts: all that a decision may look at besides its request and the time.
//!
//! [`Gathered`] depends on the tenant's graph at one revision and on the request's look-up keys
//! (subject, delegation, action, tool, purpose, resource, workspace, project) and on nothing else,
//! so it may be kept and shared. What changes from call to call stands beside it in [`Facts`].
//!
//! A look-up that found nothing leaves its member absent; the request tells that it was asked.
//! Facts serialise with a stable member order; policies by reference ([`PolicyReference`]), and
//! [`FactsDocument::rebuild`] turns a sealed document back into facts, given the policies' texts.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    bounds::Bounds,
    gate::Tightening,
    levels::{
        AccessLevel, ApprovalState, DelegationState, PrincipalClass, RiskTier, RuntimeEffect,
    },
    moment::{self, Window},
    pattern::Pattern,
    policy::{CompiledPolicy, PolicyError, PolicyReference},
    request::{ActionDeclaration, ActionRiskClassification},
};

/// The facts of one decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts<P = Arc<CompiledPolicy>> {
    pub gathered: Arc<Gathered<P>>,
    /// What the counters stood at before this decision.
    #[serde(default)]
    pub spent: Spent,
    /// The approval that the request cites, as far as it resolves.
    #[serde(default)]
    pub approval: Option<Approval>,
}

/// Facts as they are sealed: policies by reference.
pub type FactsDocument = Facts<PolicyReference>;

/// What one tenant's graph says about a request's look-up keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Gathered<P = Arc<CompiledPolicy>> {
    /// The tenant's revision that these facts are of.
    pub revision: i64,
    pub tenant: Option<Arc<Tenant>>,
    pub subject: Option<Arc<Principal>>,
    /// The subject's model.
    pub model: Option<Arc<Model>>,
    /// The subject's team memberships, past and present.
    pub memberships: Vec<Arc<Membership>>,
    /// Standing signals, at least those on the subject and on the delegates of the chains.
    pub stop_signals: Vec<Arc<StopSignal>>,
    /// Standing quarantines, at least those that may concern this request.
    pub quarantines: Vec<Arc<Quarantine>>,
    /// Delegation named: that one's chain, if it resolves. None named: the chain of every
    /// delegation to the subject whose own actions cover the action, whatever its state.
    pub delegations: Vec<Chain>,
    /// Every delegator and delegate that the chains name, as far as they resolve.
    pub principals: Vec<Arc<Principal>>,
    /// The subject's rows, at least those that cover the action or its tool.
    pub uses: Vec<Uses>,
    pub purpose: Option<Arc<Purpose>>,
    pub tool: Option<Arc<Tool>>,
    pub resource: Option<Arc<Resource>>,
    pub workspace: Option<Arc<Workspace>>,
    pub project: Option<Arc<Project>>,
    /// The subject's rows in the workspace named and in those the project named reaches.
    pub acts_in: Vec<Arc<ActsIn>>,
    /// Rows on the resource named and on the project named.
    pub grants: Vec<Arc<Grant>>,
    /// Policies in force that can apply (see `PolicyIndex::candidates`).
    pub policies: Vec<P>,
    /// Active anchors whose `grounds_actions` cover the action.
    pub anchors: Vec<Arc<Anchor>>,
    /// Drift events not resolved, at least those on the subject and the action.
    pub drifts: Vec<Arc<Drift>>,
}

impl<P> Default for Gathered<P> {
    fn default() -> Self {
        Self {
            revision: 0,
            tenant: None,
            subject: None,
            model: None,
            memberships: Vec::new(),
            stop_signals: Vec::new(),
            quarantines: Vec::new(),
            delegations: Vec::new(),
            principals: Vec::new(),
            uses: Vec::new(),
            purpose: None,
            tool: None,
            resource: None,
            workspace: None,
            project: None,
            acts_in: Vec::new(),
            grants: Vec::new(),
            policies: Vec::new(),
            anchors: Vec::new(),
            drifts: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: String,
    /// State `active` and not deleted.
    pub active: bool,
    /// Refuse what neither request nor tool declares.
    #[serde(default)]
    pub require_declaration: bool,
    /// How this tenant tightens the gate.
    #[serde(default)]
    pub gate: Vec<Tightening>,
    /// Seconds within which an allowed action must begin.
    #[serde(default = "default_validity")]
    pub valid_for_seconds: u32,
}

/// Seconds that an allow is good for where the tenant says nothing.
pub const fn default_validity() -> u32 {
    60
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: String,
    pub class: PrincipalClass,
    pub name: String,
    /// State `active` and not deleted.
    pub active: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub team_id: String,
    pub window: Window,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopSignal {
    pub id: String,
    pub actor_id: String,
}

/// Concerns what matches all of its members; with none it concerns everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    pub id: String,
    pub subject_id: Option<String>,
    pub action: Option<Pattern>,
    pub delegation_id: Option<String>,
}

/// A delegation and all above it: the one given first, the root last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Chain(pub Vec<Arc<Delegation>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    pub id: String,
    pub version: i64,
    pub parent_id: Option<String>,
    pub delegator_id: String,
    pub delegate_id: String,
    pub state: DelegationState,
    pub window: Window,
    pub actions: Vec<Pattern>,
    pub bounds: Bounds,
    pub can_delegate: bool,
    pub needs_standing_approval: bool,
    /// Who signed the standing approval.
    pub standing: Vec<Signature>,
}

/// One person's approving act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The person: `<iss>|<sub>`.
    pub by: String,
    /// `approver`, `legal`, `admin` or `owner`.
    pub role: String,
}

/// A `uses` row and what it names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uses {
    pub row: Arc<UsesRow>,
    pub used: Used,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsesRow {
    /// Names the row among the subject's.
    pub id: String,
    pub allowed: bool,
    pub window: Window,
    pub constraints: Constraints,
}

/// `constraints_json`, read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraints {
    Bounds(Box<Bounds>),
    /// Stored, but not readable: no bound of it holds.
    Malformed(String),
}

/// What a `uses` row is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Used {
    Action(Pattern),
    Tool(Arc<Tool>),
    Model(Arc<Model>),
    ExternalApp(Arc<ExternalApp>),
    Resource(String),
    /// What the row names does not resolve.
    Missing(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub id: String,
    /// Not retired.
    pub live: bool,
    pub risk_tier: Option<RiskTier>,
    pub actions: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalApp {
    pub id: String,
    pub live: bool,
    pub actions: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    pub id: String,
    pub slug: String,
    /// State `active` and not deleted.
    pub active: bool,
    pub allowed_actions: Vec<Pattern>,
    pub principal_classes: Vec<PrincipalClass>,
    pub jurisdictions: Vec<String>,
    pub window: Window,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub id: String,
    /// Neither deprecated nor retired.
    pub live: bool,
    pub actions: Vec<Pattern>,
    /// Context members, `resource_id`, `workspace_id` that a request must carry.
    pub requires: Vec<String>,
    pub access_level: Option<AccessLevel>,
    pub action_declaration: Option<ActionDeclaration>,
    pub action_risk_classification: Option<ActionRiskClassification>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub sensitivity: Option<String>,
    /// Not archived.
    pub live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: String,
    pub live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub id: String,
    pub live: bool,
    pub workspace_id: Option<String>,
    pub visible_in_workspaces: Vec<String>,
}

/// The subject's membership of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActsIn {
    /// Names the row among the subject's.
    pub id: String,
    pub workspace_id: String,
    pub window: Window,
    /// `allowed_actions_json`: absent is membership only; empty (or not readable) is none.
    pub allowed_actions: Option<Vec<Pattern>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: String,
    pub resource_id: String,
    pub grantee_id: String,
    /// `team`, or a word for a principal.
    pub grantee_kind: String,
    pub access_level: AccessLevel,
}

/// A source of truth, its newest live snapshot, and an override in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub id: String,
    pub version: i64,
    pub grounds_actions: Vec<Pattern>,
    /// Purposes; empty: all.
    pub grounds_profiles: Vec<String>,
    /// Absent: never stale.
    pub freshness: Option<FreshnessContract>,
    /// The stored contract or snapshot cannot be read.
    #[serde(default)]
    pub unreadable: bool,
    pub newest: Option<Snapshot>,
    /// Until when a decided check's override lifts this anchor's own finding.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub overridden_until: Option<DateTime<Utc>>,
}

/// How old an anchor's newest snapshot may be; see reality.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessContract {
    pub max_staleness_seconds: u32,
    pub expected_refresh_seconds: Option<u32>,
    /// Absent: require_revalidation.
    pub stale_runtime_effect: Option<RuntimeEffect>,
    /// Absent: the stale effect.
    pub missing_runtime_effect: Option<RuntimeEffect>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: String,
    #[serde(with = "moment")]
    pub sampled_at: DateTime<Utc>,
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<DateTime<Utc>>,
    pub content_hash: Option<String>,
    /// Another snapshot of the same `sampled_at` has another hash.
    #[serde(default)]
    pub contested: bool,
}

/// A drift event that is not resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub id: String,
    /// Absent: every actor.
    pub actor_id: Option<String>,
    /// Absent: every action.
    pub action: Option<Pattern>,
    pub effect: RuntimeEffect,
    /// Until when an override lifts this event.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub overridden_until: Option<DateTime<Utc>>,
}

/// The approval that a request cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: String,
    pub state: ApprovalState,
    /// Its digest is that of this request's question.
    pub same_question: bool,
    pub given: Vec<Signature>,
    #[serde(with = "moment")]
    pub expires_at: DateTime<Utc>,
}

/// Names one counter: whose, of what, in which fixed window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// The delegation's or the uses row's id.
    pub holder_id: String,
    pub counts: Counts,
    pub window_seconds: u32,
    /// Epoch seconds: the floor of the decision's time by the window.
    pub window_start: i64,
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// One for each allow.
    Uses,
    /// Ten-thousandths of the amount of each allow.
    Amount,
}

/// Counters' used-before values. A counter that is not there is unknown, and its bound does not
/// hold: fill in every key of [`super::counters_needed`], with 0 where nothing is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent(pub BTreeMap<CounterKey, i64>);

#[derive(Serialize, Deserialize)]
struct SpentRow {
    #[serde(flatten)]
    key: CounterKey,
    used: i64,
}

impl Serialize for Spent {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|(key, used)| SpentRow { key: key.clone(), used: *used }))
    }
}

impl<'de> Deserialize<'de> for Spent {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let rows = Vec::<SpentRow>::deserialize(from)?;
        Ok(Self(rows.into_iter().map(|row| (row.key, row.used)).collect()))
    }
}

impl Facts {
    pub fn new(gathered: Arc<Gathered>) -> Self {
        Self { gathered, spent: Spent::default(), approval: None }
    }
}

/// Why a sealed document gives no facts.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the text of policy `{0}` is not at hand")]
    TextMissing(String),
    #[error("policy `{0}` does not compile: {1}")]
    Policy(String, PolicyError),
}

impl FactsDocument {
    /// Facts again: `text` gives a policy's text by the SHA-256 that its reference names. The
    /// caller has checked that the text has that digest.
    pub fn rebuild<T: AsRef<str>>(
        self,
        mut text: impl FnMut(&str) -> Option<T>,
    ) -> Result<Facts, RebuildError> {
        let gathered = Arc::unwrap_or_clone(self.gathered);
        let mut policies = Vec::with_capacity(gathered.policies.len());
        for reference in &gathered.policies {
            let id = || reference.id.clone();
            let text = text(&reference.sha256).ok_or_else(|| RebuildError::TextMissing(id()))?;
            let compiled = CompiledPolicy::compile(reference.clone(), text.as_ref())
                .map_err(|why| RebuildError::Policy(id(), why))?;
            policies.push(Arc::new(compiled));
        }
        Ok(Facts {
            gathered: Arc::new(gathered.with_policies(policies)),
            spent: self.spent,
            approval: self.approval,
        })
    }
}

impl<P> Gathered<P> {
    /// The same facts with other policies.
    pub fn with_policies<Q>(self, policies: Vec<Q>) -> Gathered<Q> {
        Gathered {
            revision: self.revision,
            tenant: self.tenant,
            subject: self.subject,
            model: self.model,
            memberships: self.memberships,
            stop_signals: self.stop_signals,
            quarantines: self.quarantines,
            delegations: self.delegations,
            principals: self.principals,
            uses: self.uses,
            purpose: self.purpose,
            tool: self.tool,
            resource: self.resource,
            workspace: self.workspace,
            project: self.project,
            acts_in: self.acts_in,
            grants: self.grants,
            policies,
            anchors: self.anchors,
            drifts: self.drifts,
        }
    }
}
