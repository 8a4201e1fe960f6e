//! The choice of an identity provider, if people can sign in at several ones.

use axum::extract::FromRequestParts as _;
use http::request::Parts;

use super::provider::Provider;
use crate::kit::{assets::VERSION, prelude::*};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Choice {
    /// The address and the name of each provider.
    providers: Vec<(String, String)>,
    version: &'static str,
}

/// Returns the provider for a sign-in: the only one, the chosen one or, for another sign-in of the same person, the one
/// of their session.
pub(super) async fn chosen<'c>(
    console: &'c Console,
    query: &Pairs,
    parts: &mut Parts,
) -> Option<&'c Provider> {
    if let [only] = console.0.providers.as_slice() {
        return Some(only);
    }
    if let Some(issuer) = query.one("issuer") {
        return console.provider(issuer);
    }
    query.one("fresh")?;
    let view = View::from_request_parts(parts, console).await.ok()?;
    console.provider(&view.session.tokens.issuer)
}

/// The page with all providers. The chosen one gets the parameters of this address.
pub(super) fn shown(console: &Console, query: &Pairs, to: &str) -> Response {
    let flag = |name: &str| query.one(name).map(|_| format!("&{name}=yes")).unwrap_or_default();
    let flags = flag("fresh") + &flag("switch");
    let provider = |provider: &Provider| {
        let issuer = provider.issuer();
        let path = format!("/console/sign-in?to={}{flags}&issuer={}", encoded(to), encoded(issuer));
        let name = issuer.split_once("://").map_or(issuer, |(_, name)| name);
        (path, name.trim_end_matches('/').to_owned())
    };
    let providers = console.0.providers.iter().map(provider).collect();
    let choice = Choice { providers, version: &VERSION };
    page(StatusCode::OK, &choice)
}
