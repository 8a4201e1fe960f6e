//! Decisions on held actions: an approval applies to the request exactly as the page showed it.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use diesel_async::{AsyncConnection, RunQueryDsl};
use serde_json::json;

use super::{APPROVER, Console, assert_waits};
use crate::support::{Answered, Members, Plain, TestApp, Wishes, asking, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_approved_in_three_steps() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let inbox = browser.get("/console/approvals").await;
    inbox.shows("25\u{202f}000.00\u{202f}EUR");
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("context.amount");
    page.shows("context.jurisdiction");
    page.shows("Head of finance");
    page.shows("Payment threshold");
    page.shows(
        "If it is approved now, it will be <strong class=\"verdict allowed\">allowed</strong>",
    );
    let then = "If you approve, invoice-bot can do this once, until ";
    page.shows(then);
    page.shows("It has to ask again.");
    let path = format!("/console/approvals/{id}/approve");
    let confirm = browser.get(&path).await;
    confirm.shows("25\u{202f}000.00\u{202f}EUR");
    confirm.shows(then);
    let form = confirm.form_with(&path, "text", "as agreed");
    let done = browser.post(&path, &form).await;
    assert_eq!(done.status, 200);
    done.shows("You approved this");
    let approval = console.approval(&id).await;
    assert_eq!(approval["state"], "approved", "{approval:#}");
    assert_eq!(approval["acts"][0]["name"], APPROVER.1);
    assert_eq!(approval["acts"][0]["comment"], "as agreed");
    // Submitting the form twice, as by a double click, returns the same answer.
    let again = browser.post(&path, &form).await;
    assert_eq!(again.status, 200);
    again.shows("You approved this");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decline_says_why() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&format!("/console/approvals/{id}")).await;
    let path = format!("/console/approvals/{id}/decline");
    let page = browser.get(&path).await;
    let refused = browser.post(&path, &page.form_with(&path, "text", "  ")).await;
    assert_eq!(refused.status, 400);
    refused.shows("Give a reason");
    assert_waits(&console.approval(&id).await);
    let done = browser.post(&path, &page.form_with(&path, "text", "twice invoiced")).await;
    done.shows("You declined this");
    let approval = console.approval(&id).await;
    assert_eq!(approval["state"], "declined");
    assert_eq!(approval["acts"][0]["comment"], "twice invoiced");
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("If it asks the same again before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_opened_is_not_answered() {
    let console = Console::start().await;
    let (id, other) = (console.held(25_000.0).await, console.held(26_000.0).await);
    let mut browser = console.signed_in(APPROVER).await;
    // The second step redirects to the request's page if the user has not opened that page.
    let path = format!("/console/approvals/{id}/approve");
    assert_eq!(browser.get(&path).await.path, format!("/console/approvals/{id}"));
    let form = browser.get(&path).await.form(&path);
    // Sends the valid digest for a request that was not opened, and a wrong digest for the opened
    // request.
    let there = format!("/console/approvals/{other}/approve");
    assert_eq!(browser.post(&there, &form).await.status, 409);
    let mut altered = form.clone();
    let digest = altered.iter_mut().find(|(name, _)| name == "request_digest").unwrap();
    digest.1 = format!("sha256:{}", "0".repeat(64));
    let page = browser.post(&path, &altered).await;
    assert_eq!(page.status, 409);
    page.shows("No change was made");
    let mut late = form.clone();
    late.iter_mut().find(|(name, _)| name == "expires").unwrap().1 =
        "2020-01-01T00:00:00Z".to_owned();
    assert_eq!(browser.post(&path, &late).await.status, 409);
    for id in [id, other] {
        assert_waits(&console.approval(&id).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tabs_the_later_says_what_has_changed() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&format!("/console/approvals/{id}")).await;
    let (approve, decline) =
        (format!("/console/approvals/{id}/approve"), format!("/console/approvals/{id}/decline"));
    let (first, second) = (browser.get(&approve).await, browser.get(&decline).await);
    browser.post(&approve, &first.form(&approve)).await.shows("You approved this");
    let page = browser.post(&decline, &second.form_with(&decline, "text", "no")).await;
    assert_eq!(page.status, 409);
    page.shows("No change was made");
    page.shows("Approved, not used yet");
    page.shows("<strong>You</strong> approved,");
    page.shows(
        "<td data-head=\"When you opened it\">pending</td><td data-head=\"Now\">approved</td>",
    );
    assert_eq!(console.approval(&id).await["state"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_decide_is_told_before_they_try() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    for (person, why) in [
        (("approver", "owner@acme.example"), "Somebody else must decide this: you own invoice-bot"),
        (("auditor", "auditor@acme.example"), "your role reads requests"),
    ] {
        let mut browser = console.signed_in(person).await;
        let page = browser.get(&path).await;
        page.shows("Somebody else must decide this");
        page.shows(why);
        assert!(!page.text.contains("data-key=\"a\""), "{person:?}");
    }
    // The API also refuses the form.
    let mut browser = console.signed_in(("approver", "owner@acme.example")).await;
    let page = browser.get(&path).await;
    let approve = format!("{path}/approve");
    assert_eq!(browser.get(&approve).await.status, 403, "there is no second step");
    let approval = console.approval(&id).await;
    let mut form = page.form("/console/sign-out");
    for (name, member) in [("request_digest", "request_digest"), ("expires", "expires_at")] {
        form.push((name.to_owned(), approval[member].as_str().unwrap().to_owned()));
    }
    // Pages show the expiry time without its fraction.
    let expires = form.last_mut().unwrap();
    expires.1 = format!("{}Z", &expires.1[..19]);
    let page = browser.post(&approve, &form).await;
    assert_eq!(page.status, 409, "{}", page.text);
    page.shows("you own the agent");
    assert_waits(&console.approval(&id).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_are_approved_only_if_each_was_opened() {
    let console = Console::start().await;
    let mut browser = console.signed_in(APPROVER).await;
    let mut ids = Vec::new();
    for amount in [11_000.0, 12_000.5, 13_000.0] {
        let mut question = asking(amount, "DE");
        question["context"]["invoice"] = json!(format!("INV-{amount}"));
        ids.push(console.held_with(question).await);
    }
    for id in &ids[..2] {
        browser.get(&format!("/console/approvals/{id}")).await;
    }
    let several = "/console/approvals/several";
    let all = format!("{several}?id={}", ids.join("&id="));
    let page = browser.get(&all).await;
    assert_eq!(page.status, 400);
    page.shows("was not opened in this session");
    let two = format!("{several}?id={}&id={}", ids[0], ids[1]);
    let page = browser.get(&two).await;
    page.shows("2 requests");
    // The list shows the differences between the requests in place of their common action.
    page.shows("<span class=\"dim\">Invoice</span> <bdi>INV-12000.5</bdi>");
    page.shows("23\u{202f}000.50\u{202f}EUR");
    let mut form = page.form(several);
    // The form has one more request than the page listed.
    let extra = console.approval(&ids[2]).await["request_digest"].as_str().unwrap().to_owned();
    form.push(("item".to_owned(), format!("{}={extra}", ids[2])));
    assert_eq!(browser.post(several, &form).await.status, 400);
    form.pop();
    let done = browser.post(several, &form).await;
    assert_eq!(done.status, 200, "{}", done.text);
    done.shows("Approved 2 of 2 requests");
    // Sent again after a lost answer, the form returns the same answer.
    let again = browser.post(several, &form).await;
    assert_eq!(again.status, 200, "{}", again.text);
    again.shows("Approved 2 of 2 requests");
    for (id, state) in ids.iter().zip(["approved", "approved", "pending"]) {
        assert_eq!(console.approval(id).await["state"], state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_withdrawn_while_it_is_unused() {
    let console = Console::start().await;
    let id = console.held_with(asking(25_000.0, "FR")).await;
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&format!("/console/approvals/{id}")).await;
    let approve = format!("/console/approvals/{id}/approve");
    let form = browser.get(&approve).await.form(&approve);
    browser.post(&approve, &form).await.shows("Withdraw");
    let withdraw = format!("/console/approvals/{id}/withdraw");
    let form = browser.get(&withdraw).await.form_with(&withdraw, "text", "too early");
    browser.post(&withdraw, &form).await.shows("You withdrew this approval");
    assert_eq!(console.approval(&id).await["state"], "void");
}

/// When the agent cites an approval, its approver must still be eligible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_counts_no_more_is_not_said_to_permit() {
    const USABLE: &str = "The agent may do it once";
    const USELESS: &str = "It is approved, but if the agent asks again now, it is held again.";
    let console = Console::start().await;
    let owner = console.app.owner();
    let (_, known) = owner.list_principals("tenant_id=svc:tenant:acme").await;
    let mut known = known["principals"].as_array().unwrap().iter();
    let own = known.find(|principal| principal["email"] == APPROVER.1).unwrap();
    let id = own["id"].as_str().unwrap();
    let held = console.held(25_000.0).await;
    let approver = console.app.person("svc:tenant:acme", APPROVER.0, APPROVER.1);
    let (status, approved) = approver.approve_approval(&held).await;
    assert_eq!((status, approved["approval"]["state"].text()), (200, "approved"), "{approved:#}");
    let path = format!("/console/approvals/{held}");
    let mut reader = console.signed_in(("auditor", "auditor@acme.example")).await;
    let page = reader.get(&path).await;
    page.shows(USABLE);
    assert!(!page.text.contains("It is approved, but"), "{}", page.text);

    let ended = only("state", "suspended");
    owner.update_principal(id, ended).await.assert_status(200);
    let page = reader.get(&path).await;
    page.shows(USELESS);
    assert!(!page.text.contains(USABLE), "{}", page.text);
    let question = asking(25_000.0, "DE").with("approval_id", &held);
    let (_, again) = console.agent.evaluate(question).await;
    assert_eq!(again["decision"], "require_approval", "{again:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_waits_no_longer() {
    let clock = Clock::fixed(Clock::default().now());
    let app = TestApp::wished(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
    let key = app.demo().await.api_key;
    let agent = app.client(&key);
    let console = Console { app, agent };
    let id = console.held(25_000.0).await;
    console.signed_in(APPROVER).await.get("/console/approvals").await.shows(&id);
    // The expiry can't be written while another transaction locks the row.
    let mut other = console.app.database.owner().await;
    other.begin_test_transaction().await.unwrap();
    let lock = format!("SELECT FROM approvals WHERE id = '{id}' FOR UPDATE");
    diesel::sql_query(lock).execute(&mut other).await.unwrap();
    clock.advance(TimeDelta::days(30));
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals").await;
    page.shows("No waiting requests");
    assert!(!page.text.contains(&id), "{}", page.text);
    browser.get(&format!("/console/approvals/{id}")).await.shows("Expired");
}
