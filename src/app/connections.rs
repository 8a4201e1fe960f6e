//! Assigns each connection to the tenant that uses it.

use http::Extensions;

use crate::transport::Holder;
use authority_api::identity::Caller;

/// Reads the caller from the extensions of a call.
pub(super) fn note_tenant(extensions: &Extensions) {
    let tenant_id = extensions.get::<Caller>().and_then(Caller::tenant);
    if let Some((holder, tenant_id)) = extensions.get::<Holder>().zip(tenant_id) {
        holder.note(tenant_id);
    }
}
