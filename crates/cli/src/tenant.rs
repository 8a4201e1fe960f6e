//! The tenant of the owner's command.

use authority_client::Surface;
use authority_ids::{IdParts, TenantId, TenantRef};
use serde_json::json;

use crate::server::Server;

/// The path of the list of tenants.
pub(crate) const TENANTS: [&str; 3] = ["api", "v1", "tenants"];

/// Returns the tenant of the owner's command if it need not be given: the tenant in an id of the
/// command, or the only tenant.
pub(crate) async fn meant(server: &Server, id: Option<&str>) -> Option<TenantRef> {
    if !server.opens(Surface::Owner) {
        return None;
    }
    if let Some(tenant) = id.and_then(|id| tenant_of(server, id)) {
        return Some(tenant);
    }
    let found = server.get(&TENANTS, &json!({"limit": 2})).await.ok()?;
    match server.json(&found).ok()?["tenants"].as_array()?.as_slice() {
        [tenant] => tenant["id"].as_str().map(TenantRef::from),
        _ => None,
    }
}

/// Returns the tenant in an id, for the owner, who has several tenants. Other callers have only
/// one.
pub(crate) fn tenant_of(server: &Server, id: &str) -> Option<TenantRef> {
    let slug = IdParts::of(id).and_then(|id| id.tenant_slug);
    slug.filter(|_| server.opens(Surface::Owner)).map(TenantId::complete)
}
