//! Tells each connection which tenant uses it.

use http::Extensions;

use crate::transport::Holder;
use authority_api::identity::Caller;

/// From the extensions of a call, its caller among them.
pub(super) fn note_tenant(extensions: &Extensions) {
    let tenant_id = extensions.get::<Caller>().and_then(Caller::tenant);
    if let Some((holder, tenant_id)) = extensions.get::<Holder>().zip(tenant_id) {
        holder.note(tenant_id);
    }
}
