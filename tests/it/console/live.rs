//! Background requests of a page's script do not extend the session and do not open a request.

use authority_process::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    APPROVER, Console, assert_waits,
    browser::{Browser, Page},
};
use crate::support::{Answered, TestApp, Wishes, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_keeps_no_session_alive() {
    let clock = Clock::fixed(Clock::default().now());
    let time = clock.clone();
    let app = TestApp::wished(Wishes { clock, ..Wishes::default() }).await;
    app.demo().await;
    let mut browser = Browser::new(app.base_url());
    browser.sign_in(APPROVER.0, APPROVER.1, "/console").await.shows("Approvals");
    let ends = async |browser: &mut Browser| {
        let page = browser.look("/console/session").await;
        assert_eq!(page.status, 200, "{}", page.text);
        DateTime::parse_from_rfc3339(&page.text).unwrap().with_timezone(&Utc)
    };
    let first = ends(&mut browser).await;
    for _ in 0..5 {
        time.advance(TimeDelta::minutes(5));
        assert_eq!(browser.look("/console/approvals").await.status, 200);
        assert_eq!(ends(&mut browser).await, first);
    }
    // Pages that a person opens extend the session, also in another tab. A background request then
    // returns the later end.
    let mut other = browser.clone();
    assert_eq!(other.get_one("/console/session").await.status, 200);
    assert_eq!(ends(&mut browser).await, first + TimeDelta::minutes(25));
    time.advance(TimeDelta::minutes(31));
    // The end of the session has its own status, and does not redirect to a sign-in.
    for path in ["/console/session", "/console/approvals"] {
        let page = browser.look(path).await;
        assert_eq!((page.status, page.headers.get("location")), (401, None), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_when_its_pages_say() {
    let clock = Clock::fixed(Clock::default().now());
    let time = clock.clone();
    let app = TestApp::wished(Wishes { clock, ..Wishes::default() }).await;
    app.demo().await;
    let mut browser = Browser::new(app.base_url());
    browser.sign_in(APPROVER.0, APPROVER.1, "/console").await.shows("Approvals");
    // Use is recorded once a minute. The page shows the actual end of the session.
    time.advance(TimeDelta::seconds(50));
    let page = browser.get_one("/console/session").await;
    let ends = DateTime::parse_from_rfc3339(&page.text).unwrap().with_timezone(&Utc);
    time.advance(ends - time.now() - TimeDelta::seconds(1));
    assert_eq!(browser.look("/console/session").await.status, 200);
    time.advance(TimeDelta::seconds(2));
    assert_eq!(browser.look("/console/session").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_opens_no_request() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let (request, approve) =
        (format!("/console/approvals/{id}"), format!("/console/approvals/{id}/approve"));
    assert_eq!(browser.look(&request).await.status, 200);
    // Prefetching and loading in a frame do not open the request either.
    for (name, value) in [("sec-purpose", "prefetch;prerender"), ("sec-fetch-dest", "iframe")] {
        assert_eq!(browser.get_with(&request, name, value).await.status, 200);
    }
    let page = browser.get(&approve).await;
    assert!(!page.text.contains("request_digest"), "a second step: {}", page.text);
    assert_waits(&console.approval(&id).await);
    assert_eq!(browser.get(&request).await.status, 200);
    browser.get(&approve).await.form(&approve);
}

/// The version of the request that a page shows, and whether the page stays as it is.
fn live(page: &Page) -> (String, bool) {
    let (_, after) = page.text.split_once("<div data-live=\"").unwrap();
    let (version, after) = after.split_once('"').unwrap();
    (version.to_owned(), after.starts_with(" data-final"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_shows_that_a_request_has_changed() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let shown = browser.get(&path).await;
    let (first, is_final) = live(&shown);
    assert!(!first.is_empty() && !is_final, "{}", shown.text);
    assert_eq!(live(&browser.look(&path).await), (first.clone(), false));
    let act = async |verb: &str, body| {
        console.app.owner().act_on_approval(&id, verb, body).await.assert_status(200);
    };
    act("approve", nothing()).await;
    let (approved, is_final) = live(&browser.look(&path).await);
    assert!(approved != first && !is_final);
    act("withdraw", only("reason", "wrong")).await;
    let (withdrawn, is_final) = live(&browser.look(&path).await);
    assert!(withdrawn != approved && is_final);
}
