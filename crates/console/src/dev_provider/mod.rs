//! The development identity provider's pages. Anyone on this machine can sign in as any person.
//! Only development has these pages.

mod codes;

use std::sync::Arc;

use authority_api::identity::dev_provider::{DevProvider, Holder, ISSUER};
use authority_crypto::random;
use authority_ids::{TenantId, TenantRef};
use authority_process::clock::Clock;
use axum::{
    body::Bytes,
    extract::{RawQuery, State},
    routing::post,
};
use codes::{Codes, Grant};
use serde_json::json;

use crate::kit::{assets::VERSION, prelude::*};

/// The console's client.
pub(crate) const CLIENT_ID: &str = "authority-console";
/// The slug of the demonstration's tenant.
const DEMO: &str = "acme";

/// The roles that a person can have here.
const ROLES: [&str; 7] = ["approver", "legal", "admin", "auditor", "member", "viewer", "owner"];

/// A person of the demonstration.
struct Person {
    name: &'static str,
    email: &'static str,
    /// Empty for the installation's owner.
    role: &'static str,
    about: &'static str,
}

/// People who are also in the demonstration's records have the same addresses there.
#[rustfmt::skip] // a line for each person
const PEOPLE: [Person; 6] = [
    person(t::session::APPROVER, "approver@acme.example", "approver", t::session::ABOUT_APPROVER),
    person(t::session::LEGAL, "legal@acme.example", "legal", t::session::ABOUT_LEGAL),
    person(t::session::FINANCE, "owner@acme.example", "approver", t::session::ABOUT_FINANCE),
    person(t::session::ADMINISTRATOR, "admin@acme.example", "admin", t::session::ABOUT_ADMINISTRATOR),
    person(t::session::AUDITOR, "auditor@acme.example", "auditor", t::session::ABOUT_AUDITOR),
    person(t::session::OPERATOR, "operator@localhost", "", t::session::ABOUT_OPERATOR),
];

const fn person(
    name: &'static str,
    email: &'static str,
    role: &'static str,
    about: &'static str,
) -> Person {
    Person { name, email, role, about }
}

#[derive(Clone)]
pub(crate) struct DevPages(Arc<Inner>);

struct Inner {
    provider: DevProvider,
    codes: Codes,
    /// The only address that a code is sent to.
    redirect_uri: String,
}

impl DevPages {
    pub(crate) fn new(provider: DevProvider, clock: Clock, public_url: &str) -> Self {
        let redirect_uri = format!("{public_url}/console/sign-in/callback");
        Self(Arc::new(Inner { provider, codes: Codes::new(clock), redirect_uri }))
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/dev-idp/authorize", get(choose).post(chosen))
            .route("/dev-idp/token", post(token))
            .with_state(self)
    }

    /// Returns the reason why a request for a code is refused.
    fn problem(&self, asked: &Pairs) -> Option<&'static str> {
        [
            ("response_type", "code"),
            ("client_id", CLIENT_ID),
            ("redirect_uri", self.0.redirect_uri.as_str()),
            ("code_challenge_method", "S256"),
        ]
        .into_iter()
        .find_map(|(name, wanted)| (asked.text(name) != wanted).then_some(name))
        .or_else(|| {
            ["state", "nonce", "code_challenge"].into_iter().find(|n| asked.one(n).is_none())
        })
    }
}

#[derive(Template)]
#[template(path = "dev_idp.html")]
struct Choice {
    people: &'static [Person],
    tenant: TenantRef,
    /// The request for a code, unchanged.
    asked: String,
    version: &'static str,
}

async fn choose(State(pages): State<DevPages>, RawQuery(query): RawQuery) -> Response {
    let asked = query.unwrap_or_default();
    if let Some(member) = pages.problem(&Pairs::read(asked.as_bytes())) {
        return refused(member);
    }
    let tenant = TenantId::complete(DEMO);
    page(StatusCode::OK, &Choice { people: &PEOPLE, tenant, asked, version: &VERSION })
}

async fn chosen(State(pages): State<DevPages>, body: Bytes) -> Response {
    let form = Pairs::read(&body);
    let asked = Pairs::read(form.text("asked").as_bytes());
    if let Some(member) = pages.problem(&asked) {
        return refused(member);
    }
    let email = form.text("email").to_owned();
    let holder = match form.text("role") {
        "" | "owner" => Holder::Owner { email },
        role => Holder::Member {
            tenant_id: form.one("tenant_id").map_or_else(|| TenantId::complete(DEMO), Into::into),
            role: role.to_owned(),
            email,
        },
    };
    let grant = Grant {
        holder,
        nonce: asked.text("nonce").to_owned(),
        challenge: asked.text("code_challenge").to_owned(),
    };
    let Some(code) = pages.0.codes.give(grant) else { return refused("code") };
    let to = &pages.0.redirect_uri;
    let state = encoded(asked.text("state"));
    see(&format!("{to}?code={code}&state={state}&iss={}", encoded(ISSUER)))
}

fn refused(member: &str) -> Response {
    let text = t::session::wrong_request(member);
    Notice::new(StatusCode::BAD_REQUEST, t::session::NO_SIGN_IN, text).response()
}

/// `POST /dev-idp/token`: tokens for a code, once.
async fn token(State(pages): State<DevPages>, body: Bytes) -> Response {
    let form = Pairs::read(&body);
    let fits = form.text("grant_type") == "authorization_code"
        && form.text("client_id") == CLIENT_ID
        && form.text("redirect_uri") == pages.0.redirect_uri;
    let grant = pages.0.codes.take(form.text("code"), form.text("code_verifier"));
    let taken = grant.filter(|_| fits);
    match taken.and_then(|(grant, at)| tokens(&pages.0.provider, &grant, at)) {
        Some(tokens) => document(StatusCode::OK, &tokens),
        None => document(StatusCode::BAD_REQUEST, &json!({"error": "invalid_grant"})),
    }
}

fn document(status: StatusCode, document: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, document.to_string()).into_response()
}

fn tokens(provider: &DevProvider, grant: &Grant, auth_time: i64) -> Option<Value> {
    let lifetime = crate::session::LONGEST;
    let sid = hex::encode(random::<8>().ok()?);
    let access = json!({"auth_time": auth_time, "sid": sid});
    let id = json!({
        "aud": CLIENT_ID, "azp": CLIENT_ID, "nonce": grant.nonce, "auth_time": auth_time, "sid": sid,
    });
    Some(json!({
        "access_token": provider.issue_with(&grant.holder, lifetime, &access)?,
        "id_token": provider.issue_with(&grant.holder, lifetime, &id)?,
        "token_type": "Bearer",
        "expires_in": lifetime.num_seconds(),
    }))
}
