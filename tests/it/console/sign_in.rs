//! Sessions: their start, their cookies, and their end.

use authority_process::clock::Clock;
use authority_store::{Db, Error, RunQueryDsl, Scope};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{
    APPROVER, Console,
    browser::{Browser, Source, person},
};
use crate::support::{Wishes, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_leads_through_a_sign_in_to_its_page() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.browser();
    let path = format!("/console/approvals/{id}");
    let page = browser.sign_in(APPROVER.0, APPROVER.1, &path).await;
    assert_eq!((page.status, &page.path), (200, &path));
    page.shows("invoice-bot");
    let set = &browser.set["session"];
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
    assert_eq!(browser.cookies["session"].len(), 43);
    assert!(!browser.cookies.keys().any(|name| name.starts_with("sign-in")));
    assert!(!page.text.contains("eyJ"), "a token in a page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_another_sign_in_or_provider_begins_no_session() {
    let console = Console::start().await;
    let mut browser = console.browser();
    let choice = browser.get("/console").await;
    let form = person(&choice, APPROVER.0, APPROVER.1);
    let origin = browser.base.clone();
    let own = || Source { origin: Some(&origin), site: Some("same-origin") };
    let given = browser.clone().post_from("/dev-idp/authorize", &form, own()).await;
    let callback = given.headers["location"].to_str().unwrap().replace(&origin, "");
    let with = |name: &str, value: &str| {
        let parts = callback.split('&').map(|part| match part.split_once('=') {
            Some((known, _)) if known == name => format!("{name}={value}"),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("&")
    };
    for (path, status) in [
        (with("state", "other"), 400),
        (with("iss", "https%3A%2F%2Fevil.example"), 400),
        (callback.replace("&iss=", "&x="), 400),
        (callback.replace("code=", "code=0"), 400),
        (callback.replace("code=", "code=%C3%A9"), 400),
        (callback.replace("code=", &format!("code={}", "x".repeat(10_000))), 400),
    ] {
        let mut tried = browser.clone();
        let page = tried.get(&path).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(!tried.cookies.contains_key("session"), "{path}");
    }
    // Another browser did not start this sign-in.
    assert_eq!(console.browser().get(&callback).await.status, 400);
    let mut first = browser.clone();
    assert_eq!(first.get(&callback).await.path, "/console");
    // A code can be used once.
    let mut second = browser.clone();
    assert_eq!(second.get(&callback).await.status, 400);
    assert!(!second.cookies.contains_key("session"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_tabs_sign_in_at_once_and_a_page_can_be_loaded_again() {
    let console = Console::start().await;
    for order in [[0, 1, 2], [2, 0, 1]] {
        let mut browser = console.browser();
        let pages = ["/console/log", "/console/approvals?state=approved", "/console/records"];
        let mut tabs = Vec::new();
        for to in pages {
            let query = form_urlencoded::byte_serialize(to.as_bytes()).collect::<String>();
            tabs.push(browser.get(&format!("/console/sign-in?to={query}")).await);
        }
        let origin = browser.base.clone();
        let own = || Source { origin: Some(&origin), site: Some("same-origin") };
        for tab in order {
            let form = person(&tabs[tab], APPROVER.0, APPROVER.1);
            let given = browser.post_from("/dev-idp/authorize", &form, own()).await;
            let callback = given.headers["location"].to_str().unwrap().replace(&origin, "");
            // A stranger's answer does not end a sign-in.
            browser.clone().get("/console/sign-in/callback?state=x").await;
            let page = browser.get(&callback).await;
            assert_eq!((page.status, page.path.as_str()), (200, pages[tab]), "{}", page.text);
            // The user goes back, or reloads that address.
            let again = browser.get(&callback).await;
            assert_eq!((again.status, again.path.as_str()), (200, "/console"));
        }
        assert!(!browser.cookies.keys().any(|name| name.starts_with("sign-in")));
    }
    // A browser may have five sign-ins at a time. A further one removes the oldest.
    let mut browser = console.browser();
    for _ in 0..8 {
        browser.get("/console/sign-in?to=/console").await;
    }
    assert_eq!(browser.cookies.keys().filter(|name| name.starts_with("sign-in")).count(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_new_at_each_sign_in_and_gone_after_sign_out() {
    let console = Console::start().await;
    let mut browser = console.browser();
    // A cookie that another party chose is not used.
    browser.cookies.insert("session".to_owned(), "A".repeat(43));
    browser.sign_in(APPROVER.0, APPROVER.1, "/console").await;
    let first = browser.clone();
    assert_ne!(first.cookies["session"], "A".repeat(43));
    let choice = browser.get("/console/sign-in?to=/console").await;
    let form = person(&choice, "auditor", "auditor@acme.example");
    browser.post("/dev-idp/authorize", &form).await.shows("auditor@acme.example");
    assert_ne!(browser.cookies["session"], first.cookies["session"]);
    // The earlier session has ended.
    first.clone().get("/console").await.shows("development identity provider");

    let page = browser.get("/console/approvals").await;
    let form = page.form("/console/sign-out");
    let replayed = browser.clone();
    browser.post("/console/sign-out", &form).await.shows("You are signed out");
    assert!(!browser.cookies.contains_key("session"));
    replayed.clone().get("/console").await.shows("development identity provider");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_unused_and_after_eight_hours() {
    let clock = Clock::fixed(Clock::default().now());
    let time = clock.clone();
    let app = crate::support::TestApp::wished(Wishes { clock, ..Wishes::default() }).await;
    app.demo().await;
    let signed_in = async || {
        let mut browser = Browser::new(app.base_url());
        browser.sign_in(APPROVER.0, APPROVER.1, "/console").await.shows("Approvals");
        browser
    };
    let is_in =
        async |browser: &mut Browser| browser.get_one("/console/approvals").await.status == 200;
    let mut unused = signed_in().await;
    time.advance(TimeDelta::minutes(29));
    assert!(is_in(&mut unused).await);
    time.advance(TimeDelta::minutes(31));
    assert!(!is_in(&mut unused).await);
    let mut used = signed_in().await;
    for _ in 0..19 {
        time.advance(TimeDelta::minutes(25));
        assert!(is_in(&mut used).await);
    }
    time.advance(TimeDelta::minutes(10));
    assert!(!is_in(&mut used).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_ends_sessions() {
    let console = Console::start().await;
    let mut browser = console.signed_in(APPROVER).await;
    let other = console.signed_in(("legal", "legal@acme.example")).await;
    let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let person = format!("dev|{}", APPROVER.1);
    let of = |changes: Value| {
        let mut claims =
            json!({"aud": "authority-console", "sub": person, "jti": "1", "events": events});
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        console.app.token(&claims)
    };
    let mut provider = console.browser();
    for (token, status) in [
        (of(json!({"events": {}})), 400),
        (of(only("nonce", "n")), 400),
        (of(only("aud", "authority")), 400),
        (of(json!({"iat": 1, "exp": 2})), 400),
        ("none".to_owned(), 400),
    ] {
        let form = [("logout_token".to_owned(), token)];
        let from = Source { origin: None, site: None };
        let page = provider.post_from("/console/back-channel-logout", &form, from).await;
        assert_eq!(page.status, status, "{}", page.text);
        assert_eq!(browser.get_one("/console/approvals").await.status, 200);
    }
    let form = [("logout_token".to_owned(), of(nothing()))];
    let from = Source { origin: None, site: None };
    let page = provider.post_from("/console/back-channel-logout", &form, from).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(browser.get_one("/console/approvals").await.status, 303);
    assert_eq!(other.clone().get_one("/console/approvals").await.status, 200);
}

#[derive(diesel::QueryableByName)]
struct Row {
    #[diesel(sql_type = diesel::sql_types::Text)]
    row: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_opens_no_session_and_is_no_tenants_to_read() {
    let console = Console::start().await;
    let browser = console.signed_in(APPROVER).await;
    let rows = async |scope: Scope| {
        let read = console.app.app.store.read_tx(&scope, async |db: &mut Db| {
            let query = diesel::sql_query("SELECT s::text AS row FROM console_sessions s");
            Ok::<Vec<Row>, Error>(query.load(db).await?)
        });
        read.await
    };
    let stored = rows(Scope::service()).await.unwrap();
    assert_eq!(stored.len(), 1);
    let text = &stored[0].row;
    assert!(text.contains(APPROVER.1) && !text.contains(&browser.cookies["session"]), "{text}");
    assert!(!text.contains("eyJ") && !text.contains(&hex::encode("eyJ")), "{text}");
    let tenant = authority_ids::TenantId::parse("svc:tenant:acme").unwrap();
    let scope = Scope { tenant: Some(tenant), ..Scope::service() };
    let refused = rows(scope).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("permission denied"), "{refused}");
}
