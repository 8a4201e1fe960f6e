//! Sign-in at one of several issuers.

use std::collections::BTreeMap;

use authority_config::{ConsoleClient, FurtherIssuer};
use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::json;

use super::{
    browser::{Browser, Page, Source, unescaped},
    provider::{SignedIn, wishes},
};
use crate::support::{TestApp, Wishes, only, provider::Provider};

const FIRST: &str = "https://first.invalid";
const PAGE: &str = "/console/approvals";

/// Returns settings in which people sign in at the further issuer `staff`. The first issuer does not
/// exist: only the issuer for sign-in is called.
fn at_staff(mut wishes: Wishes, are_one: bool) -> Wishes {
    let identity = &mut wishes.identity;
    let further = FurtherIssuer {
        issuer: identity.issuer.replace(FIRST.to_owned()).unwrap(),
        audience: identity.audience.clone().unwrap(),
        tenants: vec!["acme".to_owned()],
        are_one: are_one.then(|| FIRST.to_owned()),
        ..FurtherIssuer::default()
    };
    identity.tenants = vec!["*".to_owned()];
    identity.issuers = BTreeMap::from([("staff".to_owned(), further)]);
    wishes.console.issuer = Some("staff".to_owned());
    wishes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_sign_in_at_the_issuer_that_the_settings_name() {
    let service = SignedIn::wished(|wishes| {
        let mut wishes = at_staff(wishes, false);
        wishes.console.scopes = vec!["urn:example:org".to_owned()];
        wishes
    })
    .await;
    let mut browser = service.signed_in().await;
    let asked = &service.provider.asked("/authorize")[0];
    assert_eq!(asked["scope"], "openid profile email offline_access urn:example:org");
    let page = browser.get("/console/approvals").await;
    assert_eq!(page.status, 200, "{}", page.text);
    // The provider can end the session, by the `sub` that it knows.
    let token = service.provider.logout_token(&only("sub", "person-1"));
    let form = [("logout_token".to_owned(), token)];
    let from = Source { origin: None, site: None };
    let told = service.browser().post_from("/console/back-channel-logout", &form, from).await;
    assert_eq!(told.status, 200, "{}", told.text);
    assert_eq!(browser.get_one("/console/approvals").await.status, 303);
    // An issuer without the tenant signs no user in to it.
    let other = json!({"role": "approver", "tenant_id": "svc:tenant:other"});
    service.provider.behaves(|behaviour| behaviour.person["public_metadata"] = other);
    let page = service.browser().get("/console").await;
    assert_ne!(page.status, 200, "{}", page.text);
}

/// The new provider must not get the refresh tokens of the earlier one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_sign_in_issuer_ends() {
    let service = SignedIn::start().await;
    service.provider.behaves(|provider| provider.lasts = 600);
    let mut browser = service.signed_in().await;
    let staff = Provider::start(service.clock.clone()).await;
    let mut changed = at_staff(wishes(&staff, &service.clock), true);
    // The earlier issuer stays trusted, and its people are the same.
    let earlier = service.provider.issuer().to_owned();
    changed.identity.issuers.get_mut("staff").unwrap().are_one = Some(earlier.clone());
    changed.identity.issuer = Some(earlier);
    let node = service.app.beside(changed).await;
    service.clock.advance(TimeDelta::minutes(20));
    let mut other = Browser { base: node.base_url().to_owned(), ..browser.clone() };
    let page = other.get_one(PAGE).await;
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(staff.grants("refresh_token").is_empty());
    assert_eq!(browser.get_one(PAGE).await.status, 303);
    assert!(service.provider.grants("refresh_token").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_token_is_now_another_persons_ends() {
    let service = SignedIn::wished(|wishes| at_staff(wishes, false)).await;
    let mut browser = service.signed_in().await;
    assert_eq!(browser.get_one(PAGE).await.status, 200);
    let changed = at_staff(wishes(&service.provider, &service.clock), true);
    let node = service.app.beside(changed).await;
    let mut other = Browser { base: node.base_url().to_owned(), ..browser.clone() };
    let page = other.get_one(PAGE).await;
    assert_eq!(page.status, 303, "{}", page.text);
    assert_eq!(browser.get_one(PAGE).await.status, 303);
}

/// Starts a service at which people choose between two issuers. Returns the second one, `staff`.
async fn with_choice() -> (SignedIn, Provider) {
    let clock = Clock::fixed(Clock::default().now());
    let (provider, staff) =
        (Provider::start(clock.clone()).await, Provider::start(clock.clone()).await);
    let mut wishes = wishes(&provider, &clock);
    let (identity, console) = staff.settings();
    let further = FurtherIssuer {
        issuer: staff.issuer().to_owned(),
        audience: identity.audience.unwrap(),
        tenants: vec!["acme".to_owned()],
        ..FurtherIssuer::default()
    };
    let client = ConsoleClient {
        client_id: console.client_id.unwrap(),
        client_secret: console.client_secret,
        scopes: vec!["urn:example:staff".to_owned()],
    };
    wishes.identity.tenants = vec!["*".to_owned()];
    wishes.identity.issuers = BTreeMap::from([("staff".to_owned(), further)]);
    wishes.console.issuers = BTreeMap::from([("staff".to_owned(), client)]);
    let app = TestApp::wished(wishes).await;
    app.demo().await;
    (SignedIn { app, provider, clock }, staff)
}

/// Returns the link to a provider on the page with all providers.
#[track_caller]
fn link(page: &Page, provider: &Provider) -> String {
    let name = provider.issuer().trim_start_matches("http://");
    let before = page.text.split(&format!("\">{name}</a>")).next().unwrap();
    unescaped(before.rsplit("href=\"").next().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_choose_among_several_issuers() {
    let (service, staff) = with_choice().await;
    let mut browser = service.browser();
    let page = browser.get(PAGE).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("Choose the identity provider of your organization.");
    assert!(staff.asked("/authorize").is_empty());
    assert!(service.provider.asked("/authorize").is_empty());

    staff.behaves(|staff| staff.lasts = 600);
    let signed_in = browser.get(&link(&page, &staff)).await;
    assert_eq!((signed_in.status, signed_in.path.as_str()), (200, PAGE), "{}", signed_in.text);
    let asked = &staff.asked("/authorize")[0];
    assert_eq!(asked["scope"], "openid profile email offline_access urn:example:staff");
    let redirect = asked["redirect_uri"].as_str().unwrap();
    assert!(redirect.ends_with("/console/sign-in/callback/staff"), "{redirect}");
    // Only the chosen provider gets the session's refresh token.
    service.clock.advance(TimeDelta::minutes(20));
    assert_eq!(browser.get_one(PAGE).await.status, 200);
    assert_eq!(staff.grants("refresh_token").len(), 1);
    // To sign in again, the person is not asked for the provider.
    let again = browser.get_one("/console/sign-in?fresh=yes&to=/console").await;
    let to = again.headers["location"].to_str().unwrap();
    assert!(to.starts_with(staff.issuer()), "{to}");
    // The chosen provider can end the session, the other one can't.
    let person = json!({"sub": "person-1"});
    for (provider, status) in [(&service.provider, 200), (&staff, 303)] {
        let form = [("logout_token".to_owned(), provider.logout_token(&person))];
        let from = Source { origin: None, site: None };
        let told = service.browser().post_from("/console/back-channel-logout", &form, from).await;
        assert_eq!(told.status, 200, "{}", told.text);
        assert_eq!(browser.get_one(PAGE).await.status, status);
    }
    assert!(service.provider.asked("/authorize").is_empty());
    assert!(service.provider.asked("/token").is_empty());

    let mut other = service.browser();
    let page = other.get(PAGE).await;
    assert_eq!(other.get(&link(&page, &service.provider)).await.status, 200);
    let asked = &service.provider.asked("/authorize")[0];
    assert!(asked["redirect_uri"].as_str().unwrap().ends_with("/console/sign-in/callback"));
}

/// A malicious provider could lead a person to another provider, and would then get a code of that
/// provider (RFC 9700, 4.4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_of_another_issuer_is_refused() {
    let (service, staff) = with_choice().await;
    let issuers = [service.provider.issuer().to_owned(), staff.issuer().to_owned()];
    let [own, others] = ["callback", "callback/staff"];
    for (path, iss) in [
        (own, Some(&issuers[1])),
        (others, Some(&issuers[0])),
        // Some providers don't send their issuer.
        (others, None),
    ] {
        service.provider.behaves(|provider| {
            provider.metadata = json!({"authorization_response_iss_parameter_supported": false});
        });
        let mut browser = service.browser();
        let page = browser.get(PAGE).await;
        let begun = browser.get_one(&link(&page, &service.provider)).await;
        let to = begun.headers["location"].to_str().unwrap();
        let state = to.split("&state=").nth(1).unwrap().split('&').next().unwrap();
        let iss = iss.map(|iss| format!("&iss={iss}")).unwrap_or_default();
        let answer = format!("/console/sign-in/{path}?code=stolen&state={state}{iss}");
        let page = browser.get_one(&answer).await;
        assert_eq!(page.status, 400, "{path}{iss}: {}", page.text);
        page.shows("did not come from this service");
        assert!(!browser.cookies.contains_key("__Host-session"), "{path}{iss}");
    }
    assert!(service.provider.asked("/token").is_empty() && staff.asked("/token").is_empty());

    // Nor is an ID token that names another issuer.
    let name = json!({"iss": staff.issuer()});
    service.provider.behaves(|provider| (provider.metadata, provider.id) = (json!({}), name));
    let mut browser = service.browser();
    let page = browser.get(PAGE).await;
    let page = browser.get(&link(&page, &service.provider)).await;
    assert!(matches!(page.status, 400 | 502), "{} {}", page.status, page.text);
    assert!(!browser.cookies.contains_key("__Host-session"));
}
