//! Completes the slugs of tenants in requests to ids.

use authority_ids::TenantId;

/// A request or a part of one. Implemented by the build script, see build/src/tenants.rs.
///
/// A slug determines the id, so that no look-up is needed. Handlers, access checks and page tokens
/// see only ids, whether the client sent a slug or an id.
pub(crate) trait TenantIds {
    /// Replaces each slug by the tenant's id. Other texts stay as they are: no tenant has such an
    /// id.
    fn complete_tenants(&mut self) {}
}

/// Replaces a slug by the tenant's id.
pub(crate) fn complete(slug_or_id: &mut String) {
    *slug_or_id = TenantId::complete(slug_or_id).into();
}
