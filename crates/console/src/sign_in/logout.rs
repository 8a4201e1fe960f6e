//! The end of a session: the person signs out here, or at the provider, which notifies this service
//! (OIDC Back-Channel Logout 1.0).

use authority_api::identity::{Error as IdentityError, LogoutClaims};
use axum::{body::Bytes, extract::State};
use chrono::TimeDelta;
use serde_json::json;

use super::provider::with_query;
use crate::{
    kit::prelude::*,
    session::{Cookie, EndedSessions},
};

/// The path to which the provider redirects people after signing out.
pub(super) const DONE: &str = "/console/sign-out/done";
/// The time by which the provider's clock may be behind.
const LEEWAY: TimeDelta = TimeDelta::seconds(30);

/// `POST /console/sign-out`: signs out here and, if it has an address for this, at the provider.
pub(super) async fn sign_out(Posted { view, .. }: Posted) -> Response {
    let console = view.console.clone();
    if let Err(error) = console.0.sessions.end(view.session.digest).await {
        tracing::warn!(%error, "failed to end a console session");
        let (title, text) = (t::session::STILL_SIGNED_IN, t::session::NOT_ENDED);
        return Notice::new(StatusCode::SERVICE_UNAVAILABLE, title, text).response();
    }
    // A page instead of a redirect, because the form's policy also applies to redirects.
    let notice = match console.end_session_url(&view.session.tokens.issuer).await {
        Some(url) => signed_out().onward(url),
        None => signed_out(),
    };
    let mut answer = notice.response();
    if let Some(cookie) = console.0.cookies.remove(Cookie::Session) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
}

/// `GET /console/sign-out/done`.
pub(super) async fn done(State(console): State<Console>, headers: HeaderMap) -> Response {
    // A person who has signed in again in the meantime does not get the page about signing out.
    match console.0.cookies.read(&headers, Cookie::Session) {
        Some(_) => see("/console"),
        None => signed_out().response(),
    }
}

fn signed_out() -> Notice {
    Notice::new(StatusCode::OK, t::session::SIGNED_OUT, t::session::NO_DATA_LEFT)
}

impl Console {
    /// The provider's address for signing out (OIDC RP-Initiated Logout 1.0), if there is one. It has no
    /// `id_token_hint`: the ID token may be a credential of the API, and an address is kept in the browser's history
    /// and in the provider's log. The provider may ask the person for confirmation.
    async fn end_session_url(&self, issuer: &str) -> Option<String> {
        let provider = self.provider(issuer)?;
        let metadata = provider.metadata().await.ok()?;
        let endpoint = metadata.end_session_endpoint.as_ref()?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([
            ("client_id", provider.client.client_id.as_str()),
            ("post_logout_redirect_uri", &format!("{}{DONE}", self.0.public_url)),
        ]);
        Some(with_query(endpoint, &query.finish()))
    }

    /// Returns the claims of a logout token. Any of the providers may have issued it.
    async fn logout_claims(&self, token: &str) -> Result<LogoutClaims, IdentityError> {
        let mut refused = IdentityError::Unreadable;
        for provider in &self.0.providers {
            let (issuer, client_id) = (provider.issuer(), &provider.client.client_id);
            match self.0.identity.logout_token(token, issuer, client_id).await {
                Ok(claims) => return Ok(claims),
                // The token may be this provider's.
                Err(IdentityError::Unavailable) => refused = IdentityError::Unavailable,
                Err(error) if refused != IdentityError::Unavailable => refused = error,
                Err(_) => {}
            }
        }
        Err(refused)
    }
}

/// `POST /console/back-channel-logout`, which the provider calls with a logout token.
pub(super) async fn back_channel(State(console): State<Console>, body: Bytes) -> Response {
    // The form of an error that OAuth clients read (RFC 6749, 5.2).
    let answer = |status: StatusCode, text: String| {
        let store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status.is_success() {
            return (status, [store]).into_response();
        }
        let error = json!({"error": "invalid_request", "error_description": text});
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        (status, [store, kind], error.to_string()).into_response()
    };
    let form = Pairs::read(&body);
    let Some(token) = form.one("logout_token") else {
        return answer(StatusCode::BAD_REQUEST, t::session::SEND_LOGOUT_TOKEN.to_owned());
    };
    let claims = match console.logout_claims(token).await {
        Ok(claims) => claims,
        Err(error @ IdentityError::Unavailable) => {
            return answer(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        }
        Err(error) => {
            tracing::warn!(%error, "refused a logout token");
            return answer(StatusCode::BAD_REQUEST, error.to_string());
        }
    };
    // A token that is sent again ends no session that began after it.
    let issued_at = DateTime::<Utc>::from_timestamp(claims.issued_at(), 0).unwrap_or_default();
    let before = issued_at + LEEWAY;
    let person = claims.sub.as_ref().map(|sub| format!("{}|{sub}", claims.iss));
    let ended = match (&claims.sid, &person) {
        (Some(sid), person) => {
            EndedSessions::Sid { issuer: &claims.iss, sid, person: person.as_deref(), before }
        }
        (None, Some(person)) => EndedSessions::Person { person, before },
        (None, None) => return answer(StatusCode::BAD_REQUEST, String::new()),
    };
    match console.0.sessions.end_all(ended).await {
        Ok(0) => {
            tracing::debug!("received a logout token for no session of the console");
            answer(StatusCode::OK, String::new())
        }
        Ok(count) => {
            tracing::info!(sessions = count, "ended console sessions by a logout token");
            answer(StatusCode::OK, String::new())
        }
        Err(error) => {
            tracing::error!(%error, "failed to end console sessions by a logout token");
            answer(StatusCode::SERVICE_UNAVAILABLE, t::session::LOGOUT_AGAIN.to_owned())
        }
    }
}
