//! Facts: all inputs of a decision besides its request and the time.
//!
//! [`Gathered`] depends only on the tenant's graph at one revision and on the request's look-up
//! keys (subject, delegation, action, tool, purpose, resource, workspace, project). It may
//! therefore be cached and shared. Facts that change from call to call are in [`Facts`].
//!
//! If a look-up finds no record, its field is absent; the request shows that the look-up was made.
//! Facts serialise with a stable order of fields and with policies by reference
//! ([`PolicyReference`]). [`FactsDocument::rebuild`] turns a sealed document back into facts, given
//! the policies' texts.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use authority_ids::{DelegationRef, EntityRef};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::joined_terms::JoinedTerms;
use super::reality::Reality;
use super::records::{
    ActsIn, Approval, Chain, ChainDenial, Declined, Grant, Membership, Model, OpenRequests,
    Principal, Project, Purpose, Quarantine, Resource, StopSignal, Tenant, Tool, Uses, Workspace,
};
use super::shared_entities::SharedEntities;
use super::time_zone::ZoneOffset;
use crate::levels::words;
use crate::policy::{
    compiled::{CompiledPolicy, PolicyReference},
    error::PolicyError,
    validation::Members,
};
use crate::request::input_schema::InputSchema;

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
    /// The decline that still applies to the question, if the request would be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<Declined>,
    /// Set if the hold would exceed the subject's limit of open requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_requests: Option<OpenRequests>,
    /// The offsets of the time zones that the decision reads, in order of name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneOffset>,
}

/// Facts in their sealed form: policies by reference.
pub type FactsDocument = Facts<PolicyReference>;

/// The facts from a tenant's graph for a request's look-up keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Gathered<P = Arc<CompiledPolicy>> {
    /// The tenant's revision that these facts are from. The revision is in the record; the facts
    /// are the same at every revision that does not change them.
    #[serde(skip)]
    pub revision: i64,
    pub tenant: Option<Arc<Tenant>>,
    pub subject: Option<Arc<Principal>>,
    /// The subject's model.
    pub model: Option<Arc<Model>>,
    /// The subject's team memberships, past and present.
    pub memberships: Vec<Arc<Membership>>,
    /// Active signals: at least the signals on the subject and on the delegates of the chains.
    pub stop_signals: Vec<Arc<StopSignal>>,
    /// Active quarantines: at least the quarantines that may apply to this request.
    pub quarantines: Vec<Arc<Quarantine>>,
    /// If the request names a delegation: the delegation's chain, if it exists. Otherwise: the
    /// chain of each delegation to the subject, in any state, that itself covers the action.
    pub delegations: Vec<Chain>,
    /// The delegation that renewed the named one, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor_id: Option<DelegationRef>,
    /// Every existing delegator and delegate of the chains.
    pub principals: Vec<Arc<Principal>>,
    /// The subject's `uses` rows: at least the rows that cover the action or its tool.
    pub uses: Vec<Uses>,
    /// Rows with allowed = 0 of the other participants: at least the rows that may deny the
    /// request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain_denials: Vec<ChainDenial>,
    pub purpose: Option<Arc<Purpose>>,
    pub tool: Option<Arc<Tool>>,
    /// If the request names no tool: the strictest terms of all live tools that perform the action.
    #[serde(default)]
    pub joined_terms: Option<Arc<JoinedTerms>>,
    pub resource: Option<Arc<Resource>>,
    pub workspace: Option<Arc<Workspace>>,
    pub project: Option<Arc<Project>>,
    /// The subject's rows in the named workspace and in the workspaces of the named project.
    pub acts_in: Vec<Arc<ActsIn>>,
    /// Grants on the named resource and on the named project.
    pub grants: Vec<Arc<Grant>>,
    /// The active policies that can apply (see `PolicyIndex::candidates`).
    pub policies: Vec<P>,
    /// The observing versions of policies that can apply in this or in their active version, in order
    /// of id. They change no verdict ([`crate::observe`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observing: Vec<P>,
    /// The schemas that the tools' `input` refers to, in order of digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Arc<InputSchema>>,
    /// The input types on which all tools for the action agree. They apply to every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_types: Option<Arc<Members>>,
    /// The state of the world that may concern the request. It is sealed separately: it changes
    /// with each observation, unlike the other facts.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub reality: Arc<Reality>,
    #[serde(skip)]
    pub entities: SharedEntities,
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
            successor_id: None,
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
            observing: Vec::new(),
            schemas: Vec::new(),
            input_types: None,
            reality: Arc::default(),
            entities: SharedEntities::default(),
        }
    }
}

fn is_empty(reality: &Arc<Reality>) -> bool {
    reality.is_empty()
}

/// The key of a counter: its holder, the counted quantity and its fixed window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// The line of the delegation, or the id of the `uses` row.
    pub holder_id: String,
    pub counts: Counts,
    pub window_seconds: u32,
    /// The start of the window in epoch seconds: the decision's time, rounded down.
    pub window_start: i64,
}

impl CounterKey {
    /// Returns the key of a counter at a time; `None` if the window has no length.
    pub(crate) fn at(holder: &str, counts: Counts, window: u32, at: DateTime<Utc>) -> Option<Self> {
        let window_start = at.timestamp().div_euclid(i64::from(window).max(1)) * i64::from(window);
        let holder_id = holder.to_owned();
        (window > 0).then_some(Self { holder_id, counts, window_seconds: window, window_start })
    }
}

words! {
    /// The quantity of a counter: the number of allows, or the ten-thousandths of their amounts.
    Counts {
        Uses "uses",
        Amount "amount",
    }
}

/// The counters' values before the decision.
///
/// A missing counter is unknown, and its bound does not hold. Set every key of
/// [`crate::counters_needed`]; use 0 without a stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent(pub BTreeMap<CounterKey, i64>);

/// The fields are in the order of RFC 8785, like a decision's facts.
#[derive(Serialize, Deserialize)]
struct SpentRow<'a> {
    counts: Counts,
    holder_id: Cow<'a, str>,
    /// Stored as text, because ten-thousandths exceed the precision of a double.
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
            zones: Vec::new(),
        }
    }
}

/// The reason why a sealed document cannot be turned back into facts.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the text of policy `{0}` is missing")]
    TextMissing(EntityRef),
    #[error("policy `{0}` does not compile: {1}")]
    Policy(EntityRef, Box<PolicyError>),
    #[error("the input schema `{0}` is missing")]
    SchemaMissing(String),
}

impl FactsDocument {
    /// Turns the document back into facts.
    ///
    /// `text` returns the text of a policy or schema for its SHA-256. The caller must have checked
    /// the digest of the text. An observing version with an unreadable text is not compared
    /// ([`crate::observe`]).
    ///
    /// # Errors
    /// A text is missing, or a policy does not compile.
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

    /// Does the same as [`Self::rebuild`] with compiled policies and schemas, which many documents
    /// can share.
    pub fn rebuild_with<E>(
        self,
        mut policy: impl FnMut(&PolicyReference) -> Result<Arc<CompiledPolicy>, E>,
        schema: impl FnMut(&str) -> Result<Arc<InputSchema>, E>,
    ) -> Result<Facts, E> {
        let mut gathered = Arc::unwrap_or_clone(self.gathered);
        let policies = gathered.policies.iter().map(&mut policy).collect::<Result<_, _>>()?;
        // An observing version changes no verdict. Without a readable text, it is kept for the digest of
        // the facts, and not compared.
        let unreadable = |one: &PolicyReference| Arc::new(CompiledPolicy::unreadable(one.clone()));
        let observing = gathered.observing.iter();
        let observing =
            observing.map(|one| policy(one).unwrap_or_else(|_| unreadable(one))).collect();
        let named = gathered.schemas.iter().map(|named| named.sha256());
        gathered.schemas = named.map(schema).collect::<Result<_, _>>()?;
        Ok(Facts {
            gathered: Arc::new(gathered.with_policies(policies, observing)),
            spent: self.spent,
            approval: self.approval,
            declined: self.declined,
            open_requests: self.open_requests,
            zones: self.zones,
        })
    }
}

impl<P> Gathered<P> {
    /// Returns the same facts with other policies and other observing versions.
    pub fn with_policies<Q>(self, policies: Vec<Q>, observing: Vec<Q>) -> Gathered<Q> {
        Gathered {
            revision: self.revision,
            tenant: self.tenant,
            subject: self.subject,
            model: self.model,
            memberships: self.memberships,
            stop_signals: self.stop_signals,
            quarantines: self.quarantines,
            delegations: self.delegations,
            successor_id: self.successor_id,
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
            observing,
            schemas: self.schemas,
            input_types: self.input_types,
            reality: self.reality,
            entities: SharedEntities::default(),
        }
    }
}
