//! Checks whether a credential is still valid during a call.
//!
//! A body may arrive slowly and a stream may run for hours. During that time keys can be revoked,
//! tokens can expire, and people and tenants can be suspended. The checks use memory only.

use std::sync::Arc;

use authority_ids::{PrincipalRef, TenantId};
use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::{
    error::{ApiError, ErrorCode},
    identity::{
        self, ADDRESS_NOT_ALLOWED, Caller, CallerKind, Exports, PERSON_INACTIVE, TENANT_INACTIVE,
    },
};
use authority_graph::{Graph, TenantHandle};
use authority_process::clock::Clock;

/// The current state of credentials, from memory. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    pub graph: Arc<Graph>,
}

impl Credentials {
    /// Checks that the caller's credential is still valid for the call.
    ///
    /// A decision runs this check after it has gathered its facts. The state of keys and people that
    /// the check reads is therefore never older than the facts.
    ///
    /// # Errors
    /// The token has expired; the key was revoked, has expired, no longer has the caller's secret,
    /// lacks `scope`, is bound to principals other than `subject` or may no longer be used from the
    /// caller's address; the person or the tenant is not active.
    pub fn check(
        &self,
        caller: &Caller,
        scope: &str,
        subject: Option<&PrincipalRef>,
        at: DateTime<Utc>,
    ) -> Result<(), ApiError> {
        match &caller.kind {
            CallerKind::Anonymous | CallerKind::Owner { .. } | CallerKind::Member { .. } => {
                person_holds(&self.graph, caller, at)
            }
            CallerKind::Key { tenant_id, key_id, secret, peer, .. } => {
                let key = self.graph.api_key(key_id.public_id());
                if key.as_ref().is_some_and(|key| !key.allows(*peer)) {
                    return Err(ADDRESS_NOT_ALLOWED.into());
                }
                let holds = key.is_some_and(|key| {
                    key.check(&secret.0, at).is_ok()
                        && key.tenant_id == *tenant_id
                        && key.scopes.iter().any(|held| held == scope)
                        && subject.is_none_or(|subject| {
                            let bound = &key.principal_ids;
                            bound.is_empty() || bound.contains(subject)
                        })
                });
                if !holds {
                    return Err(ApiError::plain(ErrorCode::Unauthenticated));
                }
                active_tenant(&self.graph, tenant_id).map(drop)
            }
        }
    }

    /// Like [`check`](Self::check), for a stream.
    ///
    /// A stream shows only the principals to which the API key was bound when the stream was
    /// opened. If the key is bound to other principals later, this check fails, and the caller must
    /// open the stream again.
    ///
    /// # Errors
    /// The errors of `check`; or the key is now bound to other principals, or the tenant is not
    /// active.
    pub fn check_stream(
        &self,
        caller: &Caller,
        scope: &str,
        tenant_id: &TenantId,
        at: DateTime<Utc>,
    ) -> Result<(), ApiError> {
        self.check(caller, scope, None, at)?;
        active_tenant(&self.graph, tenant_id)?;
        let CallerKind::Key { key_id, .. } = &caller.kind else { return Ok(()) };
        let key = self.graph.api_key(key_id.public_id());
        let is_same =
            key.is_some_and(|key| *key.principal_ids == *caller.bound_to().unwrap_or(&[]));
        if is_same { Ok(()) } else { Err(ApiError::plain(ErrorCode::Unauthenticated)) }
    }

    /// Returns the time at which the credential expires. A later change of the credential can move
    /// this time.
    pub fn until(&self, caller: &Caller) -> Option<DateTime<Utc>> {
        let CallerKind::Key { key_id, secret, .. } = &caller.kind else { return caller.until };
        self.graph.api_key(key_id.public_id())?.secret_until(&secret.0)
    }
}

/// Returns the register of running exports. Before each line, an export checks that its caller's
/// token is still valid. API keys cannot export.
pub fn exports(graph: &Arc<Graph>, clock: &Clock, shutdown: &CancellationToken) -> Exports {
    let (graph, clock, shutdown) = (Arc::clone(graph), clock.clone(), shutdown.clone());
    Exports::new(Arc::new(move |caller| {
        if shutdown.is_cancelled() {
            let message = "the service is stopping; continue from the last line's `page_token`";
            return Err(ApiError::new(ErrorCode::Unavailable, message));
        }
        person_holds(&graph, caller, clock.now())
    }))
}

fn person_holds(graph: &Graph, caller: &Caller, at: DateTime<Utc>) -> Result<(), ApiError> {
    if caller.until.is_some_and(|end| end <= at) {
        return Err(identity::Error::Token("it has expired").into());
    }
    match &caller.kind {
        CallerKind::Owner { .. } => Ok(()),
        CallerKind::Member { tenant_id, subject, email, .. } => {
            let handle = active_tenant(graph, tenant_id)?;
            let excluded = handle.read().excludes(subject, email.as_deref());
            if excluded { Err(PERSON_INACTIVE.into()) } else { Ok(()) }
        }
        CallerKind::Anonymous | CallerKind::Key { .. } => Err(identity::Error::NoCredential.into()),
    }
}

fn active_tenant(graph: &Graph, id: &TenantId) -> Result<TenantHandle, ApiError> {
    let handle = graph.tenant(id)?.ok_or(TENANT_INACTIVE)?;
    let active = handle.read().tenant().is_some_and(|tenant| tenant.active);
    if active { Ok(handle) } else { Err(TENANT_INACTIVE.into()) }
}
