//! Facts about reality: anchors with their newest snapshots, overrides, drift events.
//!
//! All fields are times and stored values, never judgements. Staleness is judged at the decision's
//! own time. These facts therefore stay correct until the next write.

use std::sync::Arc;

use authority_ids::{EntityRef, PrincipalRef};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::words::AnchorType;
use crate::{levels::RuntimeEffect, moment, pattern::Pattern};

/// The facts about the world that may concern one request. Each list is in order of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reality {
    /// Active anchors that ground the action, and active anchors named by a drift event or an
    /// override here.
    pub anchors: Vec<Arc<Anchor>>,
    /// Overrides that may concern the request.
    pub overrides: Vec<Arc<Override>>,
    /// Unresolved drift events: at least the events on the action and on the participants of the
    /// chains.
    pub drifts: Vec<Arc<Drift>>,
}

impl Reality {
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.overrides.is_empty() && self.drifts.is_empty()
    }
}

/// A source of truth, with the newest observation of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub id: EntityRef,
    pub version: i64,
    pub anchor_type: AnchorType,
    /// Whether the anchor is active. An inactive anchor does not ground any action.
    pub active: bool,
    /// The actions that the anchor grounds; none if empty.
    pub grounds_actions: Vec<Pattern>,
    /// The purposes for which the anchor grounds actions; all if empty.
    pub grounds_profiles: Vec<String>,
    /// The freshness contract. Without one, the anchor is never stale.
    pub freshness: Option<FreshnessContract>,
    /// Whether a stored field of the anchor or of its snapshot cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// The time of the last change, of the anchor or of `newest`.
    #[serde(with = "moment")]
    pub changed_at: DateTime<Utc>,
    /// The valid snapshot with the greatest `sampled_at`. A snapshot is valid if it is not deleted
    /// and its signer and its feeder are still permitted.
    pub newest: Option<Snapshot>,
}

/// The permitted age of an anchor's newest snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessContract {
    /// The snapshot is stale from this age on.
    pub max_staleness_seconds: u32,
    /// The snapshot is late beyond this age.
    pub expected_refresh_seconds: Option<u32>,
    /// The effect if the snapshot is stale; `require_revalidation` if absent.
    pub stale_runtime_effect: Option<RuntimeEffect>,
    /// The effect if the anchor has no snapshot. If absent, `stale_runtime_effect` applies.
    pub missing_runtime_effect: Option<RuntimeEffect>,
}

/// A dated observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: EntityRef,
    #[serde(with = "moment")]
    pub sampled_at: DateTime<Utc>,
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<DateTime<Utc>>,
    pub content_hash: String,
    /// Whether another valid snapshot has the same `sampled_at` and another hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

/// A person's decision to proceed in spite of the findings of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The check that the person decided on.
    pub check_id: EntityRef,
    /// The check's action.
    pub action: String,
    /// The actor; every actor if absent.
    pub actor_id: Option<PrincipalRef>,
    #[serde(with = "moment")]
    pub until: DateTime<Utc>,
    /// The lifted findings. Only findings of the check can be lifted.
    pub lifts: Vec<Lifted>,
}

/// A finding that an override lifts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// The id of the anchor or the drift event.
    pub source_id: EntityRef,
    pub drift_type: String,
    /// The anchor, or the anchors of the drift event, as the check found them. Another snapshot of
    /// any of them ends the override, because that snapshot was not reviewed.
    pub found: Vec<CheckedState>,
}

/// An anchor as found by a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedState {
    pub anchor_id: EntityRef,
    /// The newest snapshot; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<EntityRef>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

impl CheckedState {
    /// Whether the anchor still has the same snapshot.
    pub fn is_present(&self, anchor: &Anchor) -> bool {
        let newest = anchor.newest.as_ref();
        anchor.id == self.anchor_id
            && newest.map(|newest| &newest.id) == self.snapshot_id.as_ref()
            && newest.is_some_and(|newest| newest.contested) == self.contested
    }
}

/// An unresolved drift event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub id: EntityRef,
    pub drift_type: String,
    /// The actor; every actor if absent.
    pub actor_id: Option<PrincipalRef>,
    /// The action; every action if absent.
    pub action: Option<Pattern>,
    pub effect: RuntimeEffect,
    pub obligations: Vec<String>,
    /// When the drift began, or when it last changed or became stricter. Only a later approval
    /// counts as a review of the drift.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
    /// The anchors of a drift that is only about age. The drift ends when each anchor has a newer,
    /// fresh snapshot. If empty, only a person can end the drift.
    pub until_fresh: Vec<Observed>,
}

/// An anchor as seen by a drift event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub anchor_id: EntityRef,
    /// `sampled_at` of the anchor's newest snapshot when the drift was found; absent if there was
    /// none.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub sampled_at: Option<DateTime<Utc>>,
    /// The maximum age that the check assumed for the anchor; the lowest if it assumed several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}
