//! The end of a session: the person signs out here, or at the provider, which says so (OIDC Back-Channel
//! Logout 1.0).

use axum::{
    body::Bytes,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

use crate::{
    Console,
    form::Posted,
    notice::Notice,
    query::{Pairs, encoded},
    session::{Cookie, Ended},
};

/// `POST /console/sign-out`: here and, where the provider has an address for it, there.
pub(super) async fn sign_out(Posted { view, .. }: Posted) -> Response {
    let console = view.console.clone();
    if let Err(error) = console.0.sessions.end(view.session.digest).await {
        tracing::warn!(%error, "a console session cannot be ended");
        let text = "The session cannot be ended at the moment. Try again, or close the browser.";
        return Notice::new(StatusCode::SERVICE_UNAVAILABLE, "You are still signed in", text)
            .response();
    }
    let text = "Nothing of this session is left in this browser.";
    let mut notice = Notice::new(StatusCode::OK, "You are signed out", text);
    // A page, not a redirect: a form's policy holds for where its answer leads, too.
    let metadata = console.0.provider.metadata().await.ok();
    if let Some(endpoint) = metadata.and_then(|metadata| metadata.end_session_endpoint.clone()) {
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        let hint = encoded(&view.session.tokens.id);
        let client = encoded(&console.0.provider.client.client_id);
        notice = notice.onward(format!("{endpoint}{joint}id_token_hint={hint}&client_id={client}"));
    }
    let mut answer = notice.response();
    if let Some(cookie) = console.0.cookies.remove(Cookie::Session) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
}

/// `POST /console/back-channel-logout`, which the provider calls with a logout token.
pub(super) async fn back_channel(State(console): State<Console>, body: Bytes) -> Response {
    let answer = |status: StatusCode, text: String| {
        let store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        (status, store, text).into_response()
    };
    let form = Pairs::read(&body);
    let Some(token) = form.one("logout_token") else {
        return answer(StatusCode::BAD_REQUEST, "send one `logout_token`".to_owned());
    };
    let client_id = &console.0.provider.client.client_id;
    let claims = match console.0.identity.logout_token(token, client_id).await {
        Ok(claims) => claims,
        Err(error) => return answer(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let person = claims.sub.as_ref().map(|sub| format!("{}|{sub}", claims.iss));
    let ended = match (&claims.sid, &person) {
        (Some(sid), _) => Ended::Sid(&claims.iss, sid),
        (None, Some(person)) => Ended::Person(person),
        (None, None) => return answer(StatusCode::BAD_REQUEST, String::new()),
    };
    match console.0.sessions.end_all(ended).await {
        Ok(count) => {
            tracing::info!(count, "the identity provider ended sessions of the console");
            answer(StatusCode::OK, String::new())
        }
        Err(error) => {
            tracing::error!(%error, "sessions of the console cannot be ended");
            answer(StatusCode::SERVICE_UNAVAILABLE, "try again".to_owned())
        }
    }
}
