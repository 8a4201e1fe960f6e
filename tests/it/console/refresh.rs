//! A session outlives its access token. Among the requests on all nodes, only one sends the refresh
//! token, once. Only an explicit refusal of the provider ends the session.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{
    browser::Browser,
    provider::{SignedIn, wishes},
};
use crate::support::{Line, Wishes, nothing, only, provider::Provider};

const PAGE: &str = "/console/approvals";

fn refreshes(provider: &Provider) -> usize {
    provider.grants("refresh_token").len()
}

/// Longer than the lifetime of an access token, and shorter than the lifetime of an unused session.
const LATER: TimeDelta = TimeDelta::minutes(20);

async fn signed_in() -> (SignedIn, Browser) {
    let service = SignedIn::start().await;
    service.provider.behaves(|provider| provider.lasts = 600);
    let browser = service.signed_in().await;
    (service, browser)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refresh_tokens_are_sent_once_and_followed_by_their_successors() {
    let (service, mut browser) = signed_in().await;
    for count in 1..=3 {
        service.clock.advance(LATER);
        assert_eq!(browser.get_one(PAGE).await.status, 200);
        // A token that is still valid is not refreshed.
        assert_eq!(browser.get_one(PAGE).await.status, 200);
        assert_eq!(refreshes(&service.provider), count);
    }
    let sent = service.provider.grants("refresh_token");
    let tokens: Vec<_> = sent.iter().map(|form| &form["refresh_token"]).collect();
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "{tokens:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_where_a_new_token_has_another_role() {
    let (service, mut browser) = signed_in().await;
    service.provider.behaves(|provider| {
        provider.person["public_metadata"]["role"] = "admin".into();
    });
    service.clock.advance(LATER);
    let page = browser.get_one(PAGE).await;
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(page.headers["location"].to_str().unwrap().starts_with("/console/sign-in"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_requests_on_two_nodes_one_refreshes() {
    let (service, browser) = signed_in().await;
    let other = service.app.beside(wishes(&service.provider, &service.clock)).await;
    service.provider.behaves(|provider| provider.delay = Duration::from_millis(700));
    service.clock.advance(LATER);
    let asked = (0..8).map(|at| {
        let base = if at % 2 == 0 { service.app.base_url() } else { other.base_url() };
        let mut browser = Browser { base: base.to_owned(), ..browser.clone() };
        async move { browser.get_one(PAGE).await.status }
    });
    assert_eq!(join_all(asked).await, [200; 8]);
    assert_eq!(refreshes(&service.provider), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_refresh_keeps_nobody_else_waiting() {
    let (service, browser) = signed_in().await;
    service.clock.advance(LATER);
    // This user signs in now and has a valid token.
    let mut other = service.signed_in().await;
    service.provider.behaves(|provider| provider.delay = Duration::from_secs(3));
    let mut slow = browser.clone();
    let slow = tokio::spawn(async move { slow.get_one(PAGE).await.status });
    sleep(Duration::from_millis(300)).await;
    let quick = timeout(Duration::from_secs(2), other.get_one(PAGE)).await.unwrap();
    assert_eq!((quick.status, slow.await.unwrap()), (200, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_left_does_not_lose_the_tokens() {
    let (service, mut browser) = signed_in().await;
    service.provider.behaves(|provider| provider.delay = Duration::from_secs(1));
    service.clock.advance(LATER);
    let left = timeout(Duration::from_millis(300), browser.clone().get_one(PAGE)).await;
    assert!(left.is_err(), "it was quicker than the provider");
    assert_eq!(browser.get_one(PAGE).await.status, 200);
    assert_eq!(refreshes(&service.provider), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_away_ends_no_session() {
    let (service, mut browser) = signed_in().await;
    service.clock.advance(LATER);
    for refusal in [
        (503, nothing()),
        (500, only("error", "server_error")),
        (429, nothing()),
        // The client's secret was replaced at the provider, but not yet in the service.
        (401, only("error", "invalid_client")),
        (400, only("error", "temporarily_unavailable")),
        (200, only("not", "tokens")),
    ] {
        let status = refusal.0;
        service.provider.behaves(|provider| provider.refuses = Some(refusal));
        let page = browser.get_one(PAGE).await;
        assert_eq!(page.status, 503, "{status}: {}", page.text);
        page.shows("It was not ended");
        assert!(browser.cookies.contains_key("__Host-session"), "{status}");
    }
    // A background request gets the same status and is not redirected to the sign-in.
    assert_eq!(browser.look(PAGE).await.status, 503);
    service.provider.behaves(|provider| provider.refuses = None);
    assert_eq!(browser.get_one(PAGE).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_takes_the_refresh_token_no_more_ends_the_session() {
    let (service, mut browser) = signed_in().await;
    let refusal = json!({"error": "invalid_grant", "error_description": "the session was ended"});
    service.provider.behaves(|provider| provider.refuses = Some((400, refusal)));
    // The current access token is used until it expires.
    service.clock.advance(TimeDelta::seconds(595));
    assert_eq!(browser.get_one(PAGE).await.status, 200);
    service.clock.advance(LATER);
    assert_eq!(browser.look(PAGE).await.status, 401);
    let page = browser.get_one(PAGE).await;
    assert_eq!(page.status, 303);
    assert!(page.headers["location"].to_str().unwrap().starts_with("/console/sign-in?"));
    // The session stays ended after the provider works again. Its refresh token is not tried again.
    service.provider.behaves(|provider| provider.refuses = None);
    let before = refreshes(&service.provider);
    assert_eq!(browser.get_one(PAGE).await.status, 303);
    assert_eq!(refreshes(&service.provider), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_changes_neither_the_person_nor_their_role() {
    let (service, mut browser) = signed_in().await;
    service.provider.behaves(|provider| provider.access = only("sub", "person-2"));
    service.clock.advance(LATER);
    assert_eq!(browser.get_one(PAGE).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_ends_no_session() {
    let (service, mut browser) = signed_in().await;
    let database = Arc::clone(&service.app.database);
    let line = Line::before(&database).await;
    let through =
        Wishes { address: Some(line.address()), ..wishes(&service.provider, &service.clock) };
    let node = service.app.beside(through).await;
    let mut away = Browser { base: node.base_url().to_owned(), ..browser.clone() };
    assert_eq!(away.get_one(PAGE).await.status, 200);
    service.clock.advance(LATER);
    line.hold();
    let page = timeout(Duration::from_secs(30), away.get_one(PAGE)).await.unwrap();
    assert_eq!(page.status, 503, "{}", page.text);
    page.shows("It was not ended");
    line.release();
    assert_eq!(browser.get_one(PAGE).await.status, 200);
}
