//! How many anchors ground a tenant's actions: each decision may consult all of them.

use authority_model::{
    proto::reality::RealityAnchor, schema::reality_anchors, state::RealityAnchorStatus,
};

use super::super::{prelude::*, tenant};

const MOST: i64 = 256;

/// Refuses one more active anchor of its tenant beyond the limit.
pub(super) async fn permit(db: &mut Db, anchor: &RealityAnchor) -> Result<(), Error> {
    // Of two that become active, one is counted by the other.
    tenant::lock(db, None, &anchor.tenant_id).await?;
    let active: i64 = reality_anchors::table
        .filter(reality_anchors::tenant_id.eq(&anchor.tenant_id))
        .filter(reality_anchors::status.eq(RealityAnchorStatus::Active))
        .filter(reality_anchors::deleted_at.is_null())
        .filter(reality_anchors::id.ne(&anchor.id))
        .count()
        .get_result(db)
        .await?;
    if active < MOST { Ok(()) } else { Err(Error::Refused(ErrorCode::LimitExceeded)) }
}
