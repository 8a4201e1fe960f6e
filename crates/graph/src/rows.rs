//! Converts stored rows to facts. An unreadable field becomes the narrowest fact: a pattern list
//! without the unreadable pattern, an inactive state, or a bound that does not hold.

use std::sync::Arc;

use authority_model::{
    proto::registry,
    record::Record,
    state::{PrincipalState, PurposeState, TenantState},
};

use super::{
    fields::{ENDED, patterns, window},
    node,
};
use crate::time_zones;
use authority_decision::{
    gate::{Tightening, Undoing},
    levels::{EffectClass, Oversight, PrincipalClass, RiskTier},
    moment::Window,
    records,
    validation::ContextSchema,
};

pub(super) fn tenant(row: &registry::Tenant, valid_for_seconds: u32) -> records::Tenant {
    let own = row.valid_for_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let rules = row.gate.iter().flat_map(|gate| &gate.tightenings);
    records::Tenant {
        id: row.id.as_str().into(),
        active: row.known_state() == Some(TenantState::Active) && row.deleted_at.is_none(),
        require_declaration: row.require_declaration,
        gate: rules.map(tightening).collect(),
        valid_for_seconds: own.unwrap_or(valid_for_seconds),
        context_schema: row.context_schema.as_ref().map(|declared| {
            // Schemas are checked on write. An unreadable schema is not satisfied by any context.
            ContextSchema::stored(serde_json::Value::Object(declared.0.clone())).into()
        }),
        time_zone: row.time_zone.clone().filter(|name| name != time_zones::UTC),
    }
}

/// Reads a tightening. An unreadable tightening prohibits every action at the gate.
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

pub(super) fn principal(row: &registry::Principal) -> node::Principal {
    let class = PrincipalClass::from_word(&row.principal_class);
    let fact = records::Principal {
        active: row.known_state() == Some(PrincipalState::Active) && class.is_some(),
        class: class.unwrap_or(PrincipalClass::ExternalApp),
        name: row.name.as_ref().unwrap_or(&row.display_name).clone(),
        id: row.id.as_str().into(),
    };
    node::Principal {
        fact: Arc::new(fact),
        model_id: row.model_id.as_deref().map(Into::into),
        owner_id: row.owner_principal_id.as_deref().map(Into::into),
    }
}

pub(super) fn uses(row: registry::Uses) -> node::Uses {
    let constraints = match row.constraints_json.as_deref() {
        None => records::Constraints::Bounds(Box::default()),
        Some(text) => records::Constraints::read(text),
    };
    // An absent number means granted. Any number other than 1 means denied.
    let allowed = row.allowed.unwrap_or(1) == 1;
    let facts = records::UsesRow {
        id: row.id.into(),
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
        agent_id: row.agent_id.into(),
        used_id: row.used_id,
        used_kind: row.used_kind,
        row: Arc::new(facts),
    }
}

pub(super) fn acts_in(row: registry::ActsIn) -> node::ActsIn {
    let allowed_actions = row.allowed_actions_json.as_deref().map(|text| {
        serde_json::from_str::<Vec<String>>(text)
            .map_or_else(|_| Vec::new(), |list| patterns(&list))
    });
    let fact = records::ActsIn {
        id: row.id.into(),
        workspace_id: row.workspace_id.into(),
        window: window(row.since, row.until).unwrap_or(ENDED),
        allowed_actions,
    };
    node::ActsIn { principal_id: row.principal_id.into(), fact: Arc::new(fact) }
}

pub(super) fn purpose(row: registry::Purpose) -> records::Purpose {
    let classes = row.principal_classes.iter();
    let read: Vec<_> = classes.filter_map(|word| PrincipalClass::from_word(word)).collect();
    records::Purpose {
        // An empty list admits every class. A list with an unreadable class makes the purpose
        // inactive.
        active: row.known_state() == Some(PurposeState::Active)
            && read.len() == row.principal_classes.len(),
        principal_classes: read,
        slug: row.slug,
        allowed_actions: patterns(&row.allowed_actions),
        jurisdictions: row.jurisdictions,
        window: window(row.not_before, row.expires_at).unwrap_or(ENDED),
        id: row.id.into(),
    }
}
