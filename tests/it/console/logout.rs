//! The end of a session at the provider: a person signs out here and then there, or there alone.

use chrono::TimeDelta;
use serde_json::json;

use super::{
    browser::{Browser, Page, Source},
    provider::SignedIn,
};

const PAGE: &str = "/console/approvals";

async fn sign_out(browser: &mut Browser) -> Page {
    let form = browser.get(PAGE).await.form("/console/sign-out");
    browser.post("/console/sign-out", &form).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_leads_to_the_provider_without_a_token() {
    let mut services = vec![SignedIn::start().await];
    // The ID token is the credential: its provider would have it in its log.
    services.push(
        SignedIn::wished(|mut wishes| {
            wishes.identity.audience = wishes.console.client_id.clone();
            wishes
        })
        .await,
    );
    for service in services {
        let end = format!("{}/logout?tenant=1", service.provider.issuer());
        service.provider.behaves(|p| p.metadata = json!({"end_session_endpoint": end}));
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
        // Who has signed in again meanwhile is not told that they are out.
        let mut browser = service.signed_in().await;
        assert_eq!(browser.get("/console/sign-out/done").await.path, PAGE);
    }
}

async fn told(service: &SignedIn, token: &str) -> Page {
    let form = [("logout_token".to_owned(), token.to_owned())];
    // The provider is no browser.
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
        // An ID token of theirs must not pass for one.
        json!({"sub": "person-1", "nonce": "n"}),
        json!({"sub": "person-1", "exp": 1}),
        json!({"sub": "person-1", "iss": "https://evil.example"}),
        json!({}),
    ] {
        let page = told(&service, &provider.logout_token(&claims)).await;
        assert_eq!(page.status, 400, "{claims}: {}", page.text);
        assert_eq!(browser.get_one(PAGE).await.status, 200, "{claims}");
    }
    let token = provider.logout_token(&json!({"sub": "person-1"}));
    let (head, _) = token.rsplit_once('.').unwrap();
    assert_eq!(told(&service, &format!("{head}.AAAA")).await.status, 400);
    // Somebody else, or another session of theirs.
    for claims in [json!({"sub": "person-2"}), json!({"sub": "person-1", "sid": "session-2"})] {
        assert_eq!(told(&service, &provider.logout_token(&claims)).await.status, 200);
        assert_eq!(browser.get_one(PAGE).await.status, 200, "{claims}");
    }
    for claims in [json!({"sub": "person-1"}), json!({"sid": "session-1"})] {
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
    // Later than clocks may differ, and before the token ends.
    service.clock.advance(TimeDelta::seconds(60));
    let mut again = service.signed_in().await;
    // A provider whose first call had no answer sends it again, and is answered alike.
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
    // Its keys are too old by then, and cannot be read again.
    service.provider.behaves(|provider| provider.fails = Some(503));
    service.clock.advance(TimeDelta::days(30));
    assert_eq!(told(&service, &token).await.status, 503);
    service.provider.behaves(|provider| provider.fails = None);
    service.clock.advance(TimeDelta::minutes(10));
    assert_eq!(told(&service, &token).await.status, 200);
    assert_eq!(browser.get_one(PAGE).await.status, 303);
}
