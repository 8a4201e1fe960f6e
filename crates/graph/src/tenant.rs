//! A tenant's authority in memory. A look-up here cannot reach another tenant.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use authority_ids::{DelegationRef, EntityRef, PrincipalRef};
use tokio::sync::watch;

use super::{
    demanded_events::{DemandedEvents, EventDemands},
    indexed::{ById, Indexed},
    node::{self, Addresses, Profile},
    people::People,
    schemas::Schemas,
    tool_index::ToolIndex,
    world::World,
};
use authority_crypto::ErasedNames;
use authority_decision::{
    CompiledPolicy, Draft, Gathered, PolicyError, PolicyIndex, PolicyKeys, PolicyReference, Target,
    chain::{LONGEST_CHAIN, participants},
    pattern::covered,
    records::{self, Chain, Used, Uses},
    shared_entities::SharedEntities,
};
use authority_presentation::RolePath;

/// A tenant's authority at one revision.
#[derive(Default)]
pub struct TenantGraph {
    /// The tenant's revision that this graph reflects.
    pub revision: i64,
    /// The last revision that changed more than reality. Permissions are only judged again after
    /// such a change.
    pub ruled_at: i64,
    pub profile: Profile,
    /// How long an allow is valid, unless the tenant sets another value.
    pub(super) valid_for_seconds: u32,
    pub(super) tenant: Option<Arc<records::Tenant>>,
    pub(super) principals: ById<node::Principal>,
    /// Principals by their names in tokens.
    pub(super) people: People,
    /// Codes for the names of erased people.
    pub(super) erased: ErasedNames,
    pub(super) memberships: Indexed<node::Membership>,
    pub(super) delegations: Indexed<records::Delegation>,
    /// Renewed delegations, each with its successor.
    pub(super) renewed: HashMap<Box<str>, Box<str>>,
    /// Signers of delegations, by delegation. Most delegations have no standing approval and are
    /// not listed.
    pub(super) signers: HashMap<DelegationRef, Addresses>,
    /// Makers of overrides, by check.
    pub(super) override_makers: HashMap<EntityRef, Vec<node::Maker>>,
    pub(super) uses: Indexed<node::Uses>,
    pub(super) acts_in: Indexed<node::ActsIn>,
    pub(super) grants: Indexed<records::Grant>,
    pub(super) purposes: Indexed<records::Purpose>,
    pub(super) tools: ById<records::Tool>,
    pub(super) models: ById<records::Model>,
    pub(super) external_apps: ById<records::ExternalApp>,
    pub(super) resources: ById<records::Resource>,
    pub(super) workspaces: ById<records::Workspace>,
    pub(super) projects: ById<records::Project>,
    pub(super) policies: ById<node::Policy>,
    /// Observing versions of policies, by policy.
    pub(super) observing: ById<node::Policy>,
    pub(super) applies_to: Indexed<node::AppliesTo>,
    pub(super) stop_signals: Indexed<records::StopSignal>,
    pub(super) quarantines: ById<records::Quarantine>,
    pub(super) event_demands: EventDemands,
    /// Anchors, snapshots, overrides and drift.
    pub(super) world: World,
    pub(super) index: PolicyIndex,
    pub(super) observing_index: PolicyIndex,
    /// Tools by action. Their terms bind requests that do not name a tool.
    pub(super) tool_index: ToolIndex,
    /// The roles that tools declare for fields of their input, by tool.
    pub(super) role_paths: HashMap<EntityRef, Vec<RolePath>>,
    /// The schemas for the tools' input.
    pub(super) schemas: Schemas,
    /// Whether an active policy could not be compiled.
    unreadable: bool,
    /// Rows that this release cannot read, by table.
    unreadable_rows: BTreeSet<(&'static str, String)>,
    /// Sends each new revision. `None` for most tenants, which are not watched.
    moved: Option<watch::Sender<i64>>,
}

impl TenantGraph {
    pub(super) fn new(valid_for_seconds: u32, erased: ErasedNames) -> Self {
        Self { valid_for_seconds, erased, ..Self::default() }
    }

    /// Returns the tenant itself, if it exists.
    pub fn tenant(&self) -> Option<&Arc<records::Tenant>> {
        self.tenant.as_ref()
    }

    /// Whether this tenant's records exclude a person because their own principals are not active.
    ///
    /// This is checked for approvers and for all people with a token of the tenant, also while
    /// their streams run.
    ///
    /// A person's own principals are the principals with the token's `sub` as their
    /// `external_subject`, in any class. If any such principal is not deleted, only the principals
    /// with this subject that are not deleted count: deleted principals with the same subject or
    /// e-mail address do not exclude. Otherwise the deleted principals with this subject count, and
    /// every human principal with the e-mail address, deleted or not. Each counted principal must
    /// be in state `active`; pending, suspended, revoked and deleted principals exclude.
    ///
    /// A person without a principal in the tenant is not excluded. The address need not be
    /// verified, because it can only exclude. Addresses are compared without regard to case and
    /// surrounding space, subjects exactly. A principal is still found by its names after they were
    /// erased.
    pub fn excludes(&self, subject: &str, email: Option<&str>) -> bool {
        self.people.exclude(&self.subjects(subject), &self.emails(email))
    }

    /// Returns which decisions of the tenant become events.
    pub fn demanded_events(&self) -> DemandedEvents {
        self.event_demands.all()
    }

    pub(super) fn watch(&mut self) -> watch::Receiver<i64> {
        self.moved.get_or_insert_with(|| watch::Sender::new(self.revision)).subscribe()
    }

    pub(super) fn watchers(&self) -> usize {
        self.moved.as_ref().map_or(0, watch::Sender::receiver_count)
    }

    /// Returns the channel for new revisions, if it has receivers.
    pub(super) fn watched(&mut self) -> Option<watch::Sender<i64>> {
        if self.watchers() == 0 {
            self.moved = None;
        }
        self.moved.clone()
    }

    /// Returns the active policies, including policies that apply only at another time.
    ///
    /// Returns `None` while a record cannot be read, which denies every request.
    pub fn policies(&self) -> Option<&PolicyIndex> {
        self.is_readable().then_some(&self.index)
    }

    /// Whether all of the tenant's authority can be read. Otherwise its requests are denied.
    pub(super) fn is_readable(&self) -> bool {
        !self.unreadable && self.unreadable_rows.is_empty()
    }

    /// Denies the tenant's requests, because of an unreadable row.
    pub(super) fn deny_for(&mut self, table: &'static str, id: String) {
        self.unreadable_rows.insert((table, id));
    }

    /// Ends a denial by [`Self::deny_for`], because the row has changed. Returns whether there was
    /// one.
    pub(super) fn allow_for(&mut self, table: &'static str, id: &str) -> bool {
        // Most tenants have no such row, and most changes come without one.
        !self.unreadable_rows.is_empty() && self.unreadable_rows.remove(&(table, id.to_owned()))
    }

    /// Compiles the active policies and indexes them by the requests that they can match.
    pub(super) fn index_policies(&mut self) {
        let compile = |policy: &Arc<node::Policy>| self.compile(policy, &self.index).map(Arc::new);
        let compiled: Result<Vec<_>, _> = self.policies.iter().map(compile).collect();
        // Policies are checked on write. A policy that still cannot be read may forbid any action.
        // The tenant's requests are therefore denied until it can be read.
        self.unreadable = compiled.is_err();
        if let Err(error) = &compiled {
            tracing::error!(
                %error,
                tenant.slug = self.profile.slug,
                "failed to read a policy; denying the tenant's requests"
            );
        }
        self.index = PolicyIndex::new(compiled.unwrap_or_default());
        self.index_observing();
    }

    /// Compiles and indexes the observing versions. A version that cannot be read is left out: it
    /// must not change a verdict.
    fn index_observing(&mut self) {
        let compile = |policy: &Arc<node::Policy>| {
            self.compile(policy, &self.observing_index).map(Arc::new).inspect_err(|error| {
                let id = policy.id.as_str();
                tracing::warn!(%error, policy.id = id, "failed to read an observing policy version");
            })
        };
        let compiled = self.observing.iter().filter_map(|policy| compile(policy).ok()).collect();
        self.observing_index = PolicyIndex::new(compiled);
    }

    /// Compiles a policy, unless it is known from the index.
    fn compile(
        &self,
        policy: &node::Policy,
        known: &PolicyIndex,
    ) -> Result<CompiledPolicy, PolicyError> {
        let targets = self.applies_to.on(&policy.id);
        // An unreadable target makes the policy apply everywhere.
        let read: Vec<Target> = targets.iter().filter_map(|row| row.target.parse().ok()).collect();
        let reference = PolicyReference {
            id: policy.id.clone(),
            version: policy.version,
            sha256: policy.sha256.clone(),
            applies_to: if read.len() == targets.len() { read } else { Vec::new() },
            effective: policy.effective,
        };
        // A text is compiled once. A change of another policy, or of a target, does not parse it
        // again.
        if let Some(known) = known.get(&policy.id)
            && (known.reference.version, &known.reference.sha256)
                == (reference.version, &reference.sha256)
        {
            return Ok(known.applied_to(reference.applies_to, reference.effective));
        }
        CompiledPolicy::compile(reference, &policy.text)
    }

    /// Gathers everything that a decision on this request may use.
    pub fn gather(&self, request: &Draft) -> Gathered {
        let subject = self.principals.get(&request.subject);
        let delegations = self.chains(request);
        let successor_id = request.delegation_id.as_ref().and_then(|named| {
            let present = &delegations.first()?.0.first()?.id;
            (present != named).then(|| present.clone())
        });
        let project = found(&self.projects, request.project_id.as_ref());
        let resource = found(&self.resources, request.resource_id.as_ref());
        let keys = PolicyKeys {
            action: &request.action,
            purpose: request.purpose.as_deref(),
            principal_class: subject.map(|subject| subject.fact.class),
            resource_kind: resource.as_ref().map(|resource| resource.kind.as_str()),
        };
        let policies: Vec<_> = self.index.candidates(keys).cloned().collect();
        let tool = found(&self.tools, request.tool_id.as_ref());
        let joined_terms = match request.tool_id {
            Some(_) => None,
            None => self.tool_index.joined(&request.action),
        };
        let uses: Vec<Uses> = self.uses_of(&request.subject, request).collect();
        let reality = self.world.concerning(request, &delegations);
        let reality = self.lifting_for_anyone(&request.subject, &request.action, reality);
        Gathered {
            revision: self.revision,
            tenant: self.tenant.clone().filter(|_| self.is_readable()),
            subject: subject.map(|subject| Arc::clone(&subject.fact)),
            model: found(&self.models, subject.and_then(|subject| subject.model_id.as_ref())),
            memberships: self
                .memberships
                .on(&request.subject)
                .iter()
                .map(|row| Arc::clone(&row.fact))
                .collect(),
            stop_signals: self.stops_of(request, &delegations),
            quarantines: self.quarantines_for(request),
            principals: self.principals_of(&delegations),
            schemas: self.schemas.of(tool.as_deref(), joined_terms.as_deref(), &uses),
            input_types: self.tool_index.typed(&request.action),
            uses,
            chain_denials: self.denials_of(request, &delegations),
            purpose: self
                .purposes
                .on(request.purpose.as_deref().unwrap_or_default())
                .iter()
                .max_by_key(|purpose| purpose.active)
                .cloned(),
            tool,
            joined_terms,
            workspace: found(&self.workspaces, request.workspace_id.as_ref()),
            acts_in: self.acts_in_for(request, project.as_deref()),
            grants: [&request.resource_id, &request.project_id]
                .into_iter()
                .flatten()
                .flat_map(|id| self.grants.on(id))
                .cloned()
                .collect(),
            observing: self.observing_for(keys, &policies),
            policies,
            delegations,
            successor_id,
            resource,
            project,
            reality,
            entities: SharedEntities::default(),
        }
    }

    /// Returns the observing versions that can apply, or whose active version can, in order of id.
    fn observing_for(
        &self,
        keys: PolicyKeys<'_>,
        active: &[Arc<CompiledPolicy>],
    ) -> Vec<Arc<CompiledPolicy>> {
        if self.observing_index.is_empty() {
            return Vec::new();
        }
        let replaced = active.iter().filter_map(|one| self.observing_index.get(&one.reference.id));
        let all = self.observing_index.candidates(keys).chain(replaced);
        let mut all: Vec<_> = all.cloned().collect();
        all.sort_by(|one, other| one.reference.id.cmp(&other.reference.id));
        all.dedup_by(|one, other| one.reference.id == other.reference.id);
        all
    }

    /// Returns the chain of the delegation that the request names. If the request names none,
    /// returns the subject's chains that cover the action.
    fn chains(&self, request: &Draft) -> Vec<Chain> {
        if let Some(id) = &request.delegation_id {
            return self.delegation(id).map(|leaf| self.chain(leaf)).into_iter().collect();
        }
        self.delegations
            .on(&request.subject)
            .iter()
            .filter(|delegation| covered(&delegation.actions, &request.action))
            .map(|leaf| self.chain(leaf))
            .collect()
    }

    /// Returns the delegation with this id. If it was renewed, returns its newest successor.
    pub(super) fn delegation(&self, id: &DelegationRef) -> Option<&Arc<records::Delegation>> {
        let line = std::iter::successors(Some(id.as_str()), |id| {
            self.renewed.get(*id).map(|next| &**next)
        });
        line.take(self.renewed.len() + 1).find_map(|id| self.delegations.get(id))
    }

    /// Returns the line that a delegation shares with its renewals, or the id of an unknown
    /// delegation.
    pub(super) fn line_of(&self, id: DelegationRef) -> DelegationRef {
        self.delegation(&id).map_or(id, |present| present.line().into())
    }

    /// Replaces the delegation of each quarantine with the delegation's line.
    ///
    /// When a quarantine was added, its delegation may have been unreadable.
    pub(super) fn resolve_quarantines(&mut self) {
        let resolve = |quarantine: &Arc<records::Quarantine>| {
            let delegation_id = Some(self.line_of(quarantine.delegation_id.clone()?));
            let resolved = records::Quarantine::clone(quarantine);
            Some(Arc::new(records::Quarantine { delegation_id, ..resolved }))
        };
        let resolved: Vec<_> = self.quarantines.iter().filter_map(resolve).collect();
        for quarantine in resolved {
            self.quarantines.put(quarantine);
        }
    }

    /// Returns a delegation with all delegations above it.
    ///
    /// If the last link still has a parent, the chain does not resolve.
    pub(super) fn chain(&self, leaf: &Arc<records::Delegation>) -> Chain {
        let above = std::iter::successors(Some(leaf), |link| {
            self.delegations.get(link.parent_id.as_deref()?)
        });
        Chain(above.take(LONGEST_CHAIN).cloned().collect())
    }

    /// Returns the stop signals on the subject and on all participants of its chains, in order of
    /// principal and id.
    fn stops_of(&self, request: &Draft, chains: &[Chain]) -> Vec<Arc<records::StopSignal>> {
        let actors = participants(&request.subject, chains).into_iter();
        actors.flat_map(|actor| self.stop_signals.on(actor)).cloned().collect()
    }

    /// Returns `uses` rows of the other participants that may deny the request, in order of
    /// principal and id.
    fn denials_of(&self, request: &Draft, chains: &[Chain]) -> Vec<records::ChainDenial> {
        let others = participants(&request.subject, chains).into_iter();
        let others = others.filter(|id| **id != request.subject);
        let denials = others.flat_map(|id| {
            let rows = self.uses_of(id, request).filter(|uses| !uses.row.allowed);
            rows.map(|denial| records::ChainDenial { principal_id: id.clone(), denial })
        });
        denials.collect()
    }

    /// Returns the quarantines that may apply to the request by their action, in order of id.
    ///
    /// The decision crate determines whether a quarantine applies to the delegation or its
    /// delegators.
    fn quarantines_for(&self, request: &Draft) -> Vec<Arc<records::Quarantine>> {
        let meant = |quarantine: &&Arc<records::Quarantine>| {
            quarantine.action.as_ref().is_none_or(|pattern| pattern.covers(&request.action))
        };
        let mut found: Vec<_> = self.quarantines.iter().filter(meant).cloned().collect();
        found.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        found
    }

    fn principals_of(&self, chains: &[Chain]) -> Vec<Arc<records::Principal>> {
        let mut seen = HashSet::new();
        chains
            .iter()
            .flat_map(|chain| &chain.0)
            .flat_map(|link| [&link.delegate_id, &link.delegator_id])
            .filter(|id| seen.insert(id.as_str()))
            .filter_map(|id| self.principals.get(id))
            .map(|principal| Arc::clone(&principal.fact))
            .collect()
    }

    /// Returns a principal's rows that can cover or deny the action or its tool.
    pub(super) fn uses_of<'t>(
        &'t self,
        id: &PrincipalRef,
        request: &'t Draft,
    ) -> impl Iterator<Item = Uses> + use<'t> {
        let rows = self.uses.on(id).iter();
        let rows = rows.map(|node| Uses { row: Arc::clone(&node.row), used: self.used(node) });
        rows.filter(|uses| match &uses.used {
            Used::Action(pattern) => pattern.covers(&request.action),
            Used::Tool(tool) => {
                request.tool_id.as_deref() == Some(tool.id.as_str())
                    || covered(&tool.actions, &request.action)
            }
            Used::Model(model) => covered(&model.actions, &request.action),
            Used::ExternalApp(app) => covered(&app.actions, &request.action),
            Used::Resource(id) => request.resource_id.as_ref() == Some(id),
            // A denial counts even if the used record is unknown or unreadable.
            Used::Missing(_) => !uses.row.allowed,
        })
    }

    pub(super) fn used(&self, node: &node::Uses) -> Used {
        let missing = || Used::Missing(node.used_id.clone());
        match node.used_kind.as_str() {
            "action" => node.used_id.parse().map_or_else(|_| missing(), Used::Action),
            "tool" => self.tools.get(&node.used_id).cloned().map_or_else(missing, Used::Tool),
            "model" => self.models.get(&node.used_id).cloned().map_or_else(missing, Used::Model),
            "external_app" => {
                let app = self.external_apps.get(&node.used_id).cloned();
                app.map_or_else(missing, Used::ExternalApp)
            }
            "resource" => Used::Resource(node.used_id.as_str().into()),
            _ => missing(),
        }
    }

    /// Returns the subject's rows in the named workspace and in the workspaces of the project.
    fn acts_in_for(
        &self,
        request: &Draft,
        project: Option<&records::Project>,
    ) -> Vec<Arc<records::ActsIn>> {
        let reached = project
            .into_iter()
            .flat_map(|project| project.workspace_id.iter().chain(&project.visible_in_workspaces));
        let asked: HashSet<&EntityRef> = request.workspace_id.iter().chain(reached).collect();
        self.acts_in
            .on(&request.subject)
            .iter()
            .filter(|row| asked.contains(&row.fact.workspace_id))
            .map(|row| Arc::clone(&row.fact))
            .collect()
    }
}

fn found<T: super::indexed::IndexedRow>(rows: &ById<T>, id: Option<&EntityRef>) -> Option<Arc<T>> {
    rows.get(id?).cloned()
}
