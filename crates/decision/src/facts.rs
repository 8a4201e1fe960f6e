//! Facts: everything that a decision may depend on besides its request and the time.
//!
//! [`Gathered`] depends on the tenant's graph at one revision and on the request's look-up keys
//! (subject, delegation, action, tool, purpose, resource, workspace, project) and on nothing else,
//! so it may be cached and shared. What changes from call to call is beside it in [`Facts`].
//!
//! A look-up that found nothing leaves its member absent; the request shows that it was made.
//! Facts serialise with a stable member order; policies by reference ([`PolicyReference`]), and
//! [`FactsDocument::rebuild`] turns a sealed document back into facts, given the policies' texts.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::input_schema::InputSchema;
use super::joined_terms::JoinedTerms;
use super::levels::words;
use super::reality::Reality;
pub use super::records::{
    ActsIn, Approval, Chain, ChainDenial, Constraints, Declined, Delegation, ExternalApp, Grant,
    Membership, Model, OpenRequests, Principal, Project, Purpose, Quarantine, Resource, Signature,
    StopSignal, Tenant, Tool, Used, Uses, UsesRow, Workspace, default_validity,
};
use super::{
    policy::{CompiledPolicy, PolicyReference},
    policy_error::PolicyError,
    validation::Members,
};

/// The facts of one decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts<P = Arc<CompiledPolicy>> {
    pub gathered: Arc<Gathered<P>>,
    /// The counters' values before this decision.
    #[serde(default)]
    pub spent: Spent,
    /// The approval that the request cites, if it resolves.
    #[serde(default)]
    pub approval: Option<Approval>,
    /// The decline that still applies to the question, if it would be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<Declined>,
    /// Set if the hold would open more requests than its subject may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_requests: Option<OpenRequests>,
}

/// Facts as they are sealed: policies by reference.
pub type FactsDocument = Facts<PolicyReference>;

/// What a tenant's graph has for a request's look-up keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Gathered<P = Arc<CompiledPolicy>> {
    /// The tenant's revision that these facts are from.
    /// It is in the record; the facts are the same at every revision that does not change them.
    #[serde(skip)]
    pub revision: i64,
    pub tenant: Option<Arc<Tenant>>,
    pub subject: Option<Arc<Principal>>,
    /// The subject's model.
    pub model: Option<Arc<Model>>,
    /// The subject's team memberships, past and present.
    pub memberships: Vec<Arc<Membership>>,
    /// Active signals, at least those on the subject and on the delegates of the chains.
    pub stop_signals: Vec<Arc<StopSignal>>,
    /// Active quarantines, at least those that may apply to this request.
    pub quarantines: Vec<Arc<Quarantine>>,
    /// If a delegation is named: its chain, if it resolves. Otherwise the chain of every delegation to the
    /// subject whose own actions cover the action, whatever its state.
    pub delegations: Vec<Chain>,
    /// Every delegator and delegate of the chains that resolves.
    pub principals: Vec<Arc<Principal>>,
    /// The subject's rows, at least those that cover the action or its tool.
    pub uses: Vec<Uses>,
    /// The rows with allowed = 0 of everyone else in the chains, at least those that may deny the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain_denials: Vec<ChainDenial>,
    pub purpose: Option<Arc<Purpose>>,
    pub tool: Option<Arc<Tool>>,
    /// If no tool is named: the strictest terms of all live tools that perform the action.
    #[serde(default)]
    pub joined_terms: Option<Arc<JoinedTerms>>,
    pub resource: Option<Arc<Resource>>,
    pub workspace: Option<Arc<Workspace>>,
    pub project: Option<Arc<Project>>,
    /// The subject's rows in the named workspace and in those that the named project reaches.
    pub acts_in: Vec<Arc<ActsIn>>,
    /// Rows on the named resource and on the named project.
    pub grants: Vec<Arc<Grant>>,
    /// Policies in force that can apply (see `PolicyIndex::candidates`).
    pub policies: Vec<P>,
    /// The schemas that the tools' `input` refers to, in order of digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Arc<InputSchema>>,
    /// The input types on which all tools that perform the action agree. They apply to every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_types: Option<Arc<Members>>,
    /// The state of the world, as far as it may concern the request. It is sealed separately, since it
    /// changes with each observation and the rest does not.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub reality: Arc<Reality>,
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
            chain_denials: Vec::new(),
            purpose: None,
            tool: None,
            joined_terms: None,
            resource: None,
            workspace: None,
            project: None,
            acts_in: Vec::new(),
            grants: Vec::new(),
            policies: Vec::new(),
            schemas: Vec::new(),
            input_types: None,
            reality: Arc::default(),
        }
    }
}

fn is_empty(reality: &Arc<Reality>) -> bool {
    reality.is_empty()
}

/// The key of a counter: its holder, what it counts, and its fixed window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// The delegation's or the uses row's id.
    pub holder_id: String,
    pub counts: Counts,
    pub window_seconds: u32,
    /// Epoch seconds: the floor of the decision's time by the window.
    pub window_start: i64,
}

words! {
    /// What a counter counts: allows, or the ten-thousandths of their amounts.
    Counts {
        Uses "uses",
        Amount "amount",
    }
}

/// Counters' values before the decision. A missing counter is unknown, and its bound does not hold: set
/// every key of [`super::counters_needed`], to 0 if nothing is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent(pub BTreeMap<CounterKey, i64>);

/// In the order of RFC 8785, in which a decision's facts are written.
#[derive(Serialize, Deserialize)]
struct SpentRow<'a> {
    counts: Counts,
    holder_id: Cow<'a, str>,
    /// As text: ten-thousandths exceed the precision of a double.
    used: String,
    window_seconds: u32,
    window_start: i64,
}

impl Serialize for Spent {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|(key, used)| SpentRow {
            counts: key.counts,
            holder_id: Cow::Borrowed(&key.holder_id),
            used: used.to_string(),
            window_seconds: key.window_seconds,
            window_start: key.window_start,
        }))
    }
}

impl<'de> Deserialize<'de> for Spent {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let rows = Vec::<SpentRow>::deserialize(from)?;
        let read = |row: SpentRow<'_>| {
            let key = CounterKey {
                holder_id: row.holder_id.into_owned(),
                counts: row.counts,
                window_seconds: row.window_seconds,
                window_start: row.window_start,
            };
            Ok((key, row.used.parse().map_err(serde::de::Error::custom)?))
        };
        Ok(Self(rows.into_iter().map(read).collect::<Result<_, D::Error>>()?))
    }
}

impl Facts {
    pub fn new(gathered: Arc<Gathered>) -> Self {
        Self {
            gathered,
            spent: Spent::default(),
            approval: None,
            declined: None,
            open_requests: None,
        }
    }
}

/// Why a sealed document cannot be turned back into facts.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the text of policy `{0}` is missing")]
    TextMissing(String),
    #[error("policy `{0}` does not compile: {1}")]
    Policy(String, Box<PolicyError>),
    #[error("the input schema `{0}` is missing")]
    SchemaMissing(String),
}

impl FactsDocument {
    /// Turns the document back into facts: `text` returns the text of a policy or of a schema for its
    /// SHA-256. The caller has checked that the text has that digest.
    pub fn rebuild<T: AsRef<str>>(
        self,
        text: impl Fn(&str) -> Option<T>,
    ) -> Result<Facts, RebuildError> {
        let policy = |reference: &PolicyReference| {
            let id = || reference.id.clone();
            let text = text(&reference.sha256).ok_or_else(|| RebuildError::TextMissing(id()))?;
            let compiled = CompiledPolicy::compile(reference.clone(), text.as_ref())
                .map_err(|why| RebuildError::Policy(id(), Box::new(why)))?;
            Ok(Arc::new(compiled))
        };
        let schema = |sha256: &str| {
            let missing = || RebuildError::SchemaMissing(sha256.to_owned());
            let text = text(sha256).ok_or_else(missing)?.as_ref().to_owned();
            Ok(Arc::new(InputSchema::new(sha256.to_owned(), text)))
        };
        self.rebuild_with(policy, schema)
    }

    /// Does the same with compiled policies and schemas, which many documents can share.
    pub fn rebuild_with<E>(
        self,
        policy: impl FnMut(&PolicyReference) -> Result<Arc<CompiledPolicy>, E>,
        schema: impl FnMut(&str) -> Result<Arc<InputSchema>, E>,
    ) -> Result<Facts, E> {
        let mut gathered = Arc::unwrap_or_clone(self.gathered);
        let policies = gathered.policies.iter().map(policy).collect::<Result<_, _>>()?;
        let named = gathered.schemas.iter().map(|named| named.sha256());
        gathered.schemas = named.map(schema).collect::<Result<_, _>>()?;
        Ok(Facts {
            gathered: Arc::new(gathered.with_policies(policies)),
            spent: self.spent,
            approval: self.approval,
            declined: self.declined,
            open_requests: self.open_requests,
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
            chain_denials: self.chain_denials,
            purpose: self.purpose,
            tool: self.tool,
            joined_terms: self.joined_terms,
            resource: self.resource,
            workspace: self.workspace,
            project: self.project,
            acts_in: self.acts_in,
            grants: self.grants,
            policies,
            schemas: self.schemas,
            input_types: self.input_types,
            reality: self.reality,
        }
    }
}
