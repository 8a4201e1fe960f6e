//! Access to a decision's receipt, and the responses without one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use askama::Template;
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{CallerKind, Error as IdentityError, Identity},
};
use authority_archive::Archives;
use authority_config::Config;
use authority_ids::{DecisionId, DecisionRef};
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::Store;
use axum::{
    http::{Extensions, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{Html, IntoResponse, Response},
};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    archive,
    page::{ForMembers, NotFound},
    read::{self, Read},
};
use crate::transport::prefers_html;

/// The content security policy of every response.
pub(super) const POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
);
/// The receipt pages.
#[derive(Clone)]
pub struct Receipts(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) keys: Keys,
    /// Reads decisions that were moved from the tables to the archive.
    archives: Archives,
    /// The service's public URL, without a trailing `/`.
    pub(super) issuer: String,
    /// Whether there is a console. If so, the page links approvers to it.
    pub(super) console: bool,
    turns: Semaphore,
    identity: Identity,
    peer: Peer,
    pub(super) clock: Clock,
}

/// Reads a request's peer address, which the transport put into the extensions.
pub type Peer = fn(&Extensions) -> Option<IpAddr>;

impl Receipts {
    pub fn new(
        store: Store,
        keys: Keys,
        archives: Archives,
        config: &Config,
        identity: Identity,
        peer: Peer,
        clock: Clock,
    ) -> Self {
        let issuer = config.public_url().trim_end_matches('/').to_owned();
        let (console, turns) = (config.console(), Semaphore::new(MOST_READS));
        Self(Arc::new(Inner {
            store,
            keys,
            archives,
            issuer,
            console,
            turns,
            identity,
            peer,
            clock,
        }))
    }
}

/// The most reads at one time: anyone may request a receipt, and requests must not exhaust the
/// database.
const MOST_READS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a credential of the tenant may read decisions: any person's credential, or an API key
/// with a scope for reading.
fn may_read(kind: &CallerKind) -> bool {
    match kind {
        CallerKind::Member { .. } => true,
        CallerKind::Key { scopes, .. } => {
            scopes.iter().any(|scope| ["runtime:read", "evidence:read"].contains(&scope.as_str()))
        }
        CallerKind::Owner { .. } | CallerKind::Anonymous => false,
    }
}

pub(super) fn missing() -> Response {
    match NotFound.render() {
        Ok(page) => (StatusCode::NOT_FOUND, [POLICY], Html(page)).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Receipts {
    /// Returns the decision if the caller may see it, and a permit that limits the number of reads.
    pub(super) async fn read(
        &self,
        decision_id: &DecisionRef,
        parts: &Parts,
    ) -> Result<(Read, SemaphorePermit<'_>), Box<Response>> {
        let Ok(id) = DecisionId::parse(decision_id) else { return Err(missing().into()) };
        let turn = self.turn().await?;
        let read = self.find(&id).await.map_err(|error| Box::new(refused(error)))?;
        let mut read = read.ok_or_else(|| Box::new(missing()))?;
        if !read.members_only {
            return Ok((read, turn));
        }
        // An identity provider may be slow: other receipts must not wait for it.
        drop(turn);
        let caller = self.0.identity.identify(&parts.headers, (self.0.peer)(&parts.extensions));
        let caller = caller.await.map_err(|error| Box::new(refused(error)))?;
        if caller.kind == CallerKind::Anonymous {
            return Err(self.without_credential(&id, parts).into());
        }
        // Other callers get the same response as for an unknown receipt.
        let own = caller.tenant().is_some_and(|own| read.decision.tenant_id == *own);
        let reads = own && caller.acts_for(&read.decision.subject) && may_read(&caller.kind);
        if !(caller.is_owner() || reads) {
            return Err(missing().into());
        }
        read.knows_people = caller.person().is_some();
        let turn = self.turn().await?;
        Ok((read, turn))
    }

    /// A browser without a credential gets a link to the console, where a person can read the
    /// receipt.
    fn without_credential(&self, id: &DecisionId, parts: &Parts) -> Response {
        let mut response = refused(IdentityError::NoCredential);
        if self.0.console
            && prefers_html(&parts.headers)
            && let Ok(page) = (ForMembers { decision_id: id.clone() }).render()
        {
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response.headers_mut().remove(header::CONTENT_LENGTH);
            *response.body_mut() = page.into();
        }
        response
    }

    /// Finds the decision in the tables or in the archive.
    async fn find(&self, id: &DecisionId) -> Result<Option<Read>, ApiError> {
        if let Some(read) = read::decision(&self.0.store, id.clone()).await? {
            return Ok(Some(read));
        }
        let archived = self.0.archives.find(&read::scope(), id).await?;
        let Some(archived) = archived else { return Ok(None) };
        Ok(Some(archive::read(&self.0.store, archived).await?))
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Box<Response>> {
        let turn = tokio::time::timeout(PATIENCE, self.0.turns.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let busy = ErrorCode::Unavailable;
            (busy.http(), [POLICY], busy.sentence()).into_response().into()
        })
    }
}

pub(super) fn refused(error: impl Into<ApiError>) -> Response {
    let refusal = error.into();
    let challenge = refusal.about.into_iter().find(|(name, _)| *name == "www_authenticate");
    let challenge = challenge.and_then(|(_, text)| HeaderValue::from_str(&text).ok());
    let mut response = (refusal.code.http(), [POLICY], refusal.message).into_response();
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
