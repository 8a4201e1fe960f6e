//! Fresh authentication: a tenant can require a recent sign-in for approvals.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{APPROVER, Console, assert_waits, browser::person, provider::SignedIn};
use crate::support::{Answered, Members, Plain, TestApp, Wishes, asking, nothing, only};

const AGE: i64 = 300;

/// The demonstration with a tenant that requires a sign-in within the last five minutes for
/// approvals.
async fn strict(clock: &Clock) -> Console {
    let app = TestApp::wished(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
    let key = app.demo().await.api_key;
    let agent = app.client(&key);
    let body = only("approval_max_auth_age_seconds", AGE);
    let changed = app.owner().update_tenant("acme", body).await.assert_status(200);
    assert_eq!(changed["tenant"]["approval_max_auth_age_seconds"], json!(AGE));
    Console { app, agent }
}

impl Console {
    /// Approves with a token of the approver that has these claims in addition to the usual claims.
    async fn approve_with(&self, id: &str, claims: Value) -> (u16, Value) {
        let all = json!({
            "sub": "dev|approver@acme.example", "email": "approver@acme.example",
            "public_metadata": {"role": "approver", "tenant_id": "svc:tenant:acme"},
        })
        .and(&claims);
        let client = self.app.client(&self.app.token(&all));
        client.post(&format!("/api/v1/app/approvals/{id}/approve"), nothing()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_takes_an_approval_only_with_a_recent_time_of_authentication() {
    let clock = Clock::default();
    let console = strict(&clock).await;
    let id = console.held(25_000.0).await;
    let ago = |seconds: i64| clock.now().timestamp() - seconds;
    for (claims, says) in [
        (nothing(), "has no sign-in time"),
        (only("auth_time", Value::Null), "has no sign-in time"),
        (only("auth_time", "just now"), "has no sign-in time"),
        (only("auth_time", ago(AGE + 5).to_string()), "seconds ago"),
        (only("auth_time", ago(AGE + 5)), "seconds ago"),
        (only("auth_time", ago(-3600)), "in the future"),
    ] {
        let (status, refused) = console.approve_with(&id, claims.clone()).await;
        assert_eq!(
            (status, refused["error"].text()),
            (401, "insufficient_user_authentication"),
            "{claims}: {refused:#}"
        );
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("sign in again (`max_age=300`): this tenant accepts approvals only within 300 seconds"),
            "{message}"
        );
        assert!(message.contains(says), "{message}");
        assert_waits(&console.approval(&id).await);
    }
    // An API key has no authentication time and can't approve in any case.
    let path = format!("/api/v1/app/approvals/{id}/approve");
    console.agent.post(&path, nothing()).await.assert_status(403);
    // The rule also applies to the owner.
    let owner = json!({"sub": "dev|o@localhost", "public_metadata": {"role": "owner"}});
    let owner = console.app.client(&console.app.token(&owner));
    let (status, _) = owner.approve_approval(&id).await;
    assert_eq!(status, 401);
    assert_waits(&console.approval(&id).await);
    let (status, approved) = console.approve_with(&id, only("auth_time", ago(60))).await;
    assert_eq!((status, approved["approval"]["state"].text()), (200, "approved"), "{approved:#}");
    // A decline needs no recent sign-in.
    let other = console.held(26_000.0).await;
    let claims = json!({
        "sub": "dev|legal@acme.example", "email": "legal@acme.example",
        "public_metadata": {"role": "legal", "tenant_id": "svc:tenant:acme"},
    });
    let legal = console.app.client(&console.app.token(&claims));
    let (status, declined) = legal.decline_approval(&other, "no").await;
    assert_eq!((status, declined["approval"]["state"].text()), (200, "declined"), "{declined:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_leads_to_a_sign_in_and_back() {
    let clock = Clock::fixed(Clock::default().now());
    let console = strict(&clock).await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    let approve = format!("{path}/approve");
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&path).await.shows("Approve…");
    let form = browser.get(&approve).await.form(&approve);
    clock.advance(TimeDelta::seconds(AGE + 1));
    // A form that was opened in time is sent too late.
    let page = browser.post(&approve, &form).await;
    assert_eq!(page.status, 403, "{}", page.text);
    page.shows("No change was made");
    assert_waits(&console.approval(&id).await);
    let again = format!(
        "/console/sign-in?fresh=yes&amp;to={}",
        path.replace('/', "%2F").replace(':', "%3A")
    );
    page.shows(&again);
    let page = browser.get(&path).await;
    page.shows(&again);
    page.shows("you signed in 301 seconds ago");
    assert!(!page.text.contains("data-key=\"a\""), "{}", page.text);
    let start = browser.get_one(&again.replace("&amp;", "&")).await;
    let to = start.headers["location"].to_str().unwrap();
    assert!(to.contains("max_age=0") && to.contains("prompt=login"), "{to}");
    let choice = browser.get(&again.replace("&amp;", "&")).await;
    let page = browser.post("/dev-idp/authorize", &person(&choice, APPROVER.0, APPROVER.1)).await;
    assert_eq!(page.path, path);
    page.shows("Approve…");
    let form = browser.get(&approve).await.form(&approve);
    browser.post(&approve, &form).await.shows("You approved this");
}

/// If the provider's access tokens have no sign-in time, a new sign-in does not help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_sent_round_for_a_time_that_no_token_says() {
    let service = SignedIn::start().await;
    service.provider.behaves(|provider| provider.access = only("auth_time", Value::Null));
    let body = only("approval_max_auth_age_seconds", AGE);
    assert_eq!(service.app.owner_now().update_tenant("acme", body).await.0, 200);
    let agent =
        service.app.client(&service.app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    let held = agent.evaluate(asking(25_000.0, "DE")).await.1;
    let id = held["approval_id"].as_str().unwrap_or_else(|| panic!("{held:#}"));
    let path = format!("/console/approvals/{id}");
    let mut browser = service.signed_in().await;
    let page = browser.get(&path).await;
    page.shows("Signing in again would not help");
    page.shows("has no sign-in time");
    assert!(!page.text.contains("/console/sign-in?fresh"), "{}", page.text);
    page.shows("Decline…");
    // After an old sign-in, a new one is offered: its token may have the time.
    service.clock.advance(TimeDelta::minutes(6));
    browser.get(&path).await.shows("/console/sign-in?fresh=yes");
}
