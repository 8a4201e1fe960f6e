//! Converts stored rows of reality to facts: anchors, their newest snapshots, overrides, drift
//! events.
//!
//! An unreadable field becomes the strictest fact: an anchor that grounds every action and cannot
//! be judged, or a drift event that denies and applies to all. An unreadable override is left out.

use authority_decision::{
    Pattern,
    levels::RuntimeEffect,
    reality::{Anchor, AnchorType, Drift, FreshnessContract, Lifted, Override, Snapshot},
};
use authority_ids::EntityRef;
use authority_model::schema::{
    reality_anchors, reality_heads, reality_overrides, stable_drift_events,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    authority::{Authority, Owned},
    node::Maker,
    tenant::TenantGraph,
    world::AnchorHead,
};

/// The columns of `reality_anchors` that decisions use.
#[derive(Queryable, Selectable)]
#[diesel(table_name = reality_anchors, check_for_backend(diesel::pg::Pg))]
pub struct AnchorRow {
    id: String,
    tenant_id: String,
    anchor_type: String,
    status: String,
    freshness_contract: Option<Value>,
    grounds_actions: Vec<String>,
    grounds_profiles: Vec<String>,
    version: i32,
    updated_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
}

impl From<AnchorRow> for Anchor {
    fn from(row: AnchorRow) -> Self {
        let known = matches!(row.status.as_str(), "draft" | "active" | "deprecated");
        let anchor_type = AnchorType::from_word(&row.anchor_type);
        let freshness = row.freshness_contract.map(read::<FreshnessContract>);
        let actions: Option<Vec<Pattern>> =
            row.grounds_actions.iter().map(|action| action.parse().ok()).collect();
        let is_readable =
            known && anchor_type.is_some() && actions.is_some() && freshness != Some(None);
        Self {
            id: row.id.into(),
            version: row.version.into(),
            anchor_type: anchor_type.unwrap_or(AnchorType::SystemOfRecord),
            active: (row.status == "active" || !known) && row.deleted_at.is_none(),
            grounds_actions: actions.unwrap_or_else(|| vec![Pattern::All]),
            grounds_profiles: row.grounds_profiles,
            freshness: freshness.flatten(),
            unreadable: !is_readable,
            changed_at: row.updated_at,
            newest: None,
        }
    }
}

impl Owned for AnchorRow {
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
}

impl Authority for AnchorRow {
    fn put(self, graph: &mut TenantGraph) {
        let anchor = Anchor::from(self);
        if anchor.active {
            graph.world.anchors.insert(anchor.id.clone(), anchor);
        } else {
            graph.world.anchors.remove(&anchor.id);
        }
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.world.anchors.remove(id);
    }
}

/// A row of `reality_heads`.
#[derive(Queryable, Selectable)]
#[diesel(table_name = reality_heads, check_for_backend(diesel::pg::Pg))]
pub struct HeadRow {
    id: String,
    tenant_id: String,
    snapshot_id: Option<String>,
    sampled_at: Option<DateTime<Utc>>,
    valid_until: Option<DateTime<Utc>>,
    content_hash: Option<String>,
    contested: bool,
    changed_at: DateTime<Utc>,
}

impl Owned for HeadRow {
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
}

impl HeadRow {
    /// Returns the id of the head's anchor.
    pub fn anchor_id(&self) -> &str {
        &self.id
    }
}

impl From<HeadRow> for AnchorHead {
    fn from(row: HeadRow) -> Self {
        // The table requires that all three columns are set, or that all are null.
        let parts = (row.snapshot_id, row.sampled_at, row.content_hash);
        let newest = if let (Some(id), Some(sampled_at), Some(content_hash)) = parts {
            let (valid_until, contested) = (row.valid_until, row.contested);
            Some(Snapshot { id: id.into(), sampled_at, valid_until, content_hash, contested })
        } else {
            None
        };
        Self { newest, changed_at: row.changed_at }
    }
}

impl Authority for HeadRow {
    fn put(self, graph: &mut TenantGraph) {
        graph.world.heads.insert(self.id.as_str().into(), self.into());
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.world.heads.remove(id);
    }
}

/// A row of `reality_overrides`.
#[derive(Queryable, Selectable)]
#[diesel(table_name = reality_overrides, check_for_backend(diesel::pg::Pg))]
pub(super) struct OverrideRow {
    id: String,
    tenant_id: String,
    action: String,
    actor_id: Option<String>,
    until: DateTime<Utc>,
    lifts: Value,
    makers: Value,
}

impl Owned for OverrideRow {
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
}

impl Authority for OverrideRow {
    fn put(self, graph: &mut TenantGraph) {
        let Some(lifts) = read::<Vec<Lifted>>(self.lifts) else { return };
        let makers: Vec<Maker> = read(self.makers).unwrap_or_default();
        let check_id = EntityRef::from(self.id);
        graph.override_makers.insert(check_id.clone(), makers);
        let lifting = Override {
            check_id: check_id.clone(),
            action: self.action,
            actor_id: self.actor_id.map(Into::into),
            until: self.until,
            lifts,
        };
        graph.world.overrides.insert(check_id, lifting.into());
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.world.overrides.remove(id);
        graph.override_makers.remove(id);
    }
}

/// The columns of `stable_drift_events` that decisions use.
#[derive(Queryable, Selectable)]
#[diesel(table_name = stable_drift_events, check_for_backend(diesel::pg::Pg))]
pub(super) struct DriftRow {
    id: String,
    tenant_id: String,
    action: String,
    subject_id: Option<String>,
    actor_entity_id: Option<String>,
    drift_type: String,
    status: String,
    detected_at: DateTime<Utc>,
    applies_since: DateTime<Utc>,
    recommended_runtime_effect: String,
    recommended_obligations: Vec<String>,
    until_fresh: Option<Value>,
    deleted_at: Option<DateTime<Utc>>,
}

impl Owned for DriftRow {
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
}

impl Authority for DriftRow {
    fn put(self, graph: &mut TenantGraph) {
        if self.status == "resolved" || self.deleted_at.is_some() {
            graph.world.drifts.remove(self.id.as_str());
            return;
        }
        let id = EntityRef::from(self.id);
        let drift = Drift {
            id: id.clone(),
            drift_type: self.drift_type,
            actor_id: self.actor_entity_id.or(self.subject_id).map(Into::into),
            action: self.action.parse().ok(),
            effect: RuntimeEffect::from_word(&self.recommended_runtime_effect)
                .unwrap_or(RuntimeEffect::Deny),
            obligations: self.recommended_obligations,
            since: self.detected_at.max(self.applies_since),
            until_fresh: self.until_fresh.and_then(read).unwrap_or_default(),
        };
        graph.world.drifts.insert(id, drift.into());
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.world.drifts.remove(id);
    }
}

fn read<T: DeserializeOwned>(stored: Value) -> Option<T> {
    serde_json::from_value(stored).ok()
}
