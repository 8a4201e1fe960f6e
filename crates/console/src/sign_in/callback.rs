//! The provider's answer. Its code is exchanged for tokens, and these begin a session.

use authority_api::identity::{Caller, Error as IdentityError, IdClaims, OTHER_SIGN_IN};
use authority_crypto::equal;
use axum::extract::{FromRequestParts as _, State};
use http::request::Parts;

use super::{
    failed::failed,
    provider::{Provider, TokenResponse},
    started::Started,
};
use crate::{
    kit::prelude::*,
    session::{
        Cookie, NewSession, Tokens,
        credential::{is_person, role_of},
        digest, new_value,
    },
};

/// The maximum length of a code, in bytes. Providers issue codes of some hundred bytes.
const LONGEST_CODE: usize = 4096;

/// The response to a sign-in that ends without a session.
struct Refused(Box<Response>);

impl From<Response> for Refused {
    fn from(answer: Response) -> Self {
        Self(Box::new(answer))
    }
}

pub(super) async fn arrive(State(console): State<Console>, query: Pairs, parts: Parts) -> Response {
    let Some(started) = console.started(&query, &parts.headers) else {
        return not_started(&console, parts).await;
    };
    let state = started.state.clone();
    let mut answer = match console.signed_in(started, &query, &parts).await {
        Ok((to, cookie)) => {
            let mut answer = see(&to);
            answer.headers_mut().append(header::SET_COOKIE, cookie);
            answer
        }
        Err(refused) => *refused.0,
    };
    // The cookie of a finished sign-in is removed. The sign-ins of other tabs continue.
    if let Some(cookie) = console.0.cookies.remove(Cookie::SignIn(&state)) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
}

/// Responds to the callback of a sign-in that this browser has not begun or has finished. A signed-in person, who may
/// have reloaded the page or gone back, is redirected to the console.
async fn not_started(console: &Console, mut parts: Parts) -> Response {
    if View::from_request_parts(&mut parts, console).await.is_ok() {
        return see("/console");
    }
    *refused(StatusCode::BAD_REQUEST, t::session::NOT_BEGUN_HERE, "/console").0
}

fn refused(status: StatusCode, text: impl Into<String>, to: &str) -> Refused {
    Notice::new(status, t::session::NOT_SIGNED_IN, text).again(to).response().into()
}

impl Console {
    /// The page to go to, and the cookie of a new session.
    async fn signed_in(
        &self,
        started: Started,
        query: &Pairs,
        parts: &Parts,
    ) -> Result<(String, HeaderValue), Refused> {
        let now = self.0.clock.now();
        let to = &started.to;
        let provider = self
            .provider(&started.issuer)
            .ok_or_else(|| refused(StatusCode::BAD_REQUEST, t::session::PROVIDER_REMOVED, to))?;
        // Each provider has its own redirect URI. A malicious provider could otherwise get another
        // one's code, if that one does not send its issuer (RFC 9700, 4.4.2.2).
        if parts.uri.path() != provider.callback_path() {
            return Err(refused(StatusCode::BAD_REQUEST, t::session::OTHER_PROVIDER, to));
        }
        let code = code(provider, query, to).await?;
        let redirect_uri = self.redirect_uri(provider);
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", &started.verifier),
        ];
        let given = provider.tokens(&grant).await;
        let given = given.map_err(|error| failed(&error, to))?;
        let id = given
            .id_token
            .clone()
            .ok_or_else(|| refused(StatusCode::BAD_GATEWAY, t::session::NO_ID_TOKEN, to))?;
        let (issuer, client_id) = (provider.issuer(), &provider.client.client_id);
        let claims = self.0.identity.id_token(&id, issuer, client_id, &started.nonce).await;
        let claims = claims.map_err(|error| unusable(t::session::ID_TOKEN, &error, to))?;
        let authenticated_at = authenticated_at(&claims, &started, now)?;
        let (caller, tokens) = self.credential(issuer, given, id, parts, to).await?;
        if caller.identity() != format!("{}|{}", claims.iss, claims.sub) {
            return Err(refused(StatusCode::BAD_GATEWAY, t::session::TWO_PEOPLE, to));
        }
        let is_refreshed = tokens.refresh.is_some();
        let session = NewSession {
            person: caller.identity(),
            email: caller.email().map(str::to_lowercase),
            sid: claims.sid,
            tenant_id: caller.tenant().map(ToString::to_string),
            tokens,
            authenticated_at,
        };
        let cookie = self.begin(session, &parts.headers, now).await;
        let cookie = cookie.ok_or_else(|| {
            refused(StatusCode::SERVICE_UNAVAILABLE, t::session::CANNOT_STORE, to)
        })?;
        tracing::info!(actor.id = caller.actor, "signed in at the console");
        if !is_refreshed && asks_for_refresh_tokens(provider).await {
            let ends = caller.until.map(|until| until.to_rfc3339());
            tracing::warn!(
                actor.id = caller.actor,
                ends,
                "received no refresh token; a console session ends with its access token"
            );
        }
        Ok((started.to, cookie))
    }

    /// The sign-in that this answer belongs to.
    fn started(&self, query: &Pairs, headers: &HeaderMap) -> Option<Started> {
        let state = query.text("state");
        let cookie = self.0.cookies.read(headers, Cookie::SignIn(state))?;
        let started = Started::opened(cookie, &self.0.sessions.keys, self.0.clock.now())?;
        equal(started.state.as_bytes(), state.as_bytes()).then_some(started)
    }

    /// The token that the API accepts: the access token, or the ID token if the provider's access
    /// tokens are not for the API.
    async fn credential(
        &self,
        issuer: &str,
        given: TokenResponse,
        id: String,
        parts: &Parts,
        to: &str,
    ) -> Result<(Caller, Tokens), Refused> {
        let TokenResponse { access_token, refresh_token: refresh, id_token: _ } = given;
        let error = match self.identify(&access_token, parts).await {
            Ok(caller) if is_person(&caller) => {
                let tokens = first_tokens(issuer, &caller, access_token, refresh);
                return Ok((caller, tokens));
            }
            Ok(_) => IdentityError::Unreadable,
            Err(error) => error,
        };
        // A token that was read and refused is not replaced by another one.
        let is_other = matches!(error, IdentityError::Token(_) | IdentityError::Unreadable);
        match self.identify(&id, parts).await {
            Ok(caller) if is_other && is_person(&caller) => {
                let tokens = first_tokens(issuer, &caller, id, refresh);
                Ok((caller, Tokens { is_id_token: true, ..tokens }))
            }
            _ => Err(unusable(t::session::ACCESS_TOKEN, &error, to)),
        }
    }

    /// Stores a session under a new cookie. The browser's earlier session ends.
    async fn begin(
        &self,
        session: NewSession,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Option<HeaderValue> {
        let value = new_value().ok()?;
        let before = self.0.cookies.read(headers, Cookie::Session).map(digest);
        let begun = self.0.sessions.begin(digest(&value), before, session, now).await;
        if let Err(error) = &begun {
            tracing::warn!(%error, "failed to store a console session");
        }
        begun.ok()?;
        self.0.cookies.set(Cookie::Session, &value)
    }
}

/// Whether a sign-in requests a refresh token.
async fn asks_for_refresh_tokens(provider: &Provider) -> bool {
    provider.metadata().await.is_ok_and(|metadata| metadata.has_offline_access())
}

/// The answer's code, if it is this provider's (RFC 9207) and not an error. The code of another
/// provider must not be sent to this one.
async fn code<'q>(provider: &Provider, query: &'q Pairs, to: &str) -> Result<&'q str, Refused> {
    let metadata = provider.metadata().await;
    let metadata = metadata.map_err(|error| failed(&error, to))?;
    let is_named = match query.one("iss") {
        Some(issuer) => issuer == provider.issuer(),
        None => !metadata.authorization_response_iss_parameter_supported,
    };
    if !is_named {
        return Err(refused(StatusCode::BAD_REQUEST, t::session::OTHER_PROVIDER, to));
    }
    if let Some(error) = query.one("error") {
        let text = t::session::refused(error, query.text("error_description"));
        return Err(refused(StatusCode::FORBIDDEN, text, to));
    }
    let missing = || refused(StatusCode::BAD_REQUEST, t::session::NO_CODE, to);
    let code = query.one("code").ok_or_else(missing)?;
    // A code that no provider would issue isn't sent on: the provider might report it as this service's fault.
    if code.len() > LONGEST_CODE || !code.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return Err(refused(StatusCode::BAD_REQUEST, t::session::INVALID_CODE, to));
    }
    Ok(code)
}

/// The tokens of a session that begins with an access token.
fn first_tokens(issuer: &str, caller: &Caller, api: String, refresh: Option<String>) -> Tokens {
    let (role, issuer) = (Some(role_of(caller)), issuer.to_owned());
    Tokens { api, refresh, is_id_token: false, role, issuer }
}

/// The page for a provider's token that is not valid for this service. It describes the remedy.
fn unusable(token: &str, error: &IdentityError, to: &str) -> Refused {
    tracing::warn!(%error, token, "failed to complete a sign-in at the console");
    let (status, remedy) = match error {
        IdentityError::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, t::session::IN_A_FEW_SECONDS)
        }
        IdentityError::Forbidden(_) => (StatusCode::FORBIDDEN, t::session::AS_OTHER),
        error if *error == OTHER_SIGN_IN => (StatusCode::BAD_REQUEST, t::session::AGAIN),
        _ => (StatusCode::BAD_GATEWAY, t::session::CHECK_AUDIENCE),
    };
    let text = t::session::token_refused(token, error, remedy);
    match error {
        IdentityError::Forbidden(_) => Notice::new(status, t::session::NOT_SIGNED_IN, text)
            .for_somebody_else(to)
            .response()
            .into(),
        _ => refused(status, text, to),
    }
}

/// When the person proved who they are. A provider that was asked for a new sign-in has to confirm it.
fn authenticated_at(
    claims: &IdClaims,
    started: &Started,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Refused> {
    let confirmed = claims.authenticated_at();
    let confirmed = confirmed.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    match confirmed {
        Some(at) if !started.fresh || started.precedes(at) => Ok(at.min(now)),
        None if !started.fresh => Ok(now),
        _ => Err(refused(StatusCode::FORBIDDEN, t::session::NOT_CONFIRMED, &started.to)),
    }
}
