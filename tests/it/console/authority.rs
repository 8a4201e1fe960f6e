//! An agent's authority and the stops on it, the log, and webhooks.

use serde_json::json;

use super::Console;
use crate::support::{Answered, asking, new_stop};

const BOT: &str = "svc:agent:acme:invoice-bot";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_page_has_its_chain_and_what_stops_it() {
    let console = Console::start().await;
    let mut browser = console.browser();
    browser.sign_in("auditor", "auditor@acme.example", "/console/records").await;
    let page = browser.get(&format!("/console/agents/{BOT}")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("What invoice-bot may do");
    page.shows("Head of finance</a> lets");
    page.shows("payment.execute");
    page.shows("Max amount");
    assert!(!page.text.contains("Stopped now"));
    // An auditor can see stops but can't create them.
    assert!(!page.text.contains("/console/stop/confirm"));
    let mut admin = console.browser();
    admin.sign_in("admin", "admin@acme.example", "/console/records").await;
    let page = admin.get(&format!("/console/agents/{BOT}")).await;
    page.shows("/console/stop/confirm?subject=svc%3Aagent%3Aacme%3Ainvoice-bot");
    let stop = new_stop(BOT, "pays twice");
    let made = console.app.owner().create_stop_signal(stop).await.assert_status(201);
    let page = browser.get(&format!("/console/agents/{BOT}")).await;
    page.shows("Stopped now.");
    page.shows(&format!("/console/stop/{}", made["stop_signal"]["id"].as_str().unwrap()));
    page.shows("pays twice");
    let at = page.text.find("/console/delegations/").unwrap();
    let delegation = page.text[at..].split('"').next().unwrap().to_owned();
    let page = browser.get(&delegation).await;
    page.shows("Head of finance</a> lets");
    page.shows("Stopped now.");
    page.shows("Would end with it");
    let parent = delegation.trim_start_matches("/console/delegations/").replace("%3A", ":");
    let part = json!({"tenant_id": "svc:tenant:acme", "parent_id": parent, "max_amount": "100",
        "delegate_id": "svc:agent:acme:support-bot", "actions": ["payment.execute"],
        "purposes": ["invoice-settlement"], "jurisdictions": ["DE"], "currency": "EUR"});
    console.app.owner().create_delegation(part).await.assert_status(201);
    let page = browser.get("/console/agents/svc:agent:acme:support-bot").await;
    page.shows("Narrowed to:");
    let narrowed = page.text.split("Narrowed to:").nth(1).unwrap();
    let narrowed = narrowed.split("</li>").next().unwrap();
    // Limits that equal the limits of the parent are not repeated.
    assert!(narrowed.contains("Max amount") && !narrowed.contains("Purposes"), "{narrowed}");
    page.shows("pays twice");
    assert!(!page.text.contains("refund.*"));
    // A quarantine for everyone applies to each agent.
    let part = json!({"tenant_id": "svc:tenant:acme", "action": "refund.*", "reason": "audit"});
    let made = console.app.owner().create_quarantine(part).await.assert_status(201);
    let page = browser.get("/console/agents/svc:agent:acme:support-bot").await;
    page.shows("refund.*</a>: audit");
    // The record of a stop links to its page, which has the release. It has no form of its own for
    // that.
    let made = made["quarantine"]["id"].as_str().unwrap();
    let page = admin.get(&format!("/console/records/quarantines/{made}")).await;
    page.shows("Notified agents, and its release");
    assert!(!page.text.contains("/release\""));
    assert_eq!(admin.get("/console/records/quarantines/new/create").await.status, 404);
    assert_eq!(browser.get("/console/agents/svc:agent:acme:nobody").await.status, 404);
    assert_eq!(browser.get("/console/agents/svc:tenant:acme").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_sealed_and_the_log_says_so() {
    let console = Console::start().await;
    let decided = console.agent.evaluate(asking(10.0, "DE")).await.assert_status(200);
    let mut browser = console.browser();
    browser.sign_in("admin", "admin@acme.example", "/console/log").await;
    let page = browser.get("/console/log").await;
    page.shows("No checkpoint yet");
    page.shows("Seal a decision now");
    let id = decided["decision_id"].as_str().unwrap();
    let page = browser.get(&format!("/console/decisions?id={id}")).await;
    let seal = format!("/console/decisions/{id}/seal");
    let form = page.form(&seal);
    browser.post(&seal, &form).await.shows("It is sealed");
    let page = browser.get("/console/log").await;
    page.shows("<dt>Decisions in it</dt>");
    let mut viewer = console.browser();
    viewer.sign_in("viewer", "viewer@acme.example", "/console/log").await;
    let page = viewer.get("/console/log").await;
    assert!(!page.text.contains("Seal a decision now"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhooks_deliveries_are_listed_and_tests_told() {
    let console = Console::start().await;
    let admin = console.app.person("svc:tenant:acme", "admin", "admin@acme.example");
    let endpoint =
        json!({"url": "https://receiver.invalid/hook", "event_types": ["svc.decision.*"]});
    let made = admin.create_webhook_endpoint(endpoint).await.assert_status(201);
    let id = made["webhook_endpoint"]["id"].as_str().unwrap();
    let mut browser = console.browser();
    browser.sign_in("admin", "admin@acme.example", "/console/records").await;
    let record = browser.get(&format!("/console/records/webhook-endpoints/{id}")).await;
    record.shows("Deliveries</a>");
    let path = format!("/console/webhooks/{id}");
    let page = browser.get(&path).await;
    page.shows("https://receiver.invalid/hook");
    page.shows("No deliveries");
    let test = format!("{path}/test").replace(':', "%3A");
    let form = page.form(&test);
    browser.post(&test, &form).await.shows("Test not delivered:");
    let mut auditor = console.browser();
    auditor.sign_in("auditor", "auditor@acme.example", "/console/records").await;
    assert_eq!(auditor.get(&path).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signing_key_is_replaced_by_the_owner_alone() {
    let console = Console::start().await;
    let mut owner = console.browser();
    owner.sign_in("owner", "operator@localhost", "/console/records").await;
    owner.get("/console/records").await.shows("href=\"/console/keys\"");
    let page = owner.get("/console/keys").await;
    let at = page.text.find("/console/keys/act?step=rotate").unwrap();
    let rotate = page.text[at..].split('"').next().unwrap().replace("&amp;", "&");
    let page = owner.get(&rotate).await;
    page.shows("<h1>Replace the ");
    let form = page.form_with("/console/keys/act", "reason", "once a year");
    let mut admin = console.browser();
    admin.sign_in("admin", "admin@acme.example", "/console/records").await;
    let menu = admin.get("/console/records").await;
    assert!(!menu.text.contains("/console/keys"));
    assert_eq!(admin.get("/console/keys").await.status, 403);
    assert_eq!(admin.get(&rotate).await.status, 403);
    let mut theirs = form.clone();
    let csrf = menu.form("/console/sign-out").remove(0).1;
    theirs.iter_mut().find(|(name, _)| name == "csrf").unwrap().1 = csrf;
    assert_eq!(admin.post("/console/keys/act", &theirs).await.status, 403);
    let page = owner.post("/console/keys/act", &form).await;
    page.shows("Replacements under way");
    page.shows("once a year");
}
