//! The provider's answer. Its code is exchanged for tokens, and these begin a session.

use authority_api::identity::{Caller, Error as IdentityError, IdClaims, OTHER_SIGN_IN};
use authority_crypto::equal;
use axum::extract::{FromRequestParts as _, State};
use http::request::Parts;

use super::{
    failed::{TITLE, failed},
    provider::TokenResponse,
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
    let text = "This sign-in was not begun in this browser, or took over 15 minutes.";
    *refused(StatusCode::BAD_REQUEST, text, "/console").0
}

fn refused(status: StatusCode, text: impl Into<String>, to: &str) -> Refused {
    Notice::new(status, TITLE, text).again(to).response().into()
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
        let code = self.code(query, to).await?;
        let redirect_uri = self.redirect_uri();
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", &started.verifier),
        ];
        let given = self.0.provider.tokens(&grant).await;
        let given = given.map_err(|error| failed(&error, to))?;
        let id = given.id_token.clone().ok_or_else(|| {
            refused(StatusCode::BAD_GATEWAY, "The identity provider gave no ID token.", to)
        })?;
        let (issuer, client_id) = (self.0.provider.issuer(), &self.0.provider.client.client_id);
        let claims = self.0.identity.id_token(&id, issuer, client_id, &started.nonce).await;
        let claims = claims.map_err(|error| unusable("ID token", &error, to))?;
        let authenticated_at = authenticated_at(&claims, &started, now)?;
        let (caller, tokens) = self.credential(given, id, parts, to).await?;
        if caller.identity() != format!("{}|{}", claims.iss, claims.sub) {
            let text = "The identity provider's two tokens are not of the same person.";
            return Err(refused(StatusCode::BAD_GATEWAY, text, to));
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
            let text = "The session cannot be stored at the moment. Try again in a few seconds.";
            refused(StatusCode::SERVICE_UNAVAILABLE, text, to)
        })?;
        tracing::info!(actor.id = caller.actor, "signed in at the console");
        if !is_refreshed && self.asks_for_refresh_tokens().await {
            let ends = caller.until.map(|until| until.to_rfc3339());
            tracing::warn!(
                actor.id = caller.actor,
                ends,
                "received no refresh token; a console session ends with its access token"
            );
        }
        Ok((started.to, cookie))
    }

    /// Whether a sign-in requests a refresh token.
    async fn asks_for_refresh_tokens(&self) -> bool {
        self.0.provider.metadata().await.is_ok_and(|metadata| metadata.has_offline_access())
    }

    /// The sign-in that this answer belongs to.
    fn started(&self, query: &Pairs, headers: &HeaderMap) -> Option<Started> {
        let state = query.text("state");
        let cookie = self.0.cookies.read(headers, Cookie::SignIn(state))?;
        let started = Started::opened(cookie, &self.0.sessions.keys, self.0.clock.now())?;
        equal(started.state.as_bytes(), state.as_bytes()).then_some(started)
    }

    /// The answer's code, if it is this provider's (RFC 9207) and not an error.
    async fn code<'q>(&self, query: &'q Pairs, to: &str) -> Result<&'q str, Refused> {
        let metadata = self.0.provider.metadata().await;
        let metadata = metadata.map_err(|error| failed(&error, to))?;
        let is_named = match query.one("iss") {
            Some(issuer) => issuer == self.0.provider.issuer(),
            None => !metadata.authorization_response_iss_parameter_supported,
        };
        if !is_named {
            let text = "The answer did not come from this service's identity provider.";
            return Err(refused(StatusCode::BAD_REQUEST, text, to));
        }
        if let Some(error) = query.one("error") {
            let about = query.text("error_description");
            let text = format!("The identity provider did not sign you in: {error}. {about}");
            return Err(refused(StatusCode::FORBIDDEN, text, to));
        }
        let missing = || refused(StatusCode::BAD_REQUEST, "The answer has no code.", to);
        let code = query.one("code").ok_or_else(missing)?;
        // A code that no provider would issue isn't sent on: the provider might report it as this service's fault.
        if code.len() > LONGEST_CODE || !code.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
            return Err(refused(StatusCode::BAD_REQUEST, "The answer's code is none.", to));
        }
        Ok(code)
    }

    /// The token that the API accepts: the access token, or the ID token if the provider's access
    /// tokens are not for the API.
    async fn credential(
        &self,
        given: TokenResponse,
        id: String,
        parts: &Parts,
        to: &str,
    ) -> Result<(Caller, Tokens), Refused> {
        let TokenResponse { access_token, refresh_token: refresh, id_token: _ } = given;
        let error = match self.identify(&access_token, parts).await {
            Ok(caller) if is_person(&caller) => {
                let tokens = self.first_tokens(&caller, access_token, refresh);
                return Ok((caller, tokens));
            }
            Ok(_) => IdentityError::Unreadable,
            Err(error) => error,
        };
        // A token that was read and refused is not replaced by another one.
        let is_other = matches!(error, IdentityError::Token(_) | IdentityError::Unreadable);
        match self.identify(&id, parts).await {
            Ok(caller) if is_other && is_person(&caller) => {
                let tokens = self.first_tokens(&caller, id, refresh);
                Ok((caller, Tokens { is_id_token: true, ..tokens }))
            }
            _ => Err(unusable("access token", &error, to)),
        }
    }

    /// The tokens of a session that begins with an access token.
    fn first_tokens(&self, caller: &Caller, api: String, refresh: Option<String>) -> Tokens {
        let issuer = self.0.provider.issuer().to_owned();
        Tokens { api, refresh, is_id_token: false, role: Some(role_of(caller)), issuer }
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

/// The page for a provider's token that is not valid for this service. It describes the remedy.
fn unusable(token: &str, error: &IdentityError, to: &str) -> Refused {
    tracing::warn!(%error, token, "failed to complete a sign-in at the console");
    let (status, remedy) = match error {
        IdentityError::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "Try again in a few seconds.")
        }
        IdentityError::Forbidden(_) => (
            StatusCode::FORBIDDEN,
            "Sign in as somebody else, or ask an administrator of your tenant.",
        ),
        error if *error == OTHER_SIGN_IN => (StatusCode::BAD_REQUEST, "Sign in again."),
        _ => (
            StatusCode::BAD_GATEWAY,
            "Whoever runs this service can compare `identity.audience` and `console.client_id` with the provider's \
             settings: docs/operations/sign-in.md lists the claims of its tokens.",
        ),
    };
    let text = format!("The provider's {token} was not accepted: {error}. {remedy}");
    match error {
        IdentityError::Forbidden(_) => {
            Notice::new(status, TITLE, text).for_somebody_else(to).response().into()
        }
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
        _ => {
            let text = "You had to sign in again, but the identity provider did not confirm it.";
            Err(refused(StatusCode::FORBIDDEN, text, &started.to))
        }
    }
}
