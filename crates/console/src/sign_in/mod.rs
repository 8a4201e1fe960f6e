//! Sign-in at the identity provider: OIDC's authorization code flow with PKCE (RFC 7636), `state`,
//! `nonce` and the issuer's name (RFC 9207). The browser receives a session's cookie.
//!
//! No library is used, because the usual one needs the crate `rsa`, which `deny.toml` refuses.
//! Tokens are verified like the API's own.

mod callback;
mod choice;
mod failed;
mod logout;
pub(crate) mod provider;
mod started;

use axum::{extract::State, response::Redirect, routing::post};
use failed::failed;
use http::request::Parts;
use provider::{CALLBACK, Metadata, Provider, with_query};
use started::{Started, own_path};

use crate::{kit::prelude::*, session::Cookie};

/// The address at which the provider reports the end of a session.
const BACK_CHANNEL: &str = "/console/back-channel-logout";

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/sign-in", get(start))
        .route(CALLBACK, get(callback::arrive))
        .route(&format!("{CALLBACK}/{{name}}"), get(callback::arrive))
        // Returns when the session ends, and keeps it alive.
        .route("/console/session", get(async |view: View| view.session_ends()))
        .route("/console/sign-out", post(logout::sign_out))
        .route(logout::DONE, get(logout::done))
        .route(BACK_CHANNEL, post(logout::back_channel))
}

/// `GET /console/sign-in?to=…`: redirects to the provider, or shows the providers if there are several and none is
/// chosen with `issuer`. With `fresh`, the person must sign in again; with `switch`, as somebody else.
async fn start(State(console): State<Console>, query: Pairs, mut parts: Parts) -> Response {
    let to = own_path(query.one("to"));
    if let Some(url) = console.elsewhere(&parts.headers, &to) {
        return Redirect::to(&url).into_response();
    }
    let Some(provider) = choice::chosen(&console, &query, &mut parts).await else {
        return choice::shown(&console, &query, &to);
    };
    let headers = &parts.headers;
    let metadata = match provider.metadata().await {
        Ok(metadata) => metadata,
        Err(error) => return failed(&error, &to),
    };
    let fresh = query.one("fresh").is_some();
    let started = Started::new(provider.issuer(), to, fresh, console.0.clock.now());
    let sealed = started.ok().and_then(|started| {
        let value = started.sealed(&console.0.sessions.keys)?;
        Some((console.0.cookies.set(Cookie::SignIn(&started.state), &value)?, started))
    });
    let Some((cookie, started)) = sealed else {
        let (title, text) = (t::session::NOT_SIGNED_IN, t::session::CANNOT_BEGIN);
        return Notice::new(StatusCode::SERVICE_UNAVAILABLE, title, text).response();
    };
    let prompt = match query.one("switch") {
        _ if started.fresh => Some("login"),
        Some(_) => Some(choice_of_account(&metadata.prompt_values_supported)),
        None => None,
    };
    let mut answer = see(&console.authorization_url(provider, &metadata, &started, prompt));
    answer.headers_mut().insert(header::SET_COOKIE, cookie);
    for old in console.old_sign_ins(headers) {
        answer.headers_mut().append(header::SET_COOKIE, old);
    }
    answer
}

/// The `prompt` with which a person chooses an account at the provider. A provider that does not
/// list `select_account` may refuse it. The sign-in then uses `login`, where another person can
/// sign in (every provider supports it: OIDC Core 1.0, 15.1).
fn choice_of_account(supported: &[String]) -> &'static str {
    const CHOICE: &str = "select_account";
    if supported.iter().any(|value| value == CHOICE) { CHOICE } else { "login" }
}

/// The maximum number of unfinished sign-ins in one browser, one in each tab.
const SIGN_INS: usize = 5;

impl Console {
    /// Headers that remove a browser's expired sign-ins, and its oldest ones if a new sign-in would
    /// exceed the maximum.
    fn old_sign_ins(&self, headers: &HeaderMap) -> Vec<HeaderValue> {
        let (cookies, now) = (self.0.cookies, self.0.clock.now());
        let began = |value: &str| {
            let started = Started::opened(value, &self.0.sessions.keys, now);
            started.map_or(i64::MIN, |started| started.began_at())
        };
        let mut sign_ins: Vec<_> = cookies.sign_ins(headers).collect();
        sign_ins.sort_by_cached_key(|(_, value)| std::cmp::Reverse(began(value)));
        let kept = sign_ins.iter().take(SIGN_INS - 1);
        let kept = kept.take_while(|(_, value)| began(value) > i64::MIN).count();
        let old = sign_ins.iter().skip(kept);
        old.filter_map(|(name, _)| cookies.remove_named(name)).collect()
    }

    fn redirect_uri(&self, provider: &Provider) -> String {
        format!("{}{}", self.0.public_url, provider.callback_path())
    }

    /// The same page at `listen.public_url`, if the browser uses another name of this machine, as is
    /// possible in development. The provider's answer would not find the cookie under that name.
    fn elsewhere(&self, headers: &HeaderMap, to: &str) -> Option<String> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok())?;
        let is_here = self.0.public_url.split_once("://").is_some_and(|(_, own)| own == host);
        (!self.0.cookies.https && !is_here).then(|| format!("{}{to}", self.0.public_url))
    }

    fn authorization_url(
        &self,
        provider: &Provider,
        metadata: &Metadata,
        started: &Started,
        prompt: Option<&str>,
    ) -> String {
        let mut scope = "openid profile email".to_owned();
        // Requests a refresh token, if the provider has a scope for it.
        if metadata.has_offline_access() {
            scope.push_str(" offline_access");
        }
        for more in &provider.client.scopes {
            scope.push(' ');
            scope.push_str(more);
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &provider.client.client_id),
            ("redirect_uri", &self.redirect_uri(provider)),
            ("scope", &scope),
            ("state", &started.state),
            ("nonce", &started.nonce),
            ("code_challenge", &started.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        query.extend_pairs(prompt.map(|prompt| ("prompt", prompt)));
        if started.fresh {
            query.append_pair("max_age", "0");
        }
        with_query(&metadata.authorization_endpoint, &query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation must help the person who configures the provider.
    #[test]
    fn the_page_names_every_uri_that_the_provider_must_allow() {
        let page = include_str!("../../../../docs/operations/sign-in.md");
        let of_another = format!("{CALLBACK}/<name>");
        for path in [CALLBACK, &of_another, logout::DONE, BACK_CHANNEL] {
            let uri = format!("`<public_url>{path}`");
            assert!(page.contains(&uri), "{uri}");
        }
    }
}
