//! A request of a person who is signed in: their session, their credential, and what they may do.

use authority_api::identity::{Caller, CallerKind, Error as IdentityError, Via};
use authority_crypto::equal;
use authority_model::access::Surfaces;
use axum::{
    extract::FromRequestParts,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::{
    Console,
    calls::Calls,
    notice::Notice,
    page::see,
    query::encoded,
    session::{Cookie, IDLE, Stored, Tokens, digest},
};

/// A page's request.
pub(crate) struct View {
    pub(crate) console: Console,
    pub(crate) session: Stored,
    pub(crate) caller: Caller,
    pub(crate) calls: Calls,
    pub(crate) now: DateTime<Utc>,
    csrf: String,
    surfaces: Surfaces,
    /// Whether a script asked by itself: that keeps no session alive.
    live: bool,
}

/// The header by which the script says that it asks by itself.
const LIVE: &str = "x-console-live";
/// A token that ends sooner is refreshed before it is used.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);

impl FromRequestParts<Console> for View {
    /// The way to a sign-in, or why there is none now.
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let now = console.0.clock.now();
        let away = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a console session cannot be read");
            unavailable()
        };
        let cookie = console.0.cookies.read(&parts.headers, Cookie::Session);
        let Some(digest) = cookie.map(digest) else { return Err(sign_in(parts)) };
        let found = console.0.sessions.find(digest, now).await.map_err(|e| away(&e))?;
        let Some(mut session) = found else { return Err(sign_in(parts)) };
        let known = console.caller(&mut session, parts, now).await;
        let Some(caller) = known.map_err(|answer| *answer)? else {
            console.0.sessions.end(digest).await.map_err(|e| away(&e))?;
            return Err(sign_in(parts));
        };
        let live = parts.headers.contains_key(LIVE);
        if !live {
            console.0.sessions.note(&session, now).await.map_err(|e| away(&e))?;
            session.last_used_at = now;
        }
        let api = console.0.api.clone();
        let calls = Calls::new(api, &session.tokens.api, parts.extensions.clone());
        let surfaces = parts.extensions.get().copied().unwrap_or(Surfaces::NONE);
        Ok(Self {
            calls: calls.map_err(|e| away(&e))?,
            csrf: console.csrf(&session.digest),
            console: console.clone(),
            session,
            caller,
            now,
            surfaces,
            live,
        })
    }
}

impl Console {
    pub(crate) fn origin(&self) -> &str {
        &self.0.origin
    }

    /// What a form of a session's pages must have.
    fn csrf(&self, session: &[u8; 32]) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sessions.keys.mac("console-csrf", session))
    }

    /// Who the session's token says they are; `None` if the API takes it no longer.
    async fn caller(
        &self,
        session: &mut Stored,
        parts: &Parts,
        now: DateTime<Utc>,
    ) -> Result<Option<Caller>, Box<Response>> {
        let known = self.identify(&session.tokens.api, parts).await;
        let lasts = |caller: &Caller| caller.until.is_none_or(|until| until - now > SHORTEST);
        if let Ok(caller) = &known
            && (lasts(caller) || session.tokens.refresh.is_none())
        {
            return Ok(is_person(caller).then(|| caller.clone()));
        }
        if matches!(known, Err(IdentityError::Unavailable)) {
            return Err(unavailable().into());
        }
        if session.tokens.refresh.is_none() {
            return Ok(None);
        }
        let _turn = self.0.refreshing.lock().await;
        // Another request may have refreshed them meanwhile.
        let found = self.0.sessions.find(session.digest, now).await;
        let Ok(Some(latest)) = found else { return Ok(None) };
        if equal(latest.tokens.api.as_bytes(), session.tokens.api.as_bytes()) {
            let Some(tokens) = self.refreshed(&latest.tokens).await else {
                return Ok(known.ok().filter(is_person));
            };
            if let Err(error) = self.0.sessions.renew(session.digest, &tokens).await {
                tracing::warn!(%error, "refreshed tokens of a console session are not kept");
            }
            session.tokens = tokens;
        } else {
            session.tokens = latest.tokens;
        }
        let caller = self.identify(&session.tokens.api, parts).await.ok();
        // A refresh changes neither the person nor what they are at the service.
        Ok(caller.filter(|caller| is_person(caller) && caller.identity() == session.person))
    }

    async fn refreshed(&self, tokens: &Tokens) -> Option<Tokens> {
        let refresh = tokens.refresh.as_deref()?;
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        match self.0.provider.tokens(&grant).await {
            Ok(given) => {
                let id = given.id_token.unwrap_or_else(|| tokens.id.clone());
                // Where the ID token is the credential, its successor is.
                let api = if tokens.api == tokens.id { id.clone() } else { given.access_token };
                let refresh = given.refresh_token.or_else(|| tokens.refresh.clone());
                Some(Tokens { api, refresh, id })
            }
            Err(error) => {
                tracing::info!(%error, "tokens of a console session cannot be refreshed");
                None
            }
        }
    }

    /// The caller that the API would see with this token.
    pub(crate) async fn identify(
        &self,
        token: &str,
        parts: &Parts,
    ) -> Result<Caller, IdentityError> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        headers.insert(header::AUTHORIZATION, value.map_err(|_| IdentityError::Unreadable)?);
        self.0.identity.identify(&headers, (self.0.client)(&parts.extensions)).await
    }
}

/// Whether it is a person: nobody else signs in.
pub(crate) fn is_person(caller: &Caller) -> bool {
    matches!(caller.kind, CallerKind::Owner { .. } | CallerKind::Member { .. })
}

/// To the sign-in, and from there back to the page that was asked for.
fn sign_in(parts: &Parts) -> Response {
    if parts.headers.contains_key(LIVE) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let asked = parts.uri.path_and_query().map_or("/console", |asked| asked.as_str());
    see(&format!("/console/sign-in?to={}", encoded(asked)))
}

fn unavailable() -> Response {
    let text = "Your session cannot be checked at the moment. Nothing was changed; try again in a few seconds.";
    Notice::new(StatusCode::SERVICE_UNAVAILABLE, "This does not work at the moment", text)
        .response()
}

impl View {
    pub(crate) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// The tenant that an owner looks at.
    pub(crate) fn shown_tenant(&self) -> Option<&str> {
        self.session.shown_tenant_id.as_deref()
    }

    /// Whether the API's rules let them call an operation.
    pub(crate) fn may(&self, rpc: &str) -> bool {
        self.console.0.identity.permits(rpc, Via::Grpc(self.surfaces), &self.caller)
    }

    /// The path of an operation of the owner's surface, or of that of a tenant's people.
    pub(crate) fn path(&self, operation: &str) -> String {
        let surface = if self.caller.is_owner() { "/api/v1" } else { "/api/v1/app" };
        format!("{surface}/{operation}")
    }

    pub(crate) fn now_text(&self) -> String {
        self.now.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    pub(crate) fn session_ends(&self) -> String {
        let ends = (self.session.last_used_at + IDLE).min(self.session.expires_at);
        ends.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// Notes that the request of an approval was shown, unless a script asked for it.
    pub(crate) async fn note_opened(&self, approval_id: &str, request_digest: &str) {
        let is_known = self.session.opened.get(approval_id).is_some_and(|d| d == request_digest);
        if is_known || self.live {
            return;
        }
        let noted = self.console.0.sessions.open(self.session.digest, approval_id, request_digest);
        if let Err(error) = noted.await {
            tracing::warn!(%error, "that an approval was opened is not noted");
        }
    }
}
