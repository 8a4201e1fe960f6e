//! Sign-in at one of several issuers.

use std::collections::BTreeMap;

use authority_config::FurtherIssuer;
use chrono::TimeDelta;
use serde_json::json;

use super::{
    browser::{Browser, Source},
    provider::{SignedIn, wishes},
};
use crate::support::{Wishes, provider::Provider};

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
    let token = service.provider.logout_token(&json!({"sub": "person-1"}));
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
