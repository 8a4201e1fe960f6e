//! Stop: one page shows the impact and has the button. Until the release, every decision is a denial.

use serde_json::{Value, json};

use super::{Console, browser::Browser};
use crate::support::{AGENT, Answered, Members, Plain, asking, new_principal, new_tool, only};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const CONFIRM: &str = "/console/stop/confirm";

async fn ask(console: &Console) -> Value {
    let answer = console.agent.evaluate(asking(1_200.0, "DE")).await.assert_status(200);
    answer["reason_code"].clone()
}

/// The filled-in form of the page, with a reason.
async fn filled(browser: &mut Browser, query: &str, why: &str) -> Vec<(String, String)> {
    let page = browser.get(&format!("{CONFIRM}?{query}")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let mut form = page.form(CONFIRM);
    form.push(("reason".to_owned(), why.to_owned()));
    form
}

/// Releases a stop, with a reason.
async fn release(browser: &mut Browser, path: &str, why: &str) -> super::browser::Page {
    let path = format!("{path}/release");
    let form = browser.get(&path).await.form_with(&path, "reason", why);
    browser.post(&path, &form).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_stopped_on_one_page_and_released() {
    let console = Console::start().await;
    assert_eq!(ask(&console).await, "permission_granted");
    let mut browser = console.browser();
    let page = browser.sign_in(ADMIN.0, ADMIN.1, "/console/stop").await;
    page.shows("No stop is in force");
    page.shows("href=\"/console/stop/confirm?subject=svc:agent:acme:invoice-bot\"");
    let query = format!("subject={AGENT}");
    let page = browser.get(&format!("{CONFIRM}?{query}")).await;
    page.shows("Pays supplier invoices");
    page.shows("lets <strong title=\"svc:agent:acme:invoice-bot\">invoice-bot</strong>");
    // One press is enough: a reason is preset. A name is not required.
    assert!(!page.text.contains("to confirm</label>"), "{}", page.text);
    let fields = page.fields(CONFIRM);
    let reason = ("reason".to_owned(), "Unexpected behaviour".to_owned());
    assert!(fields.contains(&reason), "{fields:?}");
    let form = filled(&mut browser, &query, " ").await;
    let page = browser.post(CONFIRM, &form).await;
    assert_eq!(page.status, 400, "{}", page.text);
    page.shows("Choose a reason");
    assert_eq!(ask(&console).await, "permission_granted");
    let mut form = filled(&mut browser, &query, "Unexpected behaviour").await;
    form.push(("details".to_owned(), "pays twice".to_owned()));
    let page = browser.post(CONFIRM, &form).await;
    page.shows("invoice-bot is stopped. Every request for it is denied.");
    page.shows("Unexpected behaviour: pays twice");
    // The agent had permissions, has not reported, and has not made a request since.
    page.shows("2 permissions were valid when the stop began.");
    page.shows("not reported");
    page.shows("No refusal yet");
    let path = page.path.split('?').next().unwrap().to_owned();
    assert_eq!(ask(&console).await, "actor_stopped");
    let page = browser.get(&path).await;
    page.shows("Refused once");
    page.shows("Permitted before");
    // A background request loads the refusals.
    browser.look(&path).await.shows("Refused once");
    browser.get("/console/stop").await.shows("pays twice");
    // Sent twice, the form creates one stop.
    assert_eq!(browser.post(CONFIRM, &form).await.path.split('?').next(), Some(path.as_str()));

    // A release requires a reason.
    let refused = release(&mut browser, &path, " ").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("<title>Not released: ");
    assert_eq!(ask(&console).await, "actor_stopped");
    let page = release(&mut browser, &path, "the bank has confirmed").await;
    page.shows("invoice-bot is released");
    page.shows("the bank has confirmed");
    assert_eq!(ask(&console).await, "permission_granted");
    browser.get("/console/stop").await.shows("No stop is in force");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_is_suspended_for_everybody_or_for_one() {
    let console = Console::start().await;
    ask(&console).await;
    let mut browser = console.signed_in(ADMIN).await;
    let misspelt = browser.get(&format!("{CONFIRM}?action=paymnt.execute")).await;
    misspelt.shows("tenant has `paymnt.execute`. Did you mean `payment.execute`?");
    let page = browser.get(&format!("{CONFIRM}?action=payment.*")).await;
    assert!(!page.text.contains("No tool, purpose or delegation"), "{}", page.text);
    page.shows("2 agents are affected:");
    page.shows(
        "<a href=\"/console/decisions?agent=svc%3Aagent%3Aacme%3Ainvoice-bot\">1 decision</a>",
    );
    let form = filled(&mut browser, "action=payment.*", "the bank is away").await;
    browser.post(CONFIRM, &form).await.shows("payment.*");
    assert_eq!(ask(&console).await, "capability_quarantined");
    let (_, listed) = console.app.owner().list_quarantines("state=active").await;
    let made = &listed["quarantines"][0];
    assert_eq!((made["action"].text(), &made["subject_id"]), ("payment.*", &Value::Null));
    let query = format!("subject={AGENT}&action=refund.execute");
    let form = filled(&mut browser, &query, "refunds wrongly").await;
    browser.post(CONFIRM, &form).await.shows("refund.execute of invoice-bot");
    let (_, listed) = console.app.owner().list_quarantines("state=active").await;
    assert_eq!(listed["quarantines"][1]["subject_id"], AGENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_stop_sees_what_is_stopped_or_nothing() {
    let console = Console::start().await;
    let mut auditor = console.browser();
    let page = auditor.sign_in("auditor", "auditor@acme.example", "/console/stop").await;
    page.shows("No stop is in force");
    page.shows(">Stops</a>");
    assert!(!page.text.contains("button stop halt"), "an alarm for who cannot act");
    assert!(!page.text.contains(CONFIRM), "{}", page.text);
    let path = format!("{CONFIRM}?subject={AGENT}");
    let page = auditor.get(&path).await;
    page.shows("You cannot stop this");
    // The API also refuses the form.
    let (_, token) = page.form("/console/sign-out").remove(0);
    let members = [("csrf", token.as_str()), ("subject", AGENT), ("reason", "x")];
    let form = members.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(auditor.post(CONFIRM, &form).await.status, 403);
    assert_eq!(ask(&console).await, "permission_granted");
    let mut approver = console.signed_in(super::APPROVER).await;
    let page = approver.get("/console/stop").await;
    assert_eq!(page.status, 403, "{}", page.text);
    assert!(!page.text.contains("href=\"/console/stop\""));
}

/// Only the newest refusals are read from the API, and an agent can have many other denials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_found_under_many_other_denials() {
    let console = Console::start().await;
    let owner = console.app.owner();
    let part = json!({"tenant_id": "svc:tenant:acme", "action": "payment.*", "subject_id": AGENT,
        "reason": "pays twice"});
    let made = owner.create_quarantine(part).await.assert_status(201);
    assert_eq!(ask(&console).await, "capability_quarantined");
    let other = asking(10.0, "DE").with("action", "refund.execute");
    let calls = (0..101).map(|_| console.agent.evaluate(other.clone()));
    for (status, answer) in futures_util::future::join_all(calls).await {
        assert_eq!(status, 200, "{answer:#}");
        assert_eq!(answer["decision"], "deny");
        assert_ne!(answer["reason_code"], "capability_quarantined", "{answer:#}");
    }
    let mut browser = console.signed_in(ADMIN).await;
    let id = made["quarantine"]["id"].as_str().unwrap();
    browser.get(&format!("/console/stop/{id}")).await.shows("Refused once");
}

/// A tool's actions are suspended one by one. The page lists the actions that failed, and sending
/// the form again does not suspend actions twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_of_which_only_a_part_was_stopped_says_which() {
    let console = Console::start().await;
    let owner = console.app.owner();
    let tool = new_tool("Bank", "bank()", &["payment.execute", "refund.execute", "statement.read"]);
    let made = owner.create_tool(tool).await.assert_status(201);
    let id = made["tool"]["id"].as_str().unwrap();
    let mut browser = console.signed_in(ADMIN).await;
    let list = browser.get("/console/stop").await;
    list.shows("Bank: payment.execute, refund.execute, statement.read");
    let page = browser.get(&format!("{CONFIRM}?tool={id}")).await;
    page.shows("These are all actions of the tool Bank.");
    let form = filled(&mut browser, &format!("tool={id}"), "it is hacked").await;
    let key = form.iter().find(|(name, _)| name == "key").unwrap().1.clone();
    // The idempotency key of an action in this form was used for something else.
    let mut used = filled(&mut browser, "action=refund.execute", "other").await;
    used.iter_mut().find(|(name, _)| name == "key").unwrap().1 = key;
    browser.post(CONFIRM, &used).await.shows("refund.execute is stopped");
    for _ in 0..2 {
        let page = browser.post(CONFIRM, &form).await;
        assert_eq!(page.status, 207, "{}", page.text);
        page.shows("Only a part of Bank is stopped");
        page.shows("<title>Only a part of Bank is stopped: ");
        let (failed, suspended) = page.text.split_once("id=\"suspended\"").unwrap();
        assert!(failed.contains("<code>refund.execute</code>:"), "{failed}");
        assert!(!suspended.contains("<code>refund.execute</code>"), "{suspended}");
        for action in ["payment.execute", "statement.read"] {
            assert!(!failed.contains(&format!("<code>{action}</code>")), "{failed}");
            assert!(suspended.contains(&format!("<code>{action}</code>")), "{suspended}");
        }
        // The form on the page is the same form.
        let mut again = page.form(CONFIRM);
        again.sort();
        let mut sent = form.clone();
        sent.sort();
        assert_eq!(again, sent);
    }
    let (_, listed) = owner.list_quarantines("state=active&count=true").await;
    assert_eq!(listed["total"], 3, "{listed:#}");
    assert_eq!(ask(&console).await, "capability_quarantined");
    // Without the obstacle the whole tool is stopped, and the list shows it.
    let form = filled(&mut browser, &format!("tool={id}"), "it is hacked").await;
    let page = browser.post(CONFIRM, &form).await;
    page.shows("It is stopped. Every decision on it is a denial.");
    // The address of the result, opened after the release, does not report a stop.
    let done = page.path.clone();
    let release = async || {
        let (_, listed) = owner.list_quarantines("state=active").await;
        for one in listed["quarantines"].as_array().unwrap() {
            assert_eq!(owner.release_quarantine(one["id"].as_str().unwrap()).await.0, 200);
        }
    };
    release().await;
    let page = browser.get(&done).await;
    assert!(!page.text.contains("It is stopped."), "{}", page.text);
    page.shows("The stop has been released since.");
    // The same form stops the tool again.
    browser.post(CONFIRM, &form).await.shows("It is stopped. Every decision on it is a denial.");
    assert_eq!(ask(&console).await, "capability_quarantined");
    release().await;
    // A link does not show the message either.
    let page = browser.get("/console/stop?did=stop").await;
    assert!(!page.text.contains("It is stopped."), "{}", page.text);
}

/// The API does the search. It finds the newest of many agents, and the page shows where a list
/// ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_is_found_however_many_there_are() {
    let console = Console::start().await;
    let owner = console.app.owner();
    let mut db = console.app.database.owner().await;
    // More agents than a list on the page can hold. The agent to find is the newest.
    diesel_async::SimpleAsyncConnection::batch_execute(
        &mut db,
        "INSERT INTO principals (id, tenant_id, state, principal_class, display_name, name, created_at, created_by, \
         updated_at) SELECT 'svc:agent:acme:many-' || n, 'svc:tenant:acme', 'active', 'agent', 'Many ' || n, \
         'many-' || n, now(), 'test', now() FROM generate_series(1, 510) AS n",
    )
    .await
    .unwrap();
    let agent = new_principal("agent", "Needle in a Haystack").with("name", "newest");
    owner.create_principal(agent).await.assert_status(201);
    let mut browser = console.signed_in(ADMIN).await;
    let page = browser.get("/console/stop").await;
    page.shows("These are the first 40.");
    page.shows("there are too many to list: enter an id");
    let link = "href=\"/console/stop/confirm?subject=svc:agent:acme:newest\"";
    for sought in ["newest", "NEEDLE", "svc:agent:acme:newest", "haystack"] {
        browser.get(&format!("/console/stop?q={sought}")).await.shows(link);
    }
    browser.get("/console/stop?q=many-1").await.shows("These are the first 40.");
    let none = "No active agent or person has this in its name, id or e-mail address.";
    browser.get("/console/stop?q=nobody-at-all").await.shows(none);
    let long = "a".repeat(101);
    browser.get(&format!("/console/stop?q={long}")).await.shows("at most 100 characters");
    // The search finds active agents. A full name finds an agent in any state.
    owner
        .update_principal("svc:agent:acme:newest", only("state", "suspended"))
        .await
        .assert_status(200);
    let page = browser.get("/console/stop?q=newest").await;
    page.shows(link);
    page.shows("agent, suspended");
}

/// The API lists the oldest first, and the newest stop is at the end of the last page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_stop_is_listed_however_many_there_are() {
    let console = Console::start().await;
    let mut db = console.app.database.owner().await;
    diesel_async::SimpleAsyncConnection::batch_execute(
        &mut db,
        "INSERT INTO quarantines (id, tenant_id, state, action, reason, created_at, created_by, updated_at) \
         SELECT 'svc:quarantine:' || n, 'svc:tenant:acme', 'active', 'old.' || n, 'old', now(), 'test', now() \
         FROM generate_series(1, 510) AS n",
    )
    .await
    .unwrap();
    let part = json!({"tenant_id": "svc:tenant:acme", "subject_id": AGENT, "reason": "the newest"});
    console.app.owner().create_quarantine(part).await.assert_status(201);
    let mut browser = console.signed_in(ADMIN).await;
    let page = browser.get("/console/stop").await;
    page.shows("511 in force");
    let (newest, old) = page.text.split_once("the newest").unwrap();
    assert!(!newest.contains(">old<") && old.contains(">old<"), "{}", page.text);
    let page = browser.get(&format!("/console/agents/{AGENT}")).await;
    page.shows("Stopped now.");
    page.shows("the newest");
}

/// A stop of a whole tenant affects everybody: the tenant's name is typed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_whole_tenant_needs_a_typed_name() {
    let console = Console::start().await;
    let mut browser = console.signed_in(ADMIN).await;
    for (query, is_typed) in [
        ("", true),
        ("action=*", true),
        ("action=payment.*", false),
        (&*format!("subject={AGENT}"), false),
    ] {
        let page = browser.get(&format!("{CONFIRM}?{query}")).await;
        assert_eq!(page.text.contains("id=\"name\""), is_typed, "{query}: {}", page.text);
        // All actions are not some of them.
        assert!(query != "action=*" || !page.text.contains("Other actions stay permitted"));
    }
    for (query, name, status) in [("action=*", "*", 400), ("", "acm", 400), ("", "acme", 200)] {
        let mut form = filled(&mut browser, query, "Maintenance").await;
        form.push(("name".to_owned(), name.to_owned()));
        let page = browser.post(CONFIRM, &form).await;
        assert_eq!(page.status, status, "{name}: {}", page.text);
        let stopped = if status == 200 { "capability_quarantined" } else { "permission_granted" };
        assert_eq!(ask(&console).await, stopped);
    }
}
