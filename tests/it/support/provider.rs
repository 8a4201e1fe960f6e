//! An identity provider of the tests: the authorization code flow with PKCE, the device flow, refresh tokens that are
//! taken once, and logout. Its person is signed in there already and agrees to everything.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_core::{clock::Clock, config, config::Secret, keys::Keys};
use authority_crypto::sha256;
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

/// The `aud` of its access tokens.
pub(crate) const AUDIENCE: &str = "authority";
/// The console's client.
pub(crate) const CLIENT_ID: &str = "console";
/// With characters that are encoded in a header and in a form.
const CLIENT_SECRET: &str = "hush: 100 % & +";

/// How it behaves; a test changes it at any time.
pub(crate) struct Behaviour {
    /// Its person's claims, in both tokens.
    pub(crate) person: Value,
    /// Claims of access tokens that differ.
    pub(crate) access: Value,
    /// Claims of ID tokens that differ.
    pub(crate) id: Value,
    /// Members of its description that differ.
    pub(crate) metadata: Value,
    /// Whether access tokens are JWTs, which the service can read.
    pub(crate) reads: bool,
    /// Whether it gives refresh tokens.
    pub(crate) refreshes: bool,
    /// How long access tokens last, in seconds.
    pub(crate) lasts: i64,
    /// How clients of a sign-in prove who they are: `basic` or `post`.
    pub(crate) secret_by: &'static str,
    /// The `iss` of its answers to a sign-in.
    pub(crate) iss: Option<String>,
    /// What every address answers instead.
    pub(crate) fails: Option<u16>,
    /// What the token endpoint answers instead.
    pub(crate) refuses: Option<(u16, Value)>,
    /// How long the token endpoint takes.
    pub(crate) delay: Duration,
}

/// A code or a refresh token, and whose it is.
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
    /// Refresh tokens that were taken: one that comes again ends them all.
    spent: Vec<String>,
    /// The form or query of each request.
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

/// It runs until the test's runtime ends.
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

    /// The forms or queries of the requests to an endpoint, such as `/token`.
    pub(crate) fn asked(&self, endpoint: &str) -> Vec<Value> {
        let given = self.0.given.lock();
        let asked = given.asked.iter().filter(|(known, _)| *known == endpoint);
        asked.map(|(_, form)| form.clone()).collect()
    }

    /// The forms of requests for this kind of grant.
    pub(crate) fn grants(&self, kind: &str) -> Vec<Value> {
        let forms = self.asked("/token").into_iter();
        forms.filter(|form| form["grant_type"] == kind).collect()
    }

    /// What a service's settings say of it.
    pub(crate) fn settings(&self) -> (config::Identity, config::ConsoleConfig) {
        let identity = config::Identity {
            issuer: Some(self.0.issuer.clone()),
            audience: Some(AUDIENCE.to_owned()),
            jwks_url: None,
            // For the demonstration's records, and the test's own calls.
            dev_provider: Some(true),
        };
        let console = config::ConsoleConfig {
            enabled: None,
            client_id: Some(CLIENT_ID.to_owned()),
            client_secret: Some(Secret::new(CLIENT_SECRET)),
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

    /// A code for its person, who is sent back at once.
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
        // A command line has no secret.
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
                // The person agrees when they are asked for the second time.
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
        // In the order in which all of it locks them.
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

    /// A logout token for the console's client, with these claims in place of the usual ones.
    pub(crate) fn logout_token(&self, claims: &Value) -> String {
        let now = self.0.clock.now().timestamp();
        let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
        let usual = json!({"iss": self.0.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 120,
            "jti": "logout-1", "events": events});
        self.signed("logout+jwt", &merged(usual, &[claims]))
    }

    /// Claims that are null are left out.
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
