//! Tells each connection which tenant uses it.

use axum::body::Body;
use http::Request;

use crate::transport::Holder;
use authority_api::identity::Caller;

/// The call as it is. Its caller is in its extensions.
pub(super) fn note_tenant(request: Request<Body>) -> Request<Body> {
    let extensions = request.extensions();
    let tenant_id = extensions.get::<Caller>().and_then(Caller::tenant);
    if let Some((holder, tenant_id)) = extensions.get::<Holder>().zip(tenant_id) {
        holder.note(tenant_id);
    }
    request
}
