//! Stores the snapshots of feeders in one transaction. Each snapshot is accepted or refused on its
//! own.

use std::collections::{BTreeSet, HashMap};

use authority_model::{
    proto::reality::{RealityAnchor, RealitySnapshot},
    schema::{reality_anchors, reality_snapshots},
};

use super::{
    anchor_rules,
    feed_pace::{Pace, Pair},
    freshness, snapshot_rules,
};
use crate::flow::prelude::*;
use authority_api::rate_limit::Remaining;

/// A snapshot with its tenant, its ID and its feeder.
pub(super) struct Fed {
    pub(super) row: RealitySnapshot,
    /// The API key, or `None` for the owner.
    pub(super) feeder: Option<String>,
}

impl Fed {
    /// The anchor and feeder that the rate limit applies to; `None` for the owner.
    pub(super) fn pair(&self) -> Option<Pair> {
        Some((self.row.anchor_id.clone(), self.feeder.clone()?))
    }
}

/// The outcome for a snapshot.
pub(super) struct Outcome {
    pub(super) stored: Result<RealitySnapshot, Error>,
    /// The feeder's remaining snapshots; `None` if the limit does not apply.
    pub(super) left: Option<Remaining>,
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        Self { stored: Err(error), left: None }
    }
}

/// Stores the snapshots that pass all checks. The outcomes are in the order of the input. Rows are
/// locked and inserted in the order of their anchors, which is also the order of tenants. Two nodes
/// therefore can't deadlock.
pub(super) async fn store_batch(db: &mut Db, fed: Vec<Fed>) -> Result<Vec<Outcome>, Error> {
    let now = freshness::moment(freshness::database_now(db).await?);
    let anchors = anchors(db, &fed).await?;
    let permitted: Vec<_> = fed.iter().map(|fed| permitted(fed, &anchors)).collect();
    let feeding = fed.iter().zip(&permitted).filter(|(_, permitted)| permitted.is_ok());
    let pairs = feeding.filter_map(|(fed, _)| fed.pair());
    let mut pace = Pace::read(db, pairs.collect(), now, true).await?;
    let mut results = Vec::with_capacity(fed.len());
    let mut rows = Vec::new();
    for (mut fed, anchor) in fed.into_iter().zip(permitted) {
        let pair = fed.pair();
        let ready = anchor.and_then(|anchor| {
            pair.iter().try_for_each(|pair| pace.take(pair))?;
            snapshot_rules::complete(&mut fed.row, anchor, now)
        });
        let is_ready = ready.is_ok();
        results.push((ready.map(|()| fed.row.id.clone()), pair));
        if is_ready {
            rows.push(fed.row);
        }
    }
    let left: Vec<_> = results.iter().map(|(_, pair)| pace.left(pair.as_ref()?)).collect();
    pace.write(db, &anchors).await?;
    rows.sort_by(|one, other| (&one.anchor_id, &one.id).cmp(&(&other.anchor_id, &other.id)));
    let mut stored = insert(db, &rows).await?;
    let outcomes = results.into_iter().zip(left).map(|((ready, _), left)| {
        let exists = Error::Refused(ErrorCode::SnapshotExists);
        Outcome { stored: ready.and_then(|id| stored.remove(&id).ok_or(exists)), left }
    });
    Ok(outcomes.collect())
}

async fn anchors(db: &mut Db, fed: &[Fed]) -> Result<HashMap<String, RealityAnchor>, Error> {
    let ids: BTreeSet<&String> = fed.iter().map(|fed| &fed.row.anchor_id).collect();
    let found: Vec<RealityAnchor> = reality_anchors::table
        .filter(reality_anchors::id.eq_any(ids))
        .filter(reality_anchors::deleted_at.is_null())
        .select(RealityAnchor::as_select())
        .load(db)
        .await?;
    Ok(found.into_iter().map(|anchor| (anchor.id.clone(), anchor)).collect())
}

/// Returns the anchor if it belongs to the snapshot's tenant and lists the feeder.
fn permitted<'a>(
    fed: &Fed,
    anchors: &'a HashMap<String, RealityAnchor>,
) -> Result<&'a RealityAnchor, Error> {
    let anchor = anchors.get(&fed.row.anchor_id);
    let own = anchor.filter(|anchor| anchor.tenant_id == fed.row.tenant_id());
    let anchor =
        own.ok_or_else(|| Error::unknown("reality_snapshot.anchor_id", &fed.row.anchor_id))?;
    match &fed.feeder {
        Some(feeder) if !anchor_rules::feeders(anchor).contains(feeder) => {
            Err(Error::Refused(ErrorCode::FeederNotPermitted))
        }
        _ => Ok(anchor),
    }
}

/// Returns the inserted rows by ID. Leaves out a snapshot with the same anchor, time and content as
/// a stored snapshot.
async fn insert(
    db: &mut Db,
    rows: &[RealitySnapshot],
) -> Result<HashMap<String, RealitySnapshot>, Error> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let mut stored: Vec<RealitySnapshot> = diesel::insert_into(reality_snapshots::table)
        .values(rows)
        .on_conflict_do_nothing()
        .returning(RealitySnapshot::as_returning())
        .load(db)
        .await?;
    freshness::fill(db, &mut stored).await?;
    Ok(stored.into_iter().map(|row| (row.id.clone(), row)).collect())
}
