//! The effect of an approval is shown before it is given, and differences between requests are
//! shown next to their amounts.

use serde_json::json;

use super::{APPROVER, Console, assert_waits};
use crate::support::{Answered, Members, TENANT, asking, new_policy, new_stop};

const OTHER: (&str, &str) = ("approver", "another@example.org");
const SEVERAL: &str = "/console/approvals/several";

impl Console {
    async fn stop_the_agent(&self) {
        let signal = new_stop("svc:agent:acme:invoice-bot", "it pays twice");
        self.app.owner().create_stop_signal(signal).await.assert_made("stop_signal");
    }

    pub(super) async fn need_two(&self) {
        let cedar = "@id(\"two\") @decision(\"require_approval\") @approvals(\"2\")\n\
                     forbid (principal, action, resource);";
        let policy = new_policy("internal", cedar).with("name", "Two");
        self.app.owner().create_policy(policy).await.assert_made("policy");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_be_denied_has_no_button_and_is_not_made_void() {
    let console = Console::start().await;
    let (id, other) = (console.held(25_000.0).await, console.held(26_000.0).await);
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    for id in [&id, &other] {
        let page = browser.get(&format!("/console/approvals/{id}")).await;
        assert!(!page.text.contains("would be denied now"), "{}", page.text);
    }
    let approve = format!("{path}/approve");
    let form = browser.get(&approve).await.form(&approve);
    let both = format!("{SEVERAL}?id={id}&id={other}");
    let several = browser.get(&both).await.form(SEVERAL);
    console.stop_the_agent().await;
    let page = browser.get(&path).await;
    page.shows("This would be denied now.</strong> A stop signal is on the subject");
    page.shows("An approval would only make the request void");
    assert!(!page.text.contains("data-key=\"a\""), "{}", page.text);
    page.shows("data-key=\"d\"");
    let page = browser.get(&approve).await;
    page.shows("This would be denied now.");
    assert!(!page.text.contains("Approve 25"), "{}", page.text);
    // A form that was opened earlier does not approve the request.
    let refused = browser.post(&approve, &form).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    refused.shows("This would be denied now.");
    browser.get(&both).await.shows("2 would be denied now");
    browser.post(SEVERAL, &several).await.shows("Approved 0 of 2 requests");
    for id in [&id, &other] {
        assert_waits(&console.approval(id).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_more_people_are_needed_is_said_before_and_after() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    let approve = format!("{path}/approve");
    console.need_two().await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get(&path).await;
    let several = format!("{SEVERAL}?id={id}");
    browser.get(&several).await.shows("1 of them still waits after your approval");
    page.shows("0 of 1 approval");
    let now = "Required now: 2 people. Required when it was asked: 1.";
    let by = "<strong>Two</strong>.</p>";
    page.shows(now);
    page.shows(by);
    let page = browser.get(&approve).await;
    page.shows(now);
    page.shows(by);
    browser.post(&approve, &page.form(&approve)).await.shows("You approved this");
    let page = browser.get(&path).await;
    page.shows("You have approved this. It waits for one more person.");
    assert!(!page.text.contains("Somebody else must decide"), "{}", page.text);
    // A person who has approved does not get a second step.
    assert_eq!(browser.get(&approve).await.path, path);
    browser.get("/console/approvals").await.shows("1 of 2 approvals, you have answered");
    let mut other = console.signed_in(OTHER).await;
    let page = other.get(&path).await;
    assert!(!page.text.contains("More approvals are needed"), "{}", page.text);
    let form = other.get(&approve).await.form(&approve);
    other.post(&approve, &form).await.shows("You approved this");
    assert_eq!(console.approval(&id).await["state"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_it_pays_stands_beside_the_amount() {
    let console = Console::start().await;
    let mut ids = Vec::new();
    for number in [417, 418] {
        let mut question = asking(12_000.0, "DE");
        question["context"]["note"] = json!("a long text ".repeat(20));
        question["context"]["payee"] = "Müller\u{202e} GmbH".into();
        question["context"]["invoice"] = json!(format!("RE-{number}"));
        ids.push(console.held_with(question).await);
    }
    let id = &ids[0];
    let mut browser = console.signed_in(APPROVER).await;
    let request = format!("/console/approvals/{id}");
    for path in [request.clone(), format!("{request}/approve")] {
        let page = browser.get(&path).await;
        page.shows("<th scope=\"row\">To</th><td dir=\"auto\">Müller⟨U+202E⟩ GmbH</td>");
        page.shows("<th scope=\"row\">Invoice</th><td dir=\"auto\">RE-417</td>");
    }
    let payee = "<span class=\"dim\">To</span> <bdi>Müller⟨U+202E⟩ GmbH</bdi>";
    let page = browser.get("/console/approvals").await;
    page.shows(payee);
    page.shows("<span class=\"dim\">Invoice</span> <bdi>RE-417</bdi>");
    // The table has every field of the context, short values first.
    let page = browser.get(&request).await;
    let at = |name: &str| page.text.find(&format!("<code>context.{name}</code>")).unwrap();
    let order = ["amount", "currency", "invoice", "note", "payee"].map(at);
    assert!(order[..3].iter().chain(&order[4..]).all(|short| *short < order[3]), "{order:?}");
    browser.get(&format!("/console/approvals/{}", ids[1])).await;
    let page = browser.get(&format!("{SEVERAL}?id={}&id={}", ids[0], ids[1])).await;
    page.shows("<bdi>RE-418</bdi>");
    page.shows(payee);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_the_rest_is_offered_where_one_was_decided() {
    let console = Console::start().await;
    let mut browser = console.signed_in(APPROVER).await;
    let mut ids = Vec::new();
    for amount in [11_000.0, 12_000.0, 13_000.0] {
        ids.push(console.held(amount).await);
        browser.get(&format!("/console/approvals/{}", ids[ids.len() - 1])).await;
    }
    let approver = console.app.person(TENANT, OTHER.0, OTHER.1);
    assert_eq!(approver.decline_approval(&ids[1], "no").await.0, 200);
    let page = browser.get(&format!("{SEVERAL}?id={}", ids.join("&id="))).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("1 of the 3 that you selected no longer waits.");
    page.shows("No request was approved.");
    page.shows("12\u{202f}000.00\u{202f}EUR</a>: Declined, by another@example.org");
    page.shows("Approve 2 requests, 24\u{202f}000.00\u{202f}EUR");
    browser.post(SEVERAL, &page.form(SEVERAL)).await.shows("Approved 2 of 2 requests");
    let page = browser.get(&format!("/console/approvals/{}", ids[1])).await;
    page.shows("<strong>another@example.org</strong> declined: no");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_stop_is_told_whom_to_ask() {
    let console = Console::start().await;
    let mut browser = console.signed_in(APPROVER).await;
    for path in ["/console/stop", "/console/stop/confirm?subject=svc:agent:acme:invoice-bot"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 403);
        page.shows("Ask an administrator of your tenant");
    }
}
