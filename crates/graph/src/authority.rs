//! Converts each stored row to its form in a tenant's graph.

use std::{sync::Arc, time::Duration};

use authority_crypto::sha256;
use authority_model::{
    proto::{delegation, registry},
    record::Record,
    state::{
        ExternalAppState, ModelState, PolicyState, ProjectState, QuarantineState, ResourceState,
        StopSignalState, WorkspaceState,
    },
};

use chrono::TimeDelta;

use super::{
    acts::addresses,
    delegation_row::delegation,
    fields::{ENDED, patterns, per_second, window},
    node::{self, Profile},
    rows::{acts_in, principal, purpose, tenant, uses},
    tenant::TenantGraph,
    tool_row::{BoundTool, tool},
};
use authority_decision::{
    levels::{AccessLevel, RiskTier},
    records,
};
use authority_presentation::role_paths;

/// A row that belongs to a tenant.
pub(super) trait Owned {
    fn tenant_id(&self) -> &str;
}

impl<R: Record> Owned for R {
    fn tenant_id(&self) -> &str {
        Record::tenant_id(self)
    }
}

/// A stored row of a tenant's graph.
pub(super) trait Authority: Owned + Sized + Send + Sync + 'static {
    fn put(self, graph: &mut TenantGraph);
    fn remove(graph: &mut TenantGraph, id: &str);
}

impl Authority for registry::Tenant {
    fn put(self, graph: &mut TenantGraph) {
        graph.tenant = Some(Arc::new(tenant(&self, graph.valid_for_seconds)));
        graph.profile = Profile {
            relaxed: self.durability.as_deref() == Some("relaxed"),
            self_approval: self.self_approval,
            approval_max_auth_age: self
                .approval_max_auth_age_seconds
                .map(|seconds| TimeDelta::seconds(seconds.into())),
            slug: self.slug.unwrap_or_default(),
            // An empty text is not an organisation.
            idp_org_id: self.idp_org_id.filter(|org| !org.is_empty()),
            deleted: self.deleted_at.is_some(),
            approval_ttl: self
                .approval_ttl_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(Duration::from_secs),
            // Older database entries do not have this setting.
            cites_ready: self.cite_ready_approval.unwrap_or_default(),
            declined_for: self.declined_for_seconds.and_then(|seconds| seconds.try_into().ok()),
            open_requests: self
                .open_requests_per_agent
                .and_then(|most| most.try_into().ok())
                .unwrap_or_default(),
            decisions_per_second: self.decisions_per_second.map(per_second),
        };
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.tenant.take_if(|tenant| tenant.id == id);
    }
}

impl Authority for registry::Principal {
    fn put(self, graph: &mut TenantGraph) {
        let read = principal(&self);
        graph.people.put(&self, &read);
        if self.deleted_at.is_some() {
            graph.principals.remove(&self.id);
        } else {
            graph.principals.put(Arc::new(read));
        }
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.principals.remove(id);
        graph.people.remove(id);
    }
}

impl Authority for registry::MemberOf {
    fn put(self, graph: &mut TenantGraph) {
        let window = window(self.joined_at, self.left_at).unwrap_or(ENDED);
        let fact = records::Membership { team_id: self.team_id.into(), window };
        graph.memberships.put(Arc::new(node::Membership {
            id: self.id.into(),
            principal_id: self.principal_id.into(),
            fact: Arc::new(fact),
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.memberships.remove(id);
    }
}

impl Authority for delegation::Delegation {
    /// A renewed delegation gives no authority. Only the id of its successor is kept, because
    /// requests and records may still name the renewed delegation.
    fn put(self, graph: &mut TenantGraph) {
        if let Some(successor) = &self.renewed_by {
            graph.renewed.insert(self.id.as_str().into(), successor.as_str().into());
            return;
        }
        let signers = addresses(&self.standing);
        let fact = delegation(self);
        graph.signed(&fact.id, signers);
        graph.delegations.put(Arc::new(fact));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.signers.remove(id);
        graph.renewed.remove(id);
        graph.delegations.remove(id);
    }
}

impl Authority for registry::Uses {
    fn put(self, graph: &mut TenantGraph) {
        graph.uses.put(Arc::new(uses(self)));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.uses.remove(id);
    }
}

impl Authority for registry::ActsIn {
    fn put(self, graph: &mut TenantGraph) {
        graph.acts_in.put(Arc::new(acts_in(self)));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.acts_in.remove(id);
    }
}

impl Authority for registry::GrantedAccessTo {
    fn put(self, graph: &mut TenantGraph) {
        // An unreadable level becomes the lowest level.
        let access_level = AccessLevel::from_word(&self.access_level).unwrap_or(AccessLevel::Read);
        graph.grants.put(Arc::new(records::Grant {
            id: self.id.into(),
            resource_id: self.resource_id.into(),
            grantee_id: self.grantee_id,
            grantee_kind: self.grantee_kind,
            access_level,
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.grants.remove(id);
    }
}

impl Authority for registry::StopSignal {
    fn put(self, graph: &mut TenantGraph) {
        // A signal in any state except `lifted` stops its actor. This includes an unreadable state.
        if self.known_state() == Some(StopSignalState::Lifted) {
            graph.stop_signals.remove(&self.id);
        } else {
            let fact = records::StopSignal { id: self.id.into(), actor_id: self.actor_id.into() };
            graph.stop_signals.put(Arc::new(fact));
        }
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.stop_signals.remove(id);
    }
}

impl Authority for registry::Quarantine {
    fn put(self, graph: &mut TenantGraph) {
        if self.known_state() == Some(QuarantineState::Released) {
            graph.quarantines.remove(&self.id);
        } else {
            // The delegation is already in the graph, because delegations are put before quarantines.
            // A delegation never moves to another line. The line of an unreadable delegation is
            // resolved when the delegation can be read.
            let delegation_id = self.delegation_id.map(|id| graph.line_of(id.into()));
            graph.quarantines.put(Arc::new(records::Quarantine {
                id: self.id.into(),
                subject_id: self.subject_id.map(Into::into),
                // An unreadable pattern covers every action.
                action: self.action.and_then(|action| action.parse().ok()),
                delegation_id,
            }));
        }
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.quarantines.remove(id);
    }
}

impl Authority for registry::Purpose {
    fn put(self, graph: &mut TenantGraph) {
        graph.purposes.put(Arc::new(purpose(self)));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.purposes.remove(id);
    }
}

impl Authority for registry::Tool {
    fn put(self, graph: &mut TenantGraph) {
        let roles = role_paths(&self);
        let BoundTool { fact, binding, schema } = tool(self);
        let (schema, typed) = schema.unzip();
        graph.role_paths.remove(&fact.id);
        if !roles.is_empty() {
            graph.role_paths.insert(fact.id.clone(), roles);
        }
        match binding {
            Some(binding) => graph.tool_index.put(binding, typed.unwrap_or_default()),
            None => graph.tool_index.remove(&fact.id),
        }
        if let Some(schema) = schema {
            graph.schemas.put(schema);
        }
        graph.tools.put(fact);
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.tools.remove(id);
        graph.tool_index.remove(id);
        graph.role_paths.remove(id);
    }
}

impl Authority for registry::Model {
    fn put(self, graph: &mut TenantGraph) {
        // An unreadable tier becomes the worst tier.
        let tier = |word: String| RiskTier::from_word(&word).unwrap_or(RiskTier::Prohibited);
        graph.models.put(Arc::new(records::Model {
            live: self.known_state() == Some(ModelState::Active),
            risk_tier: self.risk_tier.map(tier),
            actions: patterns(&self.actions),
            id: self.id.into(),
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.models.remove(id);
    }
}

impl Authority for registry::ExternalApp {
    fn put(self, graph: &mut TenantGraph) {
        graph.external_apps.put(Arc::new(records::ExternalApp {
            live: self.known_state() == Some(ExternalAppState::Active),
            actions: patterns(&self.actions),
            id: self.id.into(),
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.external_apps.remove(id);
    }
}

impl Authority for registry::Resource {
    fn put(self, graph: &mut TenantGraph) {
        graph.resources.put(Arc::new(records::Resource {
            live: self.known_state() == Some(ResourceState::Active),
            workspace_id: self.workspace_id.map(Into::into),
            kind: self.kind,
            name: self.name,
            sensitivity: self.sensitivity,
            id: self.id.into(),
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.resources.remove(id);
    }
}

impl Authority for registry::Workspace {
    fn put(self, graph: &mut TenantGraph) {
        let live = self.known_state() == Some(WorkspaceState::Active);
        graph.workspaces.put(Arc::new(records::Workspace { id: self.id.into(), live }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.workspaces.remove(id);
    }
}

impl Authority for registry::Project {
    fn put(self, graph: &mut TenantGraph) {
        graph.projects.put(Arc::new(records::Project {
            live: self.known_state() == Some(ProjectState::Active),
            workspace_id: self.workspace_id.map(Into::into),
            visible_in_workspaces: self.visible_in_workspaces.into_iter().map(Into::into).collect(),
            id: self.id.into(),
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.projects.remove(id);
    }
}

impl Authority for registry::Policy {
    fn put(self, graph: &mut TenantGraph) {
        let state = self.known_state();
        // A policy with an unreadable period applies at any time.
        let effective = window(self.effective_from, self.effective_until).unwrap_or_default();
        let node = |version: i32, text: String| {
            Arc::new(node::Policy {
                id: self.id.as_str().into(),
                version: version.into(),
                sha256: hex::encode(sha256(text.as_bytes())),
                text,
                effective,
            })
        };
        match self.cedar.filter(|_| state == Some(PolicyState::Active)) {
            Some(text) => graph.policies.put(node(self.version, text)),
            None => graph.policies.remove(&self.id),
        };
        let observing = self.observing_version.zip(self.observing_cedar);
        match observing.filter(|_| state.is_some_and(|state| state != PolicyState::Retired)) {
            Some((version, text)) => graph.observing.put(node(version, text)),
            None => graph.observing.remove(&self.id),
        };
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.policies.remove(id);
        graph.observing.remove(id);
    }
}

impl Authority for registry::AppliesTo {
    fn put(self, graph: &mut TenantGraph) {
        graph.applies_to.put(Arc::new(node::AppliesTo {
            id: self.id.into(),
            policy_id: self.policy_id.into(),
            target: self.target_class,
        }));
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.applies_to.remove(id);
    }
}
