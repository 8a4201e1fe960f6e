//! What a tenant's graph holds of the world: anchors with their newest snapshots, overrides, drift events.
//!
//! All members are times and what was stored, never judgements: whether an anchor is stale is judged at
//! the decision's own time, so these facts stay right while nothing is written.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    super::{levels::RuntimeEffect, moment, pattern::Pattern},
    words::AnchorType,
};

/// The facts about the world that may concern one request. Each list is in order of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reality {
    /// Active anchors that ground the action, and those that a drift event or an override here names.
    pub anchors: Vec<Arc<Anchor>>,
    /// Overrides that may concern the request.
    pub overrides: Vec<Arc<Override>>,
    /// Drift events not resolved, at least those on the action and on the subject or someone in its chains.
    pub drifts: Vec<Arc<Drift>>,
}

impl Reality {
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.overrides.is_empty() && self.drifts.is_empty()
    }
}

/// A source of truth, and the newest observation of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub id: String,
    pub version: i64,
    pub anchor_type: AnchorType,
    /// Whether it is active. One that is not grounds nothing.
    pub active: bool,
    /// None if empty.
    pub grounds_actions: Vec<Pattern>,
    /// Purposes; all if empty.
    pub grounds_profiles: Vec<String>,
    /// Never stale if absent.
    pub freshness: Option<FreshnessContract>,
    /// Whether a stored member of it or of its snapshot cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// When the anchor, or which snapshot is its newest, last changed.
    #[serde(with = "moment")]
    pub changed_at: DateTime<Utc>,
    /// The live snapshot with the greatest `sampled_at` that counts.
    pub newest: Option<Snapshot>,
}

/// How old an anchor's newest snapshot may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessContract {
    /// From this age on, it is stale.
    pub max_staleness_seconds: u32,
    /// Beyond this age, it is late.
    pub expected_refresh_seconds: Option<u32>,
    /// `require_revalidation` if absent.
    pub stale_runtime_effect: Option<RuntimeEffect>,
    /// The stale effect if absent.
    pub missing_runtime_effect: Option<RuntimeEffect>,
}

/// A dated observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: String,
    #[serde(with = "moment")]
    pub sampled_at: DateTime<Utc>,
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<DateTime<Utc>>,
    pub content_hash: String,
    /// Whether another snapshot that counts has the same `sampled_at` and another hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

/// A person's decision to go on in spite of what a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The check that was decided on.
    pub check_id: String,
    /// The check's action.
    pub action: String,
    /// Every actor if absent.
    pub actor_id: Option<String>,
    #[serde(with = "moment")]
    pub until: DateTime<Utc>,
    /// What the check found, and nothing else.
    pub lifts: Vec<Lifted>,
}

/// A finding that an override lifts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// The anchor or the drift event.
    pub source_id: String,
    pub drift_type: String,
    /// The anchor, or those that the drift event is about, as they were found: another snapshot of one of them ends
    /// the override, since nobody reviewed it.
    pub found: Vec<Found>,
}

/// An anchor as a check found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub anchor_id: String,
    /// The newest snapshot; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

impl Found {
    /// Whether the anchor still has the same snapshot.
    pub fn is_present(&self, anchor: &Anchor) -> bool {
        let newest = anchor.newest.as_ref();
        anchor.id == self.anchor_id
            && newest.map(|newest| &newest.id) == self.snapshot_id.as_ref()
            && newest.is_some_and(|newest| newest.contested) == self.contested
    }
}

/// A drift event that is not resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub id: String,
    pub drift_type: String,
    /// Every actor if absent.
    pub actor_id: Option<String>,
    /// Every action if absent.
    pub action: Option<Pattern>,
    pub effect: RuntimeEffect,
    pub obligations: Vec<String>,
    /// When it began, or what applies last became another or stricter: only later acts review it.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
    /// If it is about age alone: it ends when each of these has a newer snapshot that is fresh. Empty: only
    /// a person ends it.
    pub until_fresh: Vec<Observed>,
}

/// An anchor as a drift event saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub anchor_id: String,
    /// Of the newest snapshot then; absent if there was none.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    pub sampled_at: Option<DateTime<Utc>>,
    /// The least age that the check assumed at most, of a drift about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}
