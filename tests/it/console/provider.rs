//! Sign-in at an identity provider, as in production: the requests to it, and the answers that are
//! accepted or refused.

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::browser::{Browser, Page};
use crate::support::{Plain, TestApp, Wishes, nothing, only, provider::Provider};

/// The https address at which browsers reach the service.
const PUBLIC: &str = "https://authority.example.org";

/// A service with an identity provider for its users.
pub(super) struct SignedIn {
    pub(super) app: TestApp,
    pub(super) provider: Provider,
    pub(super) clock: Clock,
}

impl SignedIn {
    /// Starts the service and the provider with a clock that the test controls.
    pub(super) async fn start() -> Self {
        Self::wished(|wishes| wishes).await
    }

    pub(super) async fn wished(change: impl FnOnce(Wishes) -> Wishes) -> Self {
        let clock = Clock::fixed(Clock::default().now());
        let provider = Provider::start(clock.clone()).await;
        let app = TestApp::wished(change(wishes(&provider, &clock))).await;
        app.demo().await;
        Self { app, provider, clock }
    }

    pub(super) fn browser(&self) -> Browser {
        Browser { origin: PUBLIC.to_owned(), ..Browser::new(self.app.base_url()) }
    }

    /// A browser with a signed-in user.
    pub(super) async fn signed_in(&self) -> Browser {
        let mut browser = self.browser();
        let page = browser.get("/console").await;
        assert_eq!((page.status, page.path.as_str()), (200, "/console"), "{}", page.text);
        browser
    }
}

/// The settings of a node for this provider.
pub(super) fn wishes(provider: &Provider, clock: &Clock) -> Wishes {
    let (identity, console) = provider.settings();
    Wishes {
        identity,
        console,
        clock: clock.clone(),
        public_url: Some(PUBLIC.to_owned()),
        ..Wishes::default()
    }
}

/// The query of the redirect address.
fn query(page: &Page) -> Value {
    let to = page.headers["location"].to_str().unwrap();
    let query = to.split_once('?').unwrap().1.as_bytes();
    form_urlencoded::parse(query).collect::<std::collections::HashMap<_, _>>().into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_signs_in_at_the_provider() {
    let service = SignedIn::start().await;
    let mut browser = service.browser();
    let page = browser.get("/console/approvals?state=approved").await;
    assert_eq!((page.status, page.path.as_str()), (200, "/console/approvals?state=approved"));
    page.shows("approver@acme.example");
    assert!(!page.text.contains("eyJ"), "a token in a page");
    // Over https the cookie is limited to this host and is hidden from scripts.
    let set = &browser.set["__Host-session"];
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{set}");
    let (_, begun) =
        browser.set.iter().find(|(name, _)| name.starts_with("__Host-sign-in-")).unwrap();
    assert!(begun.contains("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0"), "{begun}");
    let asked = &service.provider.asked("/authorize")[0];
    assert_eq!(asked["redirect_uri"], format!("{PUBLIC}/console/sign-in/callback"));
    assert_eq!(
        (
            asked["response_type"].text(),
            asked["code_challenge_method"].text(),
            asked["client_id"].text()
        ),
        ("code", "S256", "console")
    );
    assert_eq!(asked["scope"], "openid profile email offline_access");
    assert!(asked["prompt"].is_null() && asked["state"] != asked["nonce"], "{asked:#}");
    let taken = &service.provider.grants("authorization_code")[0];
    // The secret of PKCE is sent only with the code (RFC 7636: 43 to 128 characters).
    assert!((43..=128).contains(&taken["code_verifier"].as_str().unwrap().len()), "{taken:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_proves_itself_as_the_provider_says() {
    for (methods, secret_by) in [
        (json!(null), "basic"),
        (json!(["client_secret_post", "client_secret_basic"]), "basic"),
        (json!(["client_secret_post"]), "post"),
    ] {
        let service = SignedIn::start().await;
        service.provider.behaves(|provider| {
            if !methods.is_null() {
                provider.metadata = only("token_endpoint_auth_methods_supported", &methods);
            }
            provider.secret_by = secret_by;
        });
        service.signed_in().await;
        // A provider that expects the other method refuses, and the page names the setting to
        // check.
        let wrong = if secret_by == "basic" { "post" } else { "basic" };
        service.provider.behaves(|provider| provider.secret_by = wrong);
        let page = service.browser().get("/console").await;
        assert_eq!(page.status, 502, "{}", page.text);
        page.shows("invalid_client");
        page.shows("`console.client_secret`");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_of_this_provider_and_sign_in_begins_no_session() {
    let service = SignedIn::start().await;
    let issuer = service.provider.issuer().to_owned();
    let excluded = json!({"public_metadata": {"role": "approver", "tenant_id": "svc:tenant:none"}});
    for (metadata, iss, id, access, status, words) in [
        // Metadata of another issuer is not used.
        (
            only("issuer", "https://evil.example"),
            Some(&issuer),
            nothing(),
            nothing(),
            502,
            "names another issuer",
        ),
        // An answer with another issuer, or without an issuer although the metadata promises one
        // (RFC 9207).
        (
            nothing(),
            Some(&"https://evil.example".to_owned()),
            nothing(),
            nothing(),
            400,
            "did not come from this service",
        ),
        (nothing(), None, nothing(), nothing(), 400, "did not come from this service"),
        // An ID token for another sign-in, client or time.
        (
            nothing(),
            Some(&issuer),
            only("nonce", "other"),
            nothing(),
            400,
            "it belongs to another sign-in",
        ),
        (
            nothing(),
            Some(&issuer),
            only("nonce", Value::Null),
            nothing(),
            400,
            "it belongs to another sign-in",
        ),
        (nothing(), Some(&issuer), only("aud", "other"), nothing(), 502, "another audience"),
        (nothing(), Some(&issuer), only("azp", "other"), nothing(), 502, "another client"),
        (nothing(), Some(&issuer), only("exp", 1), nothing(), 502, "expired"),
        // Two tokens for two different people.
        (
            nothing(),
            Some(&issuer),
            only("sub", "person-2"),
            nothing(),
            502,
            "not of the same person",
        ),
        // A person without a tenant here: the ID token does not replace a refused access token.
        (nothing(), Some(&issuer), nothing(), excluded, 403, "belongs to no tenant"),
    ] {
        service.provider.behaves(|provider| {
            (provider.metadata, provider.iss) = (metadata.clone(), iss.cloned());
            (provider.id, provider.access) = (id.clone(), access.clone());
        });
        let mut browser = service.browser();
        let page = browser.get("/console").await;
        assert_eq!(page.status, status, "{words}: {}", page.text);
        page.shows(words);
        assert!(!browser.cookies.contains_key("__Host-session"), "{words}");
        assert!(!page.text.contains("eyJ"), "{words}: a token in a page");
    }
    // The issuer may be missing if the metadata does not promise it. The metadata is read again
    // after an hour.
    service.clock.advance(chrono::TimeDelta::hours(2));
    service.provider.behaves(|provider| {
        provider.metadata = only("authorization_response_iss_parameter_supported", false);
        (provider.iss, provider.access) = (None, nothing());
    });
    service.signed_in().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_worth_nothing_without_its_verifier() {
    let service = SignedIn::start().await;
    let (mut browser, mut other) = (service.browser(), service.browser());
    let callback = async |browser: &mut Browser| {
        let begun = browser.get_one("/console/sign-in").await;
        let sent = browser.get_one(begun.headers["location"].to_str().unwrap()).await;
        (query(&sent), sent.headers["location"].to_str().unwrap().replace(PUBLIC, ""))
    };
    let (own, path) = callback(&mut browser).await;
    let (theirs, _) = callback(&mut other).await;
    // The code of another sign-in, injected into the answer of this one.
    let injected = path.replace(own["code"].as_str().unwrap(), theirs["code"].as_str().unwrap());
    let page = browser.clone().get(&injected).await;
    assert_eq!(page.status, 400, "{}", page.text);
    page.shows("invalid_grant");
    assert_eq!(browser.get(&path).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_access_tokens_are_not_for_the_api_the_id_token_is_used() {
    let service = SignedIn::wished(|mut wishes| {
        wishes.identity.audience = wishes.console.client_id.clone();
        wishes
    })
    .await;
    for reads in [false, true] {
        // An access token that is not a JWT, or a JWT for another audience.
        service.provider.behaves(|provider| provider.reads = reads);
        let mut browser = service.signed_in().await;
        let before = service.provider.grants("refresh_token").len();
        service.clock.advance(chrono::TimeDelta::minutes(25));
        assert_eq!(browser.get("/console/approvals").await.status, 200);
        service.clock.advance(chrono::TimeDelta::minutes(25));
        assert_eq!(browser.get("/console/approvals").await.status, 200);
        service.clock.advance(chrono::TimeDelta::minutes(25));
        // The ID token has expired, and its successor is used.
        assert_eq!(browser.get("/console/approvals").await.status, 200);
        assert!(service.provider.grants("refresh_token").len() > before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_else_signs_in_by_a_choice_of_account() {
    let service = SignedIn::start().await;
    let mut browser = service.signed_in().await;
    browser.get("/console/approvals").await.shows("/console/sign-in?to=/console&amp;switch=yes");
    let (cookie, path) = (browser.cookies.clone(), "/console/sign-in?to=/console&switch=yes");
    for (supported, prompt) in [
        (json!(null), "login"),
        (json!(["none", "login", "select_account"]), "select_account"),
        (json!(["none", "login", "consent"]), "login"),
    ] {
        service.provider.behaves(|provider| {
            provider.metadata = nothing();
            if !supported.is_null() {
                provider.metadata["prompt_values_supported"] = supported;
            }
        });
        // The provider's metadata is read again after an hour.
        service.clock.advance(chrono::TimeDelta::hours(2));
        assert_eq!(query(&browser.get_one(path).await)["prompt"], prompt);
        // A sign-in that must be fresh always requires a login.
        let fresh = query(&browser.get_one(&format!("{path}&fresh=yes")).await);
        assert_eq!((fresh["prompt"].text(), fresh["max_age"].text()), ("login", "0"));
    }
    // The earlier session remains until there is a new session.
    assert_eq!(browser.cookies["__Host-session"], cookie["__Host-session"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_does_not_answer_is_said_and_can_be_tried_again() {
    let service = SignedIn::start().await;
    let mut browser = service.browser();
    service.provider.behaves(|provider| provider.fails = Some(503));
    let page = browser.get("/console/decisions").await;
    assert_eq!(page.status, 503, "{}", page.text);
    page.shows("Try again in a few seconds");
    page.shows("/console/sign-in?to=%2Fconsole%2Fdecisions");
    service.provider.behaves(|provider| provider.fails = Some(404));
    assert_eq!(browser.get("/console").await.status, 502);
    service.provider.behaves(|provider| provider.fails = None);
    // The provider fails only when codes are exchanged for tokens.
    service.provider.behaves(|provider| provider.refuses = Some((500, nothing())));
    let page = browser.get("/console").await;
    assert_eq!(page.status, 503, "{}", page.text);
    assert!(!browser.cookies.contains_key("__Host-session"));
    service.provider.behaves(|provider| provider.refuses = None);
    assert_eq!(browser.get("/console").await.status, 200);
    // Once the metadata has been read, a failure to read it again does not prevent sign-ins.
    service.clock.advance(chrono::TimeDelta::hours(2));
    let begun = service.browser().get_one("/console/sign-in").await;
    assert_eq!(begun.status, 303);
    service.clock.advance(chrono::TimeDelta::hours(2));
    service.provider.behaves(|provider| provider.fails = Some(503));
    assert_eq!(service.browser().get_one("/console/sign-in").await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_a_refresh_token_ends_with_its_token() {
    let service = SignedIn::start().await;
    // The API accepts a token for half a minute after its expiry, since clocks differ.
    for (refreshes, seconds) in [(false, 630), (true, 1800)] {
        service
            .provider
            .behaves(|provider| (provider.lasts, provider.refreshes) = (600, refreshes));
        let ends = service.signed_in().await.get("/console/session").await.text;
        let ends = chrono::DateTime::parse_from_rfc3339(&ends).unwrap();
        assert_eq!(ends.timestamp() - service.clock.now().timestamp(), seconds, "{refreshes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_come_in_can_sign_in_as_somebody_else() {
    let service = SignedIn::start().await;
    let excluded = json!({"public_metadata": {"role": "approver", "tenant_id": "svc:tenant:none"}});
    service.provider.behaves(|provider| provider.access = excluded);
    let page = service.browser().get("/console").await;
    assert_eq!(page.status, 403, "{}", page.text);
    page.shows("switch=yes\"");
    assert!(!page.text.contains("Sign in again"), "{}", page.text);
}

/// `NumericDate` may have a fraction (RFC 7519, section 2), and some providers write it as text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_with_fractions_or_as_text_are_read() {
    let service = SignedIn::start().await;
    let now = service.clock.now().timestamp();
    let with = |fraction: f64| f64::from(u32::try_from(now).unwrap()) + fraction;
    for times in [
        json!({"iat": with(0.25), "exp": with(60.25), "auth_time": with(0.25)}),
        json!({"iat": with(0.0), "exp": with(60.0)}),
        json!({"iat": now.to_string(), "exp": (now + 60).to_string(), "auth_time": now.to_string()}),
    ] {
        service.provider.behaves(|provider| {
            (provider.id, provider.access) = (times.clone(), times.clone());
        });
        service.signed_in().await;
    }
    // The claim that cannot be read is named.
    for (id, words) in [
        (only("exp", "soon"), "its `exp` is not a time"),
        (json!({"auth_time": [now]}), "its `auth_time` is not a time"),
    ] {
        service.provider.behaves(|provider| (provider.id, provider.access) = (id, nothing()));
        let page = service.browser().get("/console").await;
        assert_eq!(page.status, 502, "{}", page.text);
        page.shows(words);
    }
}
