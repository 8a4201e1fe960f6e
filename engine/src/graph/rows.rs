//! Stored rows as facts. What cannot be read becomes the narrowest fact there is: a pattern list
//! without the unreadable pattern, an inactive state, a bound that does not hold.

use std::sync::Arc;

use authority_model::{
    proto::{delegation, registry},
    wire::Time,
};
use chrono::DateTime;
use serde_json::json;

use super::{
    delegation_row::delegation,
    node::{self, Profile},
    tenant::TenantGraph,
};
use crate::decision::{
    gate::{Tightening, Undoing},
    levels::{AccessLevel, EffectClass, Oversight, PrincipalClass, RiskTier},
    moment::Window,
    pattern::Pattern,
    records,
    request::{ActionDeclaration, ActionRiskClassification},
};
use crate::keys;

/// A stored row that has its place in a tenant's graph.
pub(super) trait Authority: Send + 'static {
    fn tenant_id(&self) -> &str;
    fn put(self, graph: &mut TenantGraph);
    fn remove(graph: &mut TenantGraph, id: &str);
}

macro_rules! authority {
    ($($message:ty, $tenant:ident, $row:ident, $graph:ident, $id:ident => $put:block, $remove:block;)*) => { $(
        impl Authority for $message {
            fn tenant_id(&self) -> &str {
                &self.$tenant
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
    registry::Tenant, id, row, graph, id => {
        graph.tenant = Some(Arc::new(tenant(&row, graph.valid_for_seconds)));
        graph.profile = Profile {
            relaxed: row.durability == "relaxed",
            slug: row.slug,
            idp_org_id: row.idp_org_id,
        };
    }, { graph.tenant.take_if(|tenant| tenant.id == id); };

    registry::Principal, tenant_id, row, graph, id => {
        if row.deleted_at.is_some() {
            graph.principals.remove(&row.id);
        } else {
            graph.principals.put(Arc::new(principal(row)));
        }
    }, { graph.principals.remove(id); };

    registry::MemberOf, tenant_id, row, graph, id => {
        let window = window(row.joined_at, row.left_at).unwrap_or(ENDED);
        let fact = records::Membership { team_id: row.team_id, window };
        graph.memberships.put(Arc::new(node::Membership {
            id: row.id,
            principal_id: row.principal_id,
            fact: Arc::new(fact),
        }));
    }, { graph.memberships.remove(id); };

    delegation::Delegation, tenant_id, row, graph, id => {
        graph.delegations.put(Arc::new(delegation(row)));
    }, { graph.delegations.remove(id); };

    registry::Uses, tenant_id, row, graph, id => {
        graph.uses.put(Arc::new(uses(row)));
    }, { graph.uses.remove(id); };

    registry::ActsIn, tenant_id, row, graph, id => {
        graph.acts_in.put(Arc::new(acts_in(row)));
    }, { graph.acts_in.remove(id); };

    registry::GrantedAccessTo, tenant_id, row, graph, id => {
        // A level that cannot be read is the least there is.
        let access_level = AccessLevel::from_word(&row.access_level).unwrap_or(AccessLevel::Read);
        graph.grants.put(Arc::new(records::Grant {
            id: row.id,
            resource_id: row.resource_id,
            grantee_id: row.grantee_id,
            grantee_kind: row.grantee_kind,
            access_level,
        }));
    }, { graph.grants.remove(id); };

    registry::StopSignal, tenant_id, row, graph, id => {
        // Only what was lifted stops nobody.
        if row.state == "lifted" {
            graph.stop_signals.remove(&row.id);
        } else {
            let fact = records::StopSignal { id: row.id, actor_id: row.actor_id };
            graph.stop_signals.put(Arc::new(fact));
        }
    }, { graph.stop_signals.remove(id); };

    registry::Quarantine, tenant_id, row, graph, id => {
        if row.state == "released" {
            graph.quarantines.remove(&row.id);
        } else {
            graph.quarantines.put(Arc::new(records::Quarantine {
                id: row.id,
                subject_id: row.subject_id,
                // A pattern that cannot be read sets every action aside.
                action: row.action.and_then(|action| action.parse().ok()),
                delegation_id: row.delegation_id,
            }));
        }
    }, { graph.quarantines.remove(id); };

    registry::Purpose, tenant_id, row, graph, id => {
        graph.purposes.put(Arc::new(purpose(row)));
    }, { graph.purposes.remove(id); };

    registry::Tool, tenant_id, row, graph, id => {
        graph.tools.put(Arc::new(tool(row)));
    }, { graph.tools.remove(id); };

    registry::Model, tenant_id, row, graph, id => {
        // A tier that cannot be read is the worst there is.
        let tier = |word: String| RiskTier::from_word(&word).unwrap_or(RiskTier::Prohibited);
        graph.models.put(Arc::new(records::Model {
            live: row.state == "active",
            risk_tier: row.risk_tier.map(tier),
            actions: patterns(&row.actions),
            id: row.id,
        }));
    }, { graph.models.remove(id); };

    registry::ExternalApp, tenant_id, row, graph, id => {
        graph.external_apps.put(Arc::new(records::ExternalApp {
            live: row.state == "active",
            actions: patterns(&row.actions),
            id: row.id,
        }));
    }, { graph.external_apps.remove(id); };

    registry::Resource, tenant_id, row, graph, id => {
        graph.resources.put(Arc::new(records::Resource {
            live: row.state == "active",
            kind: row.kind,
            name: row.name,
            sensitivity: row.sensitivity,
            id: row.id,
        }));
    }, { graph.resources.remove(id); };

    registry::Workspace, tenant_id, row, graph, id => {
        let live = row.state == "active";
        graph.workspaces.put(Arc::new(records::Workspace { id: row.id, live }));
    }, { graph.workspaces.remove(id); };

    registry::Project, tenant_id, row, graph, id => {
        graph.projects.put(Arc::new(records::Project {
            live: row.state == "active",
            workspace_id: row.workspace_id,
            visible_in_workspaces: row.visible_in_workspaces,
            id: row.id,
        }));
    }, { graph.projects.remove(id); };

    registry::Policy, tenant_id, row, graph, id => {
        if let (Some(text), "active") = (row.cedar, row.state.as_str()) {
            graph.policies.put(Arc::new(node::Policy {
                id: row.id,
                version: row.version.into(),
                sha256: hex::encode(keys::sha256(text.as_bytes())),
                text,
                // A policy whose span cannot be read is in force.
                effective: window(row.effective_from, row.effective_until).unwrap_or_default(),
            }));
        } else {
            graph.policies.remove(&row.id);
        }
    }, { graph.policies.remove(id); };

    registry::AppliesTo, tenant_id, row, graph, id => {
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
        active: row.state == "active" && row.deleted_at.is_none(),
        require_declaration: row.require_declaration,
        gate: rules.map(tightening).collect(),
        valid_for_seconds: own.unwrap_or(valid_for_seconds),
    }
}

/// One that cannot be read asks for everything: nothing passes the gate then.
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

fn principal(row: registry::Principal) -> node::Principal {
    let class = PrincipalClass::from_word(&row.principal_class);
    let fact = records::Principal {
        active: row.state == "active" && class.is_some(),
        class: class.unwrap_or(PrincipalClass::ExternalApp),
        name: row.name.unwrap_or(row.display_name),
        id: row.id,
    };
    node::Principal { fact: Arc::new(fact), model_id: row.model_id }
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
        // A span that cannot be read is over for a grant, and goes on for a denial.
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

fn tool(row: registry::Tool) -> records::Tool {
    let declaration = row.action_declaration.map(|part| {
        serde_json::from_value::<ActionDeclaration>(json!({
            "effect_class": part.effect_class,
            "reversibility": part.reversibility,
            "rollback_available": part.rollback_available,
        }))
    });
    let classification = row.action_risk_classification.map(|part| {
        serde_json::from_value::<ActionRiskClassification>(json!({
            "risk_tier": part.risk_tier,
            "required_oversight_mode": part.required_oversight_mode,
        }))
    });
    let readable = !matches!(declaration, Some(Err(_))) && !matches!(classification, Some(Err(_)));
    records::Tool {
        live: row.state == "active" && readable,
        actions: patterns(&row.actions),
        requires: row.requires,
        access_level: row
            .access_level
            .map(|word| AccessLevel::from_word(&word).unwrap_or(AccessLevel::Owner)),
        action_declaration: declaration.and_then(Result::ok),
        action_risk_classification: classification.and_then(Result::ok),
        id: row.id,
    }
}

/// The patterns that can be read: one that cannot covers nothing.
pub(super) fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// None: an end of it cannot be read.
pub(super) fn window(from: Option<Time>, until: Option<Time>) -> Option<Window> {
    let read = |end: Option<Time>| match end {
        None => Some(None),
        Some(time) => time.moment().map(Some),
    };
    Some(Window { from: read(from)?, until: read(until)? })
}

/// A span that is over at any moment.
pub(super) const ENDED: Window = Window { from: None, until: Some(DateTime::UNIX_EPOCH) };
