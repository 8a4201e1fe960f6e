//! Checks a stored snapshot against its own hashes and the anchor's current keys.

use authority_model::{
    proto::reality::{
        RealityAnchor, RealitySnapshot, SnapshotVerification, VerifyRealitySnapshotRequest,
    },
    schema::{reality_anchors, reality_snapshots},
};

use super::{
    freshness,
    jwks::{self, Signature},
    snapshot_rules::digest,
};
use crate::flow::{operations::or_not_found, prelude::*, version::tagged};

pub(super) async fn verify(
    registry: &Registry,
    call: Request<VerifyRealitySnapshotRequest>,
) -> Reply<RealitySnapshot> {
    let key = IdempotencyKey::of(&call)?;
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let verified = registry.idempotent(&caller, key, async move |db| {
        let id = &request.id;
        let was = or_not_found(RealitySnapshot::lock(db, within.as_ref(), id).await, id)?;
        let anchor: RealityAnchor = reality_anchors::table
            .find(&was.anchor_id)
            .select(RealityAnchor::as_select())
            .first(db)
            .await?;
        let now = freshness::database_now(db).await?;
        let most = freshness::max_staleness(anchor.freshness_contract.as_ref());
        let verification = SnapshotVerification {
            content: content(&was)?.to_owned(),
            signature: Signature::of(&was, jwks::keys(&anchor)).word().to_owned(),
            is_stale: freshness::is_stale(&was, most, freshness::moment(now)),
            verified_at: Some(now),
        };
        let mut verified: RealitySnapshot = diesel::update(reality_snapshots::table.find(id))
            .filter(reality_snapshots::tenant_id.eq(was.tenant_id()))
            .set(reality_snapshots::verification.eq(verification))
            .returning(RealitySnapshot::as_returning())
            .get_result(db)
            .await?;
        freshness::fill(db, std::slice::from_mut(&mut verified)).await?;
        Ok::<_, Error>(verified)
    });
    Ok(tagged(verified.await?.reply()))
}

/// Whether the content and the observations match their stored hashes.
fn content(snapshot: &RealitySnapshot) -> Result<&'static str, Error> {
    let observed = snapshot.observations_hash.as_ref();
    if observed.is_some() && snapshot.observations.is_empty() {
        return Ok("erased");
    }
    let summary = snapshot.content_summary.as_ref();
    let same_summary =
        summary.map(|summary| Ok::<_, Error>(digest(&summary.0)? == snapshot.content_hash));
    let same_observed =
        observed.map(|hash| Ok::<_, Error>(digest(&snapshot.observations)? == *hash));
    Ok(match (same_summary.transpose()?, same_observed.transpose()?) {
        (Some(false), _) | (_, Some(false)) => "mismatch",
        (None, None) => "not_checked",
        _ => "match",
    })
}
