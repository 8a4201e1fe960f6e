//! Reads and locks the tenant of a record that is being written.

use authority_ids::TenantId;
use authority_model::schema::tenants;
use diesel::prelude::*;

use super::error::Error;
use authority_store::{Db, RunQueryDsl};

/// Returns the slug of a tenant that is not deleted and that the caller may see.
pub(crate) async fn slug(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &str,
) -> Result<String, Error> {
    if within.is_some_and(|within| *within != *id) {
        return Err(Error::unknown("tenant_id", id));
    }
    let slug = tenants::table
        .find(id)
        .filter(tenants::deleted_at.is_null())
        .for_key_share()
        .select(tenants::slug)
        .first(db)
        .await
        .optional()?;
    slug.ok_or_else(|| Error::unknown("tenant_id", id))
}

/// Locks the tenant. Concurrent transactions then count its records one after the other.
pub(crate) async fn lock(db: &mut Db, within: Option<&TenantId>, id: &str) -> Result<(), Error> {
    slug(db, within, id).await?;
    let live: Option<String> = tenants::table
        .find(id)
        .filter(tenants::deleted_at.is_null())
        .for_no_key_update()
        .select(tenants::id)
        .first(db)
        .await
        .optional()?;
    live.map(drop).ok_or_else(|| Error::unknown("tenant_id", id))
}
