//! Verifies one anchor from its stored data.

use authority_decision::reality::{CheckedAnchor, CouplingResult, judge};
use authority_model::{
    proto::reality::{
        AnchorVerification, RealityAnchor, RealitySnapshot, VerifyRealityAnchorRequest,
    },
    schema::{reality_anchors, reality_snapshots},
    state::RealityAnchorStatus,
};

use super::{
    anchor_limit, freshness,
    jwks::{self, Signature},
    stored,
};
use crate::flow::{
    operations::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

pub(super) async fn verify(
    registry: &Registry,
    call: Request<VerifyRealityAnchorRequest>,
) -> Reply<RealityAnchor> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let verified = registry.idempotent(&caller, key, async move |db| {
        let id = &request.id;
        let was = or_not_found(RealityAnchor::lock(db, within.as_ref(), id).await, id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let (verification, coupled) = judged(db, &was).await?;
        let row = reality_anchors::table.find(id);
        let row = row.filter(reality_anchors::tenant_id.eq(&was.tenant_id));
        let is_draft = was.known_state() == Some(RealityAnchorStatus::Draft);
        if !(is_draft && coupled) {
            // A verification alone does not count as a change of the anchor.
            let verified = diesel::update(row)
                .set(reality_anchors::verification.eq(verification))
                .returning(RealityAnchor::as_returning())
                .get_result(db)
                .await?;
            return Ok::<_, Error>(verified);
        }
        anchor_limit::permit(db, &was).await?;
        let active = diesel::update(row)
            .set((
                reality_anchors::verification.eq(verification),
                reality_anchors::status.eq(RealityAnchorStatus::Active),
                reality_anchors::updated_at.eq(clock_timestamp()),
            ))
            .returning(RealityAnchor::as_returning())
            .get_result(db)
            .await?;
        Ok(active)
    });
    let verified = verified.await?;
    registry.wait_for_graph::<RealityAnchor>().await;
    Ok(tagged(verified.reply()))
}

/// Returns the verification and whether the anchor is coupled. A draft is judged as if it were
/// active.
async fn judged(db: &mut Db, anchor: &RealityAnchor) -> Result<(AnchorVerification, bool), Error> {
    let now = freshness::database_now(db).await?;
    let mut checked = stored::checked(db, &anchor.tenant_id, &[anchor.id.as_str().into()]).await?;
    let as_active = |checked: &mut CheckedAnchor| {
        if let Some(anchor) = &mut checked.anchor {
            anchor.active = true;
        }
    };
    checked.iter_mut().for_each(as_active);
    let judged = judge(&checked, &[], &[], freshness::moment(now));
    let newest = checked.iter().find_map(|checked| checked.anchor.as_ref()?.newest.as_ref());
    let snapshot_id = newest.map(|newest| newest.id.clone().into());
    let signature = match &snapshot_id {
        None => Signature::None,
        Some(id) => {
            let snapshot = reality_snapshots::table
                .find(id)
                .select(RealitySnapshot::as_select())
                .first(db)
                .await?;
            Signature::of(&snapshot, jwks::keys(anchor))
        }
    };
    let drift_type = judged.findings.iter().find_map(|(_, finding)| finding.drift_type);
    let verification = AnchorVerification {
        coupling_result: judged.result.to_string(),
        drift_type: drift_type.map(|found| found.to_string()),
        snapshot_id,
        signature: signature.word().to_owned(),
        verified_at: Some(now),
    };
    Ok((verification, judged.result <= CouplingResult::CoupledWithWarnings))
}
