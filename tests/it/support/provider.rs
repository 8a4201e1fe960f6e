//! An identity provider for tests, with the authorization code flow with PKCE, the device flow,
//! refresh tokens that work only once, and logout. Its user is already signed in and consents to
//! every request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use authority_config::{self as config, Secret};
use authority_crypto::sha256;
use authority_keys::Keys;
use authority_process::clock::Clock;
use axum::{
    Router,
    extract::RawQuery,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::sleep};

use super::wire::encoded;

/// The `aud` of the provider's access tokens.
pub(crate) const AUDIENCE: &str = "authority";
/// The console's client id.
pub(crate) const CLIENT_ID: &str = "console";
/// The client's secret. It contains characters that must be encoded in a header and in a form.
const CLIENT_SECRET: &str = "hush: 100 % & +";

/// How the provider behaves. A test can change this at any time.
pub(crate) struct Behaviour {
    /// The user's claims, which are in both tokens.
    pub(crate) person: Value,
    /// Claims that replace the user's in access tokens.
    pub(crate) access: Value,
    /// Claims that replace the user's in ID tokens.
    pub(crate) id: Value,
    /// Fields that replace the usual ones in the provider's metadata.
    pub(crate) metadata: Value,
    /// Whether access tokens are JWTs, which the service can read, or opaque.
    pub(crate) reads: bool,
    /// Whether the provider issues refresh tokens.
    pub(crate) refreshes: bool,
    /// The lifetime of access tokens, in seconds.
    pub(crate) lasts: i64,
    /// How clients must authenticate during a sign-in: `basic` or `post`.
    pub(crate) secret_by: &'static str,
    /// The `iss` of its sign-in responses.
    pub(crate) iss: Option<String>,
    /// If set, every endpoint answers with this status.
    pub(crate) fails: Option<u16>,
    /// If set, the token endpoint answers with this status and body.
    pub(crate) refuses: Option<(u16, Value)>,
    /// How long the token endpoint waits before it answers.
    pub(crate) delay: Duration,
}

/// The request for which a code or a refresh token was issued.
#[derive(Clone, Default)]
struct Grant {
    challenge: String,
    nonce: Option<String>,
    redirect_uri: String,
    client_id: String,
    auth_time: i64,
}

#[derive(Default)]
struct Given {
    codes: HashMap<String, Grant>,
    refresh: HashMap<String, Grant>,
    /// Refresh tokens that were used. Using such a token again invalidates all tokens.
    spent: Vec<String>,
    /// The endpoint of each request, with its form or query.
    asked: Vec<(&'static str, Value)>,
    count: u32,
}

struct Inner {
    issuer: String,
    keys: Keys,
    clock: Clock,
    behaviour: Mutex<Behaviour>,
    given: Mutex<Given>,
}

/// The provider, which runs until the test's runtime ends.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn form(text: &str) -> Value {
    form_urlencoded::parse(text.as_bytes()).collect::<HashMap<_, _>>().into_iter().collect()
}

fn text(form: &Value, name: &str) -> String {
    form[name].as_str().unwrap_or_default().to_owned()
}

fn merged(mut claims: Value, more: &[&Value]) -> Value {
    for more in more {
        claims.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    }
    claims
}

impl Provider {
    pub(crate) async fn start(clock: Clock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Behaviour {
            person: json!({"sub": "person-1", "email": "approver@acme.example",
                "public_metadata": {"role": "approver", "tenant_id": "svc:tenant:acme"}}),
            access: json!({}),
            id: json!({}),
            metadata: json!({}),
            reads: true,
            refreshes: true,
            lasts: 3600,
            secret_by: "basic",
            iss: Some(issuer.clone()),
            fails: None,
            refuses: None,
            delay: Duration::ZERO,
        };
        let provider = Self(Arc::new(Inner {
            issuer,
            keys: Keys::ephemeral(clock.clone()).unwrap(),
            clock,
            behaviour: Mutex::new(behaviour),
            given: Mutex::default(),
        }));
        tokio::spawn(axum::serve(listener, provider.clone().router()).into_future());
        provider
    }

    fn router(self) -> Router {
        let [described, keys, authorize, token, device, revoke] = [(); 6].map(|()| self.clone());
        Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(async move || described.or_fails(|p| answer(200, &p.metadata()))),
            )
            .route(
                "/.well-known/jwks.json",
                get(async move || {
                    keys.or_fails(|p| p.0.keys.token_jwks().to_string().into_response())
                }),
            )
            .route(
                "/authorize",
                get(async move |RawQuery(query): RawQuery| {
                    let asked = form(&query.unwrap_or_default());
                    authorize.or_fails(|p| p.authorize(&asked))
                }),
            )
            .route(
                "/token",
                post(async move |headers: HeaderMap, body: String| {
                    let delay = token.0.behaviour.lock().delay;
                    sleep(delay).await;
                    token.or_fails(|p| p.token(&headers, &form(&body)))
                }),
            )
            .route(
                "/revoke",
                post(async move |body: String| {
                    revoke.or_fails(|p| {
                        p.0.given.lock().asked.push(("/revoke", form(&body)));
                        answer(200, &json!({}))
                    })
                }),
            )
            .route("/device", post(async move |body: String| device.device(form(&body))))
    }

    fn or_fails(&self, answered: impl FnOnce(&Self) -> Response) -> Response {
        let fails = self.0.behaviour.lock().fails;
        fails.map_or_else(|| answered(self), |status| answer(status, &json!({})))
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.0.issuer
    }

    pub(crate) fn behaves(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.0.behaviour.lock());
    }

    /// Returns the forms or queries of all requests to an endpoint, such as `/token`.
    pub(crate) fn asked(&self, endpoint: &str) -> Vec<Value> {
        let given = self.0.given.lock();
        let asked = given.asked.iter().filter(|(known, _)| *known == endpoint);
        asked.map(|(_, form)| form.clone()).collect()
    }

    /// Returns the forms of all token requests with this grant type.
    pub(crate) fn grants(&self, kind: &str) -> Vec<Value> {
        let forms = self.asked("/token").into_iter();
        forms.filter(|form| form["grant_type"] == kind).collect()
    }

    /// Returns the settings of a service that uses this provider.
    pub(crate) fn settings(&self) -> (config::Identity, config::ConsoleConfig) {
        let identity = config::Identity {
            issuer: Some(self.0.issuer.clone()),
            audience: Some(AUDIENCE.to_owned()),
            // The demonstration's records and the test's own calls use the development provider.
            dev_provider: Some(true),
            ..config::Identity::default()
        };
        let console = config::ConsoleConfig {
            enabled: None,
            client_id: Some(CLIENT_ID.to_owned()),
            issuer: None,
            scopes: Vec::new(),
            client_secret: Some(Secret::new(CLIENT_SECRET)),
            issuers: BTreeMap::new(),
        };
        (identity, console)
    }

    fn metadata(&self) -> Value {
        let issuer = &self.0.issuer;
        let own = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "device_authorization_endpoint": format!("{issuer}/device"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "scopes_supported": ["openid", "email", "offline_access"],
            "authorization_response_iss_parameter_supported": true,
        });
        merged(own, &[&self.0.behaviour.lock().metadata])
    }

    /// Issues a code for the user and redirects the user's browser at once.
    fn authorize(&self, asked: &Value) -> Response {
        let mut given = self.0.given.lock();
        given.asked.push(("/authorize", asked.clone()));
        given.count += 1;
        let code = format!("code-{}", given.count);
        let grant = Grant {
            challenge: text(asked, "code_challenge"),
            nonce: Some(text(asked, "nonce")),
            redirect_uri: text(asked, "redirect_uri"),
            client_id: text(asked, "client_id"),
            auth_time: self.0.clock.now().timestamp(),
        };
        let mut to =
            format!("{}?code={code}&state={}", grant.redirect_uri, encoded(&text(asked, "state")));
        if let Some(issuer) = &self.0.behaviour.lock().iss {
            to = format!("{to}&iss={}", encoded(issuer));
        }
        given.codes.insert(code, grant);
        (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
    }

    fn device(&self, asked: Value) -> Response {
        self.0.given.lock().asked.push(("/device", asked));
        let page = format!("{}/activate", self.0.issuer);
        let asked = json!({"device_code": "device-1", "user_code": "WDJB-MJHT",
            "verification_uri": page, "expires_in": 600, "interval": 1});
        answer(200, &asked)
    }

    fn token(&self, headers: &HeaderMap, asked: &Value) -> Response {
        self.0.given.lock().asked.push(("/token", asked.clone()));
        if let Some((status, body)) = &self.0.behaviour.lock().refuses {
            return answer(*status, body);
        }
        match self.grant(headers, asked) {
            Ok(grant) => answer(200, &self.issued(grant)),
            Err(error) => answer(400, &json!({"error": error})),
        }
    }

    fn grant(&self, headers: &HeaderMap, asked: &Value) -> Result<Grant, &'static str> {
        let mut given = self.0.given.lock();
        let is_device = text(asked, "grant_type").ends_with("device_code");
        // The command line is a client without a secret.
        if asked["client_id"] != "cli" && !self.is_client(headers, asked) {
            return Err("invalid_client");
        }
        let none = Err("invalid_grant");
        match asked["grant_type"].as_str() {
            Some("authorization_code") => {
                let Some(grant) = given.codes.remove(&text(asked, "code")) else { return none };
                let verifier = sha256(text(asked, "code_verifier").as_bytes());
                let is_theirs = grant.challenge == URL_SAFE_NO_PAD.encode(verifier)
                    && grant.redirect_uri == text(asked, "redirect_uri");
                if is_theirs { Ok(grant) } else { none }
            }
            Some("refresh_token") => {
                let token = text(asked, "refresh_token");
                let Some(grant) = given.refresh.remove(&token) else {
                    if given.spent.contains(&token) {
                        given.refresh.clear();
                    }
                    return none;
                };
                given.spent.push(token);
                Ok(grant)
            }
            _ if is_device && asked["device_code"] == "device-1" => {
                let kind = &asked["grant_type"];
                let times = given.asked.iter().filter(|(_, form)| form["grant_type"] == *kind);
                // The user consents before the second poll.
                if times.count() < 2 {
                    return Err("authorization_pending");
                }
                Ok(Grant { client_id: text(asked, "client_id"), ..Grant::default() })
            }
            _ => Err("unsupported_grant_type"),
        }
    }

    fn is_client(&self, headers: &HeaderMap, asked: &Value) -> bool {
        let name =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        match self.0.behaviour.lock().secret_by {
            "basic" => {
                let text = format!("{}:{}", name(CLIENT_ID), name(CLIENT_SECRET));
                let value = format!("Basic {}", STANDARD.encode(text));
                headers.get("authorization").is_some_and(|given| *given == value)
                    && asked["client_secret"].is_null()
            }
            _ => {
                !headers.contains_key("authorization")
                    && asked["client_id"] == CLIENT_ID
                    && asked["client_secret"] == CLIENT_SECRET
            }
        }
    }

    fn issued(&self, mut grant: Grant) -> Value {
        // Every function takes these locks in the same order.
        let mut given = self.0.given.lock();
        let behaviour = self.0.behaviour.lock();
        given.count += 1;
        let (now, refresh) = (self.0.clock.now().timestamp(), format!("refresh-{}", given.count));
        let times = json!({"iss": self.0.issuer, "iat": now, "exp": now + behaviour.lasts,
            "jti": refresh, "auth_time": grant.auth_time, "sid": "session-1"});
        let access = merged(
            times.clone(),
            &[&behaviour.person, &json!({"aud": AUDIENCE}), &behaviour.access],
        );
        let about = json!({"aud": grant.client_id, "nonce": grant.nonce.take()});
        let id = merged(times, &[&behaviour.person, &about, &behaviour.id]);
        let access =
            if behaviour.reads { self.signed("at+jwt", &access) } else { format!("o-{refresh}") };
        let lasts = behaviour.lasts;
        given.refresh.insert(refresh.clone(), grant);
        let refresh = behaviour.refreshes.then_some(refresh);
        json!({"access_token": access, "id_token": self.signed("JWT", &id), "token_type": "Bearer",
            "expires_in": lasts.max(0), "refresh_token": refresh})
    }

    /// Returns a logout token for the console's client, with some claims replaced.
    pub(crate) fn logout_token(&self, claims: &Value) -> String {
        let now = self.0.clock.now().timestamp();
        let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
        let usual = json!({"iss": self.0.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 120,
            "jti": "logout-1", "events": events});
        self.signed("logout+jwt", &merged(usual, &[claims]))
    }

    /// Signs the claims, without the null values.
    fn signed(&self, typ: &str, claims: &Value) -> String {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let signer = self.0.keys.token_signer().unwrap();
        let header = json!({"alg": "RS256", "typ": typ, "kid": signer.kid()});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(&claims));
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signer.sign(text.as_bytes()).unwrap()))
    }
}
