//! Limits the active anchors of a tenant. Each decision may consult all of them.

use authority_model::{
    proto::reality::RealityAnchor, schema::reality_anchors, state::RealityAnchorStatus,
};

use crate::flow::{prelude::*, tenant};

const MOST: i64 = 256;

/// Refuses another active anchor if the tenant has reached the limit.
pub(super) async fn permit(db: &mut Db, anchor: &RealityAnchor) -> Result<(), Error> {
    // The lock serialises activations: each activation counts the earlier anchors.
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
