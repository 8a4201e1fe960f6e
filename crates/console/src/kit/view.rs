//! A request of a signed-in person: the session, the credential, and the permissions.

use std::time::Duration;

use authority_api::identity::{Caller, Via};
use authority_ids::TenantId;
use authority_model::surfaces::Surfaces;
use axum::{
    extract::FromRequestParts,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat, Utc};
use http::{Method, StatusCode, header::ACCEPT_LANGUAGE};
use tokio::time::timeout;

use crate::{
    Console,
    kit::{calls::Calls, notice::Notice, page::see, query::encoded, show::short},
    session::{Cookie, IDLE, Stored, credential::Unavailable, digest},
    texts as t,
};

/// A page's request.
pub(crate) struct View {
    pub(crate) console: Console,
    pub(crate) session: Stored,
    pub(crate) caller: Caller,
    pub(crate) calls: Calls,
    pub(crate) now: DateTime<Utc>,
    /// The person's languages: the value of `Accept-Language`.
    pub(crate) languages: String,
    csrf: String,
    surfaces: Surfaces,
    /// Whether a browser shows the response to a person.
    shows: bool,
}

/// How long the check of a session may take. A response is cut off after 10 seconds, and the person
/// must still get a page.
const CHECKED: Duration = Duration::from_secs(8);
/// The header of the script's background requests.
const LIVE: &str = "x-console-live";

impl FromRequestParts<Console> for View {
    /// A redirect to the sign-in, or the reason why there is none now.
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let now = console.0.clock.now();
        let away = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "failed to read a console session");
            unavailable(parts)
        };
        let checked = timeout(CHECKED, console.session(parts, now)).await;
        let (mut session, caller) = match checked.map_err(|error| away(&error))? {
            Ok(Some(found)) => found,
            Ok(None) => return Err(sign_in(parts)),
            Err(Unavailable) => return Err(unavailable(parts)),
        };
        let live = parts.headers.contains_key(LIVE);
        // A background request of the script does not keep the session alive.
        if !live {
            console.0.sessions.note(&mut session, now).await.map_err(|e| away(&e))?;
        }
        let api = console.0.api.clone();
        let calls = Calls::new(api, &session.tokens.api, parts.extensions.clone());
        let surfaces = parts.extensions.get().copied().unwrap_or(Surfaces::NONE);
        let languages = parts.headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Ok(Self {
            calls: calls.map_err(|e| away(&e))?,
            csrf: console.csrf(&session.digest),
            console: console.clone(),
            session,
            caller,
            now,
            languages: languages.unwrap_or_default().to_owned(),
            surfaces,
            shows: !live && is_shown(parts),
        })
    }
}

/// Whether a person sees the response as a page. A browser may also fetch pages ahead, or request
/// only the head.
fn is_shown(parts: &Parts) -> bool {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let is_ahead = |name: &str| header(name).is_some_and(|why| why.contains("prefetch"));
    parts.method == Method::GET
        && !is_ahead("sec-purpose")
        && !is_ahead("purpose")
        && header("sec-fetch-dest").is_none_or(|dest| dest == "document")
}

impl Console {
    pub(crate) fn origin(&self) -> &str {
        &self.0.origin
    }

    /// The session of the request's cookie, with its person. An ended session is deleted.
    async fn session(
        &self,
        parts: &Parts,
        now: DateTime<Utc>,
    ) -> Result<Option<(Stored, Caller)>, Unavailable> {
        let away = |error| {
            tracing::warn!(%error, "failed to read a console session");
            Unavailable
        };
        let Some(cookie) = self.0.cookies.read(&parts.headers, Cookie::Session) else {
            return Ok(None);
        };
        let found = self.0.sessions.find(digest(cookie), now).await.map_err(away)?;
        let Some(mut session) = found else { return Ok(None) };
        if let Some(caller) = self.holder(&mut session, parts, now).await? {
            return Ok(Some((session, caller)));
        }
        self.0.sessions.end(session.digest).await.map_err(away)?;
        Ok(None)
    }

    /// The token that a form of a session's pages must contain.
    fn csrf(&self, session: &[u8; 32]) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sessions.keys.mac("console-csrf", session))
    }
}

/// Redirects to the sign-in, which leads back to the requested page.
fn sign_in(parts: &Parts) -> Response {
    if parts.headers.contains_key(LIVE) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let asked = parts.uri.path_and_query().map_or("/console", |asked| asked.as_str());
    see(&format!("/console/sign-in?to={}", encoded(asked)))
}

fn unavailable(parts: &Parts) -> Response {
    let (status, text) = (StatusCode::SERVICE_UNAVAILABLE, t::kit::SESSION_UNCHECKED);
    let notice = Notice::new(status, t::kit::UNAVAILABLE, text);
    let asked = parts.uri.path_and_query().filter(|_| parts.method == Method::GET);
    notice.link(asked.map_or("/console", |asked| asked.as_str()), t::kit::TRY_AGAIN).response()
}

impl View {
    pub(crate) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// The tenant that an owner looks at.
    pub(crate) fn shown_tenant(&self) -> Option<&TenantId> {
        self.session.shown_tenant_id.as_ref()
    }

    /// The person's tenant, or the tenant that an owner looks at.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.caller.tenant().or(self.shown_tenant())
    }

    /// The name of a tenant, if several tenants are shown.
    pub(crate) fn named_tenant(&self, id: &str) -> Option<String> {
        self.tenant().is_none().then(|| short(id).to_owned())
    }

    /// Whether the API's rules let the person call an operation.
    pub(crate) fn may(&self, rpc: &str) -> bool {
        self.console.0.identity.permits(rpc, Via::Grpc(self.surfaces), &self.caller)
    }

    /// The path of an operation on the owner's surface or on the surface for a tenant's people.
    pub(crate) fn path(&self, operation: &str) -> String {
        let surface = if self.caller.is_owner() { "/api/v1" } else { "/api/v1/app" };
        format!("{surface}/{operation}")
    }

    pub(crate) fn now_text(&self) -> String {
        self.now.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// When the session ends if it is not used: after the idle time, at its maximum age, or with
    /// its token if the token cannot be refreshed.
    pub(crate) fn session_ends(&self) -> String {
        let ends = (self.session.last_used_at + IDLE).min(self.session.expires_at);
        let with_token = self.caller.until.filter(|_| self.session.tokens.refresh.is_none());
        let ends = with_token.map_or(ends, |until| ends.min(until));
        ends.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// Notes that the request of an approval was shown, unless a script or a prefetch asked for it.
    pub(crate) async fn note_opened(&self, approval_id: &str, request_digest: &str) {
        let is_known = self.session.opened.get(approval_id).is_some_and(|d| d == request_digest);
        if is_known || !self.shows {
            return;
        }
        let noted = self.console.0.sessions.open(
            self.session.digest,
            approval_id,
            request_digest,
            self.now,
        );
        if let Err(error) = noted.await {
            tracing::warn!(%error, "failed to note that an approval was opened");
        }
    }
}
