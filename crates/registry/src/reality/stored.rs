//! Loads stored anchors in the form that the engine judges.

use std::collections::HashMap;

use authority_decision::{
    Pattern,
    reality::{Anchor, CheckedAnchor, Observations},
};
use authority_graph::{AnchorHead, AnchorRow, HeadRow};
use authority_ids::EntityRef;
use authority_model::{
    schema::{reality_anchors, reality_heads, reality_snapshots},
    state::RealityAnchorStatus,
    wire::Json,
};

use crate::flow::prelude::*;

/// Returns the anchors with these IDs in this order, with their observations.
pub(super) async fn checked(
    db: &mut Db,
    tenant_id: &str,
    ids: &[EntityRef],
) -> Result<Vec<CheckedAnchor>, Error> {
    let texts: Vec<&str> = ids.iter().map(EntityRef::as_str).collect();
    let anchors: Vec<AnchorRow> = reality_anchors::table
        .filter(reality_anchors::tenant_id.eq(tenant_id))
        .filter(reality_anchors::id.eq_any(&texts))
        .select(AnchorRow::as_select())
        .load(db)
        .await?;
    let heads: Vec<HeadRow> = reality_heads::table
        .filter(reality_heads::tenant_id.eq(tenant_id))
        .filter(reality_heads::id.eq_any(&texts))
        .select(HeadRow::as_select())
        .load(db)
        .await?;
    let mut heads: HashMap<EntityRef, AnchorHead> =
        heads.into_iter().map(|row| (row.anchor_id().into(), row.into())).collect();
    let anchors =
        anchors.into_iter().map(Anchor::from).map(|anchor| match heads.remove(&anchor.id) {
            Some(head) => head.observe(anchor),
            None => anchor,
        });
    let mut anchors: HashMap<EntityRef, Anchor> =
        anchors.map(|anchor| (anchor.id.clone(), anchor)).collect();
    let newest = anchors.values().filter_map(|anchor| Some(anchor.newest.as_ref()?.id.as_str()));
    let observed: Vec<(String, Vec<Json>)> = reality_snapshots::table
        .filter(reality_snapshots::tenant_id.eq(tenant_id))
        .filter(reality_snapshots::id.eq_any(newest.collect::<Vec<_>>()))
        .select((reality_snapshots::anchor_id, reality_snapshots::observations))
        .load(db)
        .await?;
    let mut observed: HashMap<EntityRef, _> =
        observed.into_iter().map(|(id, seen)| (id.into(), seen)).collect();
    let found = ids.iter().map(|id| CheckedAnchor {
        id: id.clone(),
        anchor: anchors.remove(id),
        observations: observed.remove(id).map(observations).unwrap_or_default(),
    });
    Ok(found.collect())
}

fn observations(stored: Vec<Json>) -> Observations {
    let each = stored.into_iter().filter_map(|mut observation| {
        let path = observation.0.get("path")?.as_str()?.to_owned();
        Some((path, observation.0.remove("value").unwrap_or_default()))
    });
    each.collect()
}

/// Returns the ids of the active anchors that ground the action. If a purpose is given, leaves out
/// anchors that are limited to other purposes.
pub(super) async fn grounding(
    db: &mut Db,
    tenant_id: &str,
    action: &str,
    purpose: Option<&String>,
) -> Result<Vec<EntityRef>, Error> {
    let active: Vec<(String, Vec<String>, Vec<String>)> = reality_anchors::table
        .filter(reality_anchors::tenant_id.eq(tenant_id))
        .filter(reality_anchors::status.eq(RealityAnchorStatus::Active))
        .filter(reality_anchors::deleted_at.is_null())
        .order(reality_anchors::id)
        .select((
            reality_anchors::id,
            reality_anchors::grounds_actions,
            reality_anchors::grounds_profiles,
        ))
        .load(db)
        .await?;
    let grounds = |patterns: &[String]| {
        // A pattern that can't be read may cover the action.
        patterns.iter().any(|text| text.parse::<Pattern>().map_or(true, |one| one.covers(action)))
    };
    let consulted = active.into_iter().filter(|(_, patterns, profiles)| {
        grounds(patterns)
            && (profiles.is_empty() || purpose.is_none_or(|own| profiles.contains(own)))
    });
    Ok(consulted.map(|(id, ..)| id.into()).collect())
}
