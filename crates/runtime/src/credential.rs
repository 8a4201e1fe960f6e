//! Whether a credential still counts once the call has begun.
//!
//! A body may be long in coming and a stream goes on for hours, while keys are revoked, tokens run
//! out, and people and tenants are suspended. From memory alone.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{self, Caller, CallerKind, Exports, PERSON_INACTIVE, TENANT_INACTIVE},
};
use authority_core::{
    clock::Clock,
    graph::{Graph, TenantHandle},
};

/// Credentials as they stand, from memory. Cheap to clone.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) graph: Arc<Graph>,
}

impl Credentials {
    /// Whether the caller's credential is still what it was when the call began. A decision asks
    /// after its facts were gathered, so that one at a revision has seen that revision's keys and
    /// people.
    ///
    /// # Errors
    /// The token has run out; the key was revoked, has expired, has another secret or not what it
    /// takes; the person or the tenant is not active any more.
    pub(super) fn check(
        &self,
        caller: &Caller,
        scope: &str,
        subject: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<(), ApiError> {
        match &caller.kind {
            CallerKind::Anonymous | CallerKind::Owner { .. } | CallerKind::Member { .. } => {
                person_holds(&self.graph, caller, at)
            }
            CallerKind::Key { tenant_id, key_id, secret, .. } => {
                let key = self.graph.api_key(public_id(key_id));
                let holds = key.is_some_and(|key| {
                    key.check(&secret.0, at).is_ok()
                        && key.tenant_id == *tenant_id
                        && key.scopes.iter().any(|held| held == scope)
                        && subject.is_none_or(|subject| {
                            let bound = &key.principal_ids;
                            bound.is_empty() || bound.iter().any(|id| id == subject)
                        })
                });
                if !holds {
                    return Err(ApiError::plain(ErrorCode::Unauthenticated));
                }
                active_tenant(&self.graph, tenant_id).map(drop)
            }
        }
    }

    /// When the credential ends by itself, if nothing changes before.
    pub(super) fn until(&self, caller: &Caller) -> Option<DateTime<Utc>> {
        let CallerKind::Key { key_id, secret, .. } = &caller.kind else { return caller.until };
        self.graph.api_key(public_id(key_id))?.secret_until(&secret.0)
    }
}

/// The exports under way. Each asks before each line whether its person's credential still holds; API keys
/// export nothing.
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

fn active_tenant(graph: &Graph, id: &str) -> Result<TenantHandle, ApiError> {
    let handle = graph.tenant(id)?.ok_or(TENANT_INACTIVE)?;
    let active = handle.read().tenant().is_some_and(|tenant| tenant.active);
    if active { Ok(handle) } else { Err(TENANT_INACTIVE.into()) }
}

fn public_id(key_id: &str) -> &str {
    identity::api_key::public_id(key_id)
}
