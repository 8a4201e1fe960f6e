//! The future of a request: if it is not decided, if its cause has changed, and if this user may
//! not decide it.

use serde_json::{Value, json};

use super::{APPROVER, Console};
use crate::support::{Answered, Members, asking, only};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const AUDITOR: (&str, &str) = ("auditor", "auditor@acme.example");
const OWNING: (&str, &str) = ("approver", "owner@acme.example");
const BOT: &str = "/api/v1/principals/svc:agent:acme:invoice-bot";

impl Console {
    async fn change(&self, path: &str, body: Value) {
        self.app.owner().patch(path, body).await.assert_status(200);
    }

    /// The path of the policy that holds large payments.
    async fn threshold(&self) -> String {
        let (_, found) = self.app.owner().list_policies("tenant_id=svc:tenant:acme").await;
        let policies = found["policies"].as_array().unwrap();
        let named = policies.iter().find(|policy| policy["name"] == "Payment threshold").unwrap();
        format!("/api/v1/policies/{}", named["id"].as_str().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_longer_holds_a_request_is_said() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    let mut approver = console.signed_in(APPROVER).await;
    let page = approver.get(&path).await;
    page.shows("it expires without effect.");
    assert!(!page.text.contains("no longer needs"), "{}", page.text);
    // Activating the same text again is not a change.
    let policy = console.threshold().await;
    let again = json!({"version": 1, "reason": "Confirmed."});
    let (status, _) = console.app.owner().post(&format!("{policy}/activate"), again).await;
    assert_eq!(status, 200);
    let page = approver.get(&path).await;
    assert!(!page.text.contains("no longer needs"), "{}", page.text);
    console.change(&policy, only("state", "retired")).await;
    // Every user sees the change, with or without the permission to simulate decisions.
    let page = approver.get(&path).await;
    page.shows("This no longer needs an approval.");
    page.shows("The policy “Payment threshold” was retired.");
    let page = console.signed_in(ADMIN).await.get(&path).await;
    page.shows("This no longer needs an approval.");
    // The API permits the approval, and the page has the button.
    page.shows("data-key=\"a\"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_to_wait_for_a_revoked_agent() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    let mut browser = console.signed_in(APPROVER).await;
    for (state, advice) in [
        ("suspended", "invoice-bot is suspended. Wait until it is active again, or decline it."),
        ("revoked", "invoice-bot is revoked, and that is final: waiting does not help."),
    ] {
        console.change(BOT, only("state", state)).await;
        browser.get(&path).await.shows(advice);
        browser.get(&format!("{path}/approve")).await.shows(advice);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_decide_has_no_form_and_no_box() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    for (person, rule) in [(OWNING, "you own invoice-bot"), (AUDITOR, "your role reads requests")] {
        let mut browser = console.signed_in(person).await;
        browser.get(&path).await.shows(rule);
        for verb in ["approve", "decline"] {
            let page = browser.get(&format!("{path}/{verb}")).await;
            assert_eq!(page.status, 403, "{}", page.text);
            page.shows("Somebody else must decide this");
            page.shows(rule);
            assert!(!page.text.contains("<form class=\"fields\""), "{}", page.text);
        }
        let page = browser.get("/console/approvals").await;
        assert!(!page.text.contains("type=\"checkbox\""), "{}", page.text);
        let mark = "Not yours<span class=\"hidden\"> to decide: you own invoice-bot";
        let is_marked = page.text.contains(mark);
        assert_eq!(is_marked, person == OWNING, "{}", page.text);
    }
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&path).await;
    let page = browser.get("/console/approvals").await;
    page.shows("type=\"checkbox\"");
    assert!(!page.text.contains("Not yours"), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_says_who_approved_it_and_what_was_exceeded() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let approver = console.app.person("svc:tenant:acme", APPROVER.0, APPROVER.1);
    assert_eq!(approver.approve_approval(&id).await.0, 200);
    let question = asking(25_000.0, "DE").with("approval_id", &id);
    let (_, allowed) = console.agent.evaluate(question).await;
    let path = format!("/console/decisions/{}", allowed["decision_id"].as_str().unwrap());
    let mut browser = console.signed_in(ADMIN).await;
    let page = browser.get(&path).await;
    page.shows("Approved by <strong>approver@acme.example</strong>");
    page.shows("Asked by <span class=\"id\">API key “");
    assert!(!page.text.contains("<code>explain</code>"), "{}", page.text);
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("Why it was held");
    page.shows("The agent was allowed to do it, once.");
    let (_, denied) = console.agent.evaluate(asking(60_000.0, "DE")).await;
    let page = browser
        .get(&format!("/console/decisions/{}", denied["decision_id"].as_str().unwrap()))
        .await;
    page.shows("<p class=\"lead\">The amount is 60000.00; the limit is 50000.00 EUR.</p>");
    // This decision needed no approval. An administrator can read its amount.
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("<span class=\"verdict denied\">denied</span>, 60\u{202f}000.00\u{202f}EUR</a>");
}
