//! The reality findings that hold a request. Anchors are returned with their names. Drift events
//! are returned with their anchors and the paths that differ from the assumed values.

use std::collections::{BTreeSet, HashMap};

use authority_model::{
    proto::{
        approval::{Approval, ApprovalReality, DriftedAnchor},
        reality::CheckFinding,
    },
    schema::{reality_anchors, reality_coupling_checks as checks, stable_drift_events as drifts},
};

use crate::flow::prelude::*;
use authority_store as store;

/// A drift event's anchors and findings.
struct Drifted {
    anchors: Vec<String>,
    /// The findings of the last run of its check.
    findings: Vec<CheckFinding>,
}

impl Drifted {
    fn shown(&self, names: &HashMap<String, String>) -> Vec<DriftedAnchor> {
        let one = |id: &String| {
            let found = self.findings.iter().find(|finding| finding.anchor_id == *id);
            DriftedAnchor {
                id: id.clone(),
                name: names.get(id).cloned().unwrap_or_default(),
                mismatched_paths: found
                    .map(|found| found.mismatched_paths.clone())
                    .unwrap_or_default(),
            }
        };
        self.anchors.iter().map(one).collect()
    }
}

/// Fills in the names and anchors that the rows lack.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn fill(
    registry: &Registry,
    caller: &Caller,
    rows: &mut [Approval],
) -> Result<(), Error> {
    let all: BTreeSet<String> =
        rows.iter().flat_map(|row| &row.reality).map(|held_by| held_by.id.clone()).collect();
    if all.is_empty() {
        return Ok(());
    }
    let tenants: BTreeSet<String> = rows.iter().map(|row| row.tenant_id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let drifted = drifted(db, &tenants, &all).await?;
        let implicated = drifted.values().flat_map(|drift| drift.anchors.iter().cloned());
        let anchors = all.iter().cloned().chain(implicated).collect();
        Ok::<_, store::Error>((named(db, &tenants, anchors).await?, drifted))
    });
    let (names, drifted) = read.await?;
    let fill = |held_by: &mut ApprovalReality| {
        held_by.name = names.get(&held_by.id).cloned();
        let drift = drifted.get(&held_by.id);
        held_by.anchors = drift.map(|drift| drift.shown(&names)).unwrap_or_default();
    };
    rows.iter_mut().flat_map(|row| &mut row.reality).for_each(fill);
    Ok(())
}

/// Returns the drift events among these IDs, with the findings of their checks.
async fn drifted(
    db: &mut Db,
    tenants: &BTreeSet<String>,
    ids: &BTreeSet<String>,
) -> QueryResult<HashMap<String, Drifted>> {
    let events: Vec<(String, String, Vec<String>)> = drifts::table
        .filter(drifts::tenant_id.eq_any(tenants).and(drifts::id.eq_any(ids)))
        .select((drifts::id, drifts::check_id, drifts::anchors_implicated))
        .load(db)
        .await?;
    let found: Vec<(String, Vec<CheckFinding>)> = checks::table
        .filter(checks::tenant_id.eq_any(tenants))
        .filter(checks::id.eq_any(events.iter().map(|(_, check_id, _)| check_id)))
        .select((checks::id, checks::findings))
        .load(db)
        .await?;
    let found: HashMap<_, _> = found.into_iter().collect();
    let events = events.into_iter().map(|(id, check_id, anchors)| {
        let findings = found.get(&check_id).cloned().unwrap_or_default();
        (id, Drifted { anchors, findings })
    });
    Ok(events.collect())
}

/// Returns the names of the anchors among these IDs.
async fn named(
    db: &mut Db,
    tenants: &BTreeSet<String>,
    ids: BTreeSet<String>,
) -> QueryResult<HashMap<String, String>> {
    let rows: Vec<(String, String)> = reality_anchors::table
        .filter(reality_anchors::tenant_id.eq_any(tenants))
        .filter(reality_anchors::id.eq_any(ids))
        .select((reality_anchors::id, reality_anchors::display_name))
        .load(db)
        .await?;
    Ok(rows.into_iter().collect())
}
