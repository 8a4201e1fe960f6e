//! The origins (names) of the tenants' logs.

use authority_ids::TenantId;

/// Returns the origin of a log: a URL without the scheme, as recommended by C2SP.
///
/// Each epoch of a tenant's log has its own origin.
pub fn origin(public_url: &str, tenant_id: &TenantId, epoch: i32) -> String {
    let host = public_url.split_once("://").map_or(public_url, |(_, host)| host);
    let first = format!("{}/log/{}", host.trim_end_matches('/'), tenant_id.slug());
    if epoch == 1 { first } else { format!("{first}/{epoch}") }
}

/// Returns the epoch of the tenant's log with this origin, under any public URL.
///
/// Returns `None` if it is not an origin of the tenant.
pub fn epoch_of(found: &str, tenant_id: &TenantId) -> Option<i32> {
    let name = format!("/log/{}", tenant_id.slug());
    let (_, rest) = found.rsplit_once(&name)?;
    match rest {
        "" => Some(1),
        rest => rest.strip_prefix('/')?.parse().ok(),
    }
}
