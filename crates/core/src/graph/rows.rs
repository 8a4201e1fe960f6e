//! Stored rows as facts. An unreadable member becomes the narrowest fact: a pattern list without the unreadable
//! pattern, an inactive state, a bound that does not hold.

use authority_crypto::sha256;
use std::{sync::Arc, time::Duration};

use authority_model::{
    proto::{delegation, registry},
    record::Record,
    wire::Time,
};
use chrono::DateTime;

use super::{
    delegation_row::delegation,
    node::{self, Profile},
    tenant::TenantGraph,
    tool_row::{BoundTool, tool},
};
use authority_decision::{
    gate::{Tightening, Undoing},
    levels::{AccessLevel, EffectClass, Oversight, PrincipalClass, RiskTier},
    moment::Window,
    pattern::Pattern,
    records,
    validation::ContextSchema,
};

/// A stored row of a tenant's graph.
pub(super) trait Authority: Send + 'static {
    fn tenant_id(&self) -> &str;
    fn put(self, graph: &mut TenantGraph);
    fn remove(graph: &mut TenantGraph, id: &str);
}

macro_rules! authority {
    ($($message:ty, $row:ident, $graph:ident, $id:ident => $put:block, $remove:block;)*) => { $(
        impl Authority for $message {
            fn tenant_id(&self) -> &str {
                Record::tenant_id(self)
            }
            fn put(self, $graph: &mut TenantGraph) {
                let $row = self;
                $put
            }
            fn remove($graph: &mut TenantGraph, $id: &str) {
                $remove
            }
        }
    )* };
}

authority! {
    registry::Tenant, row, graph, id => {
        graph.tenant = Some(Arc::new(tenant(&row, graph.valid_for_seconds)));
        graph.profile = Profile {
            relaxed: row.durability.as_deref() == Some("relaxed"),
            self_approval: row.self_approval,
            slug: row.slug.unwrap_or_default(),
            // The empty text is not an organisation.
            idp_org_id: row.idp_org_id.filter(|org| !org.is_empty()),
            deleted: row.deleted_at.is_some(),
            approval_ttl: row
                .approval_ttl_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(Duration::from_secs),
            cites_ready: row.cite_ready_approval,
        };
    }, { graph.tenant.take_if(|tenant| tenant.id == id); };

    registry::Principal, row, graph, id => {
        let read = principal(&row);
        graph.people.put(&row, &read);
        if row.deleted_at.is_some() {
            graph.principals.remove(&row.id);
        } else {
            graph.principals.put(Arc::new(read));
        }
    }, {
        graph.principals.remove(id);
        graph.people.remove(id);
    };

    registry::MemberOf, row, graph, id => {
        let window = window(row.joined_at, row.left_at).unwrap_or(ENDED);
        let fact = records::Membership { team_id: row.team_id, window };
        graph.memberships.put(Arc::new(node::Membership {
            id: row.id,
            principal_id: row.principal_id,
            fact: Arc::new(fact),
        }));
    }, { graph.memberships.remove(id); };

    delegation::Delegation, row, graph, id => {
        graph.signed(&row.id, &row.standing);
        graph.delegations.put(Arc::new(delegation(row)));
    }, {
        graph.signed(id, &[]);
        graph.delegations.remove(id);
    };

    registry::Uses, row, graph, id => {
        graph.uses.put(Arc::new(uses(row)));
    }, { graph.uses.remove(id); };

    registry::ActsIn, row, graph, id => {
        graph.acts_in.put(Arc::new(acts_in(row)));
    }, { graph.acts_in.remove(id); };

    registry::GrantedAccessTo, row, graph, id => {
        // An unreadable level is the lowest.
        let access_level = AccessLevel::from_word(&row.access_level).unwrap_or(AccessLevel::Read);
        graph.grants.put(Arc::new(records::Grant {
            id: row.id,
            resource_id: row.resource_id,
            grantee_id: row.grantee_id,
            grantee_kind: row.grantee_kind,
            access_level,
        }));
    }, { graph.grants.remove(id); };

    registry::StopSignal, row, graph, id => {
        // Only a lifted signal does not stop.
        if row.state == "lifted" {
            graph.stop_signals.remove(&row.id);
        } else {
            let fact = records::StopSignal { id: row.id, actor_id: row.actor_id };
            graph.stop_signals.put(Arc::new(fact));
        }
    }, { graph.stop_signals.remove(id); };

    registry::Quarantine, row, graph, id => {
        if row.state == "released" {
            graph.quarantines.remove(&row.id);
        } else {
            graph.quarantines.put(Arc::new(records::Quarantine {
                id: row.id,
                subject_id: row.subject_id,
                // An unreadable pattern covers every action.
                action: row.action.and_then(|action| action.parse().ok()),
                delegation_id: row.delegation_id,
            }));
        }
    }, { graph.quarantines.remove(id); };

    registry::Purpose, row, graph, id => {
        graph.purposes.put(Arc::new(purpose(row)));
    }, { graph.purposes.remove(id); };

    registry::Tool, row, graph, id => {
        let BoundTool { fact, binding } = tool(row);
        match binding {
            Some(binding) => graph.tool_index.put(binding),
            None => graph.tool_index.remove(&fact.id),
        }
        graph.tools.put(fact);
    }, {
        graph.tools.remove(id);
        graph.tool_index.remove(id);
    };

    registry::Model, row, graph, id => {
        // An unreadable tier is the worst.
        let tier = |word: String| RiskTier::from_word(&word).unwrap_or(RiskTier::Prohibited);
        graph.models.put(Arc::new(records::Model {
            live: row.state == "active",
            risk_tier: row.risk_tier.map(tier),
            actions: patterns(&row.actions),
            id: row.id,
        }));
    }, { graph.models.remove(id); };

    registry::ExternalApp, row, graph, id => {
        graph.external_apps.put(Arc::new(records::ExternalApp {
            live: row.state == "active",
            actions: patterns(&row.actions),
            id: row.id,
        }));
    }, { graph.external_apps.remove(id); };

    registry::Resource, row, graph, id => {
        graph.resources.put(Arc::new(records::Resource {
            live: row.state == "active",
            workspace_id: row.workspace_id,
            kind: row.kind,
            name: row.name,
            sensitivity: row.sensitivity,
            id: row.id,
        }));
    }, { graph.resources.remove(id); };

    registry::Workspace, row, graph, id => {
        let live = row.state == "active";
        graph.workspaces.put(Arc::new(records::Workspace { id: row.id, live }));
    }, { graph.workspaces.remove(id); };

    registry::Project, row, graph, id => {
        graph.projects.put(Arc::new(records::Project {
            live: row.state == "active",
            workspace_id: row.workspace_id,
            visible_in_workspaces: row.visible_in_workspaces,
            id: row.id,
        }));
    }, { graph.projects.remove(id); };

    registry::Policy, row, graph, id => {
        if let (Some(text), Some("active")) = (row.cedar, row.state.as_deref()) {
            graph.policies.put(Arc::new(node::Policy {
                id: row.id,
                version: row.version.into(),
                sha256: hex::encode(sha256(text.as_bytes())),
                text,
                // A policy with an unreadable period is in force.
                effective: window(row.effective_from, row.effective_until).unwrap_or_default(),
            }));
        } else {
            graph.policies.remove(&row.id);
        }
    }, { graph.policies.remove(id); };

    registry::AppliesTo, row, graph, id => {
        graph.applies_to.put(Arc::new(node::AppliesTo {
            id: row.id,
            policy_id: row.policy_id,
            target: row.target_class,
        }));
    }, { graph.applies_to.remove(id); };
}

fn tenant(row: &registry::Tenant, valid_for_seconds: u32) -> records::Tenant {
    let own = row.valid_for_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let rules = row.gate.iter().flat_map(|gate| &gate.tightenings);
    records::Tenant {
        id: row.id.clone(),
        active: row.state.as_deref() == Some("active") && row.deleted_at.is_none(),
        require_declaration: row.require_declaration,
        gate: rules.map(tightening).collect(),
        valid_for_seconds: own.unwrap_or(valid_for_seconds),
        context_schema: row.context_schema.as_ref().and_then(|declared| {
            // Checked on write. An unreadable one declares nothing: policies that rely on it fail, and deny.
            ContextSchema::of(serde_json::Value::Object(declared.0.clone())).ok().map(Arc::new)
        }),
    }
}

/// An unreadable one requires everything: nothing then passes the gate.
fn tightening(rule: &registry::Tightening) -> Tightening {
    let tier = rule.risk_tier.as_deref().map_or(Some(RiskTier::Minimal), RiskTier::from_word);
    let class = rule.effect_class.as_deref();
    let class = class.map_or(Some(EffectClass::Informational), EffectClass::from_word);
    let undoing = rule.undoing.as_deref().map_or(Some(Undoing::Undone), Undoing::from_word);
    let oversight = Oversight::from_word(&rule.oversight);
    let read = |risk_tier, effect_class, undoing, oversight| Tightening {
        risk_tier,
        effect_class,
        undoing,
        oversight,
    };
    match (tier, class, undoing, oversight) {
        (Some(tier), Some(class), Some(undoing), Some(oversight)) => {
            read(tier, class, undoing, oversight)
        }
        _ => read(
            RiskTier::Minimal,
            EffectClass::Informational,
            Undoing::Undone,
            Oversight::Prohibited,
        ),
    }
}

fn principal(row: &registry::Principal) -> node::Principal {
    let class = PrincipalClass::from_word(&row.principal_class);
    let fact = records::Principal {
        active: row.state.as_deref() == Some("active") && class.is_some(),
        class: class.unwrap_or(PrincipalClass::ExternalApp),
        name: row.name.as_ref().unwrap_or(&row.display_name).clone(),
        id: row.id.clone(),
    };
    node::Principal {
        fact: Arc::new(fact),
        model_id: row.model_id.clone(),
        owner_id: row.owner_principal_id.clone(),
    }
}

fn uses(row: registry::Uses) -> node::Uses {
    let constraints = match row.constraints_json.as_deref() {
        None => records::Constraints::Bounds(Box::default()),
        Some(text) => records::Constraints::read(text),
    };
    // Absent is granted; any other number than 1 is denied.
    let allowed = row.allowed.unwrap_or(1) == 1;
    let facts = records::UsesRow {
        id: row.id,
        allowed,
        // An unreadable period has ended for a grant, and continues for a denial.
        window: window(row.since, row.until).unwrap_or(if allowed {
            ENDED
        } else {
            Window::default()
        }),
        constraints,
    };
    node::Uses {
        agent_id: row.agent_id,
        used_id: row.used_id,
        used_kind: row.used_kind,
        row: Arc::new(facts),
    }
}

fn acts_in(row: registry::ActsIn) -> node::ActsIn {
    let allowed_actions = row.allowed_actions_json.as_deref().map(|text| {
        serde_json::from_str::<Vec<String>>(text)
            .map_or_else(|_| Vec::new(), |list| patterns(&list))
    });
    let fact = records::ActsIn {
        id: row.id,
        workspace_id: row.workspace_id,
        window: window(row.since, row.until).unwrap_or(ENDED),
        allowed_actions,
    };
    node::ActsIn { principal_id: row.principal_id, fact: Arc::new(fact) }
}

fn purpose(row: registry::Purpose) -> records::Purpose {
    let classes = row.principal_classes.iter();
    let read: Vec<_> = classes.filter_map(|word| PrincipalClass::from_word(word)).collect();
    records::Purpose {
        // An empty list admits every class, so an unreadable one must not become empty.
        active: row.state == "active" && read.len() == row.principal_classes.len(),
        principal_classes: read,
        slug: row.slug,
        allowed_actions: patterns(&row.allowed_actions),
        jurisdictions: row.jurisdictions,
        window: window(row.not_before, row.expires_at).unwrap_or(ENDED),
        id: row.id,
    }
}

/// The patterns that can be read: one that cannot covers nothing.
pub(super) fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// `None` if an end of it cannot be read.
pub(super) fn window(from: Option<Time>, until: Option<Time>) -> Option<Window> {
    let read = |end: Option<Time>| match end {
        None => Some(None),
        Some(time) => time.moment().map(Some),
    };
    Some(Window { from: read(from)?, until: read(until)? })
}

/// A period that has always ended.
pub(super) const ENDED: Window = Window { from: None, until: Some(DateTime::UNIX_EPOCH) };
