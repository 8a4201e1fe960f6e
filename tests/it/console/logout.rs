//! The end of a session at the provider: a person signs out here and then at the provider, or only
//! at the provider.

use chrono::TimeDelta;
use serde_json::json;

use super::{
    browser::{Browser, Page, Source},
    provider::SignedIn,
};
use crate::support::{nothing, only};

const PAGE: &str = "/console/approvals";

async fn sign_out(browser: &mut Browser) -> Page {
    let form = browser.get(PAGE).await.form("/console/sign-out");
    browser.post("/console/sign-out", &form).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_leads_to_the_provider_without_a_token() {
    let mut services = vec![SignedIn::start().await];
    // The ID token is the credential here, and would appear in the provider's log.
    services.push(
        SignedIn::wished(|mut wishes| {
            wishes.identity.audience = wishes.console.client_id.clone();
            wishes
        })
        .await,
    );
    for service in services {
        let end = format!("{}/logout?tenant=1", service.provider.issuer());
        service.provider.behaves(|p| p.metadata = only("end_session_endpoint", &end));
        let mut browser = service.signed_in().await;
        let page = sign_out(&mut browser).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.shows("You are signed out");
        let done = "https%3A%2F%2Fauthority.example.org%2Fconsole%2Fsign-out%2Fdone";
        let address = format!("{end}&amp;client_id=console&amp;post_logout_redirect_uri={done}");
        page.shows(&format!("href=\"{address}\""));
        page.shows(&format!("content=\"0;url={address}\""));
        assert!(!page.text.contains("eyJ") && !page.text.contains("id_token_hint"), "a token");
        assert!(!browser.cookies.contains_key("__Host-session"));
        let back = browser.get("/console/sign-out/done").await;
        assert_eq!(back.status, 200);
        back.shows("You are signed out");
        // A person who has signed in again does not get the page for signed-out users.
        let mut browser = service.signed_in().await;
        assert_eq!(browser.get("/console/sign-out/done").await.path, "/console");
    }
}

async fn told(service: &SignedIn, token: &str) -> Page {
    let form = [("logout_token".to_owned(), token.to_owned())];
    // The provider's call does not come from a browser.
    let from = Source { origin: None, site: None };
    service.browser().post_from("/console/back-channel-logout", &form, from).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_ends_a_session_by_its_signed_word_alone() {
    let service = SignedIn::start().await;
    let mut browser = service.signed_in().await;
    let provider = &service.provider;
    for claims in [
        json!({"sub": "person-1", "aud": "other"}),
        json!({"sub": "person-1", "events": null}),
        json!({"sub": "person-1", "events": {}}),
        // An ID token must not be accepted as a logout token.
        json!({"sub": "person-1", "nonce": "n"}),
        json!({"sub": "person-1", "exp": 1}),
        json!({"sub": "person-1", "iss": "https://evil.example"}),
        nothing(),
    ] {
        let page = told(&service, &provider.logout_token(&claims)).await;
        assert_eq!(page.status, 400, "{claims}: {}", page.text);
        assert_eq!(browser.get_one(PAGE).await.status, 200, "{claims}");
    }
    let token = provider.logout_token(&only("sub", "person-1"));
    let (head, _) = token.rsplit_once('.').unwrap();
    assert_eq!(told(&service, &format!("{head}.AAAA")).await.status, 400);
    // A token for another person, or for another session of this person.
    for claims in [only("sub", "person-2"), json!({"sub": "person-1", "sid": "session-2"})] {
        assert_eq!(told(&service, &provider.logout_token(&claims)).await.status, 200);
        assert_eq!(browser.get_one(PAGE).await.status, 200, "{claims}");
    }
    for claims in [only("sub", "person-1"), only("sid", "session-1")] {
        let mut browser = service.signed_in().await;
        let page = told(&service, &provider.logout_token(&claims)).await;
        assert_eq!((page.status, page.text.as_str()), (200, ""), "{claims}");
        assert_eq!(browser.get_one(PAGE).await.status, 303, "{claims}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logout_token_that_comes_again_ends_nothing_new() {
    let service = SignedIn::start().await;
    let mut before = service.signed_in().await;
    let token = service.provider.logout_token(&json!({"sub": "person-1", "jti": "once"}));
    assert_eq!(told(&service, &token).await.status, 200);
    assert_eq!(before.get_one(PAGE).await.status, 303);
    // Later than the permitted clock difference, and before the token expires.
    service.clock.advance(TimeDelta::seconds(60));
    let mut again = service.signed_in().await;
    // A provider that got no answer to its first call repeats it. The response is the same.
    assert_eq!(told(&service, &token).await.status, 200);
    assert_eq!(again.get_one(PAGE).await.status, 200);
    service.clock.advance(TimeDelta::seconds(120));
    assert_eq!(told(&service, &token).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logout_that_cannot_be_checked_now_is_asked_for_again() {
    let service = SignedIn::start().await;
    let mut browser = service.signed_in().await;
    let token =
        service.provider.logout_token(&json!({"sub": "person-1", "exp": 4_102_444_800_i64}));
    // The cached keys are too old then, and can't be fetched again.
    service.provider.behaves(|provider| provider.fails = Some(503));
    service.clock.advance(TimeDelta::days(30));
    assert_eq!(told(&service, &token).await.status, 503);
    service.provider.behaves(|provider| provider.fails = None);
    service.clock.advance(TimeDelta::minutes(10));
    assert_eq!(told(&service, &token).await.status, 200);
    assert_eq!(browser.get_one(PAGE).await.status, 303);
}

/// A provider writes `sid` into logout tokens although its ID tokens have none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_a_sid_ends_with_its_person() {
    let service = SignedIn::start().await;
    let mut with_sid = service.signed_in().await;
    service.provider.behaves(|provider| provider.id = json!({"sid": null}));
    let mut without = service.signed_in().await;
    let other_person = json!({"sub": "person-2", "sid": "session-2"});
    assert_eq!(told(&service, &service.provider.logout_token(&other_person)).await.status, 200);
    assert_eq!(without.get_one(PAGE).await.status, 200);
    let now = service.clock.now().timestamp();
    let end = f64::from(u32::try_from(now).unwrap()) + 60.5;
    let claims = json!({"sub": "person-1", "sid": "session-2", "iat": now.to_string(), "exp": end});
    assert_eq!(told(&service, &service.provider.logout_token(&claims)).await.status, 200);
    assert_eq!(without.get_one(PAGE).await.status, 303);
    assert_eq!(with_sid.get_one(PAGE).await.status, 200, "it has the sid of another session");
    let page = told(&service, "none").await;
    assert!(page.status == 400 && page.text.contains("error_description"), "{}", page.text);
}
