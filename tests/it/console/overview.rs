//! The first page: its numbers, and the lists to which they lead.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use regex::Regex;
use serde_json::json;

use super::{
    APPROVER, Console,
    browser::{Browser, Page, unescaped},
};
use crate::support::{AGENT, Members, asking, new_api_key, new_tenant, only};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const AUDITOR: (&str, &str) = ("auditor", "auditor@acme.example");
const OWNER: (&str, &str) = ("owner", "operator@localhost");

/// The numbers at the top of the page, with their labels and addresses.
fn numbers(page: &Page) -> Vec<(String, String, String)> {
    let number = Regex::new(
        "<a href=\"([^\"]*)\"><strong class=\"num\">([^<]*)</strong> <span>([^<]*)</span></a>",
    );
    let found = number.unwrap();
    let found = found.captures_iter(&page.text);
    found.map(|n| (n[3].to_owned(), n[2].to_owned(), unescaped(&n[1]))).collect()
}

#[track_caller]
fn number(page: &Page, label: &str) -> (String, String) {
    let all = numbers(page);
    let found = all.iter().find(|(known, ..)| known == label);
    let (_, value, address) = found.unwrap_or_else(|| panic!("no {label:?} in {all:?}"));
    (value.clone(), address.clone())
}

/// The counts of decisions that are links, with the lists to which they lead.
fn counts(page: &Page) -> Vec<(usize, String)> {
    let count = Regex::new("<a class=\"num\" href=\"([^\"]*)\">([0-9]+)</a>").unwrap();
    let found = count.captures_iter(&page.text);
    found.map(|n| (n[2].parse().unwrap(), unescaped(&n[1]))).collect()
}

/// The number of rows of a list, on all of its pages.
async fn rows(browser: &mut Browser, list: &str) -> usize {
    let next = Regex::new("<a class=\"button[^\"]*\" href=\"([^\"]*)\">Next page</a>").unwrap();
    let row = Regex::new("<tr[^>]*>\\s*(<td[^>]*></td>)?<th scope=\"row\">").unwrap();
    let (mut path, mut count) = (list.to_owned(), 0);
    loop {
        let page = browser.get(&path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(!page.text.contains("is not filtered by"), "{path}: {}", page.text);
        let main = page.text.split("<main").nth(1).unwrap();
        count += row.find_iter(main).count();
        match next.captures(&page.text) {
            Some(next) => path = unescaped(&next[1]),
            None => return count,
        }
    }
}

/// Decisions with every outcome, and two more agents that are denied.
async fn decided(console: &Console) {
    for number in 0..6 {
        let allowed = console.agent.evaluate(asking(10.0, "DE")).await;
        assert_eq!(allowed.1["decision"], "allow", "{:#}", allowed.1);
        let mut denied = asking(10.0, "US");
        if number > 3 {
            denied["subject"] = json!(format!("svc:agent:acme:stranger-{number}"));
        }
        let denied = console.agent.evaluate(denied).await;
        assert_eq!(denied.1["decision"], "deny", "{:#}", denied.1);
    }
    for amount in [25_000.0, 26_000.0] {
        console.held(amount).await;
    }
    console.app.count_usage().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_without_decisions_has_an_empty_page() {
    let console = Console::start().await;
    let mut admin = console.signed_in(ADMIN).await;
    let page = admin.get("/console").await;
    assert_eq!(page.text.matches("No decision was counted.").count(), 2, "{}", page.text);
    page.shows("A decision is counted about two minutes after it is made.");
    assert_eq!(number(&page, "Waiting for approval").0, "0");
    assert!(!page.text.contains("oldest asked"), "{}", page.text);
    assert!(
        counts(&page).is_empty() && !page.text.contains("<svg class=\"bars\""),
        "{}",
        page.text
    );
    // A page of this kind has no inline style and no script of its own.
    assert!(!page.text.contains(" style=") && !page.text.contains("<script>"), "{}", page.text);
    admin.get("/console/").await.shows("<h1>Overview</h1>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_number_leads_to_a_list_with_as_many_rows() {
    let console = Console::start().await;
    decided(&console).await;
    for person in [ADMIN, AUDITOR, OWNER] {
        let mut browser = console.signed_in(person).await;
        let page = browser.get("/console").await;
        let all = counts(&page);
        // In each span: three outcomes, the bar's three counts, the reasons and the agents.
        assert!(all.len() >= 2 * (3 + 3 + 2 + 3), "{person:?}: {all:#?}");
        for total in ["Allowed", "Held", "Denied"] {
            page.shows(&format!("</span>{total} <a class=\"num\""));
        }
        for (count, list) in &all {
            assert_eq!(rows(&mut browser, list).await, *count, "{person:?}: {list}");
        }
        let by = |parts: &[&str]| {
            let found = all.iter().find(|(_, list)| parts.iter().all(|part| list.contains(part)));
            found.unwrap_or_else(|| panic!("no {parts:?} in {all:#?}")).0
        };
        assert_eq!(by(&["?outcome=allow&"]), 6);
        assert_eq!(by(&["?outcome=require_approval&"]), 2);
        assert_eq!(by(&["?outcome=deny&since"]), 6);
        assert_eq!(by(&["?outcome=deny&reason=subject_unknown"]), 2);
        assert_eq!(by(&[&format!("?agent={}&outcome=deny", AGENT.replace(':', "%3A"))]), 4);
        // The chart has a bar for each outcome, and is described by a table.
        for class in ["allowed", "held", "denied"] {
            page.shows(&format!("<rect class=\"{class}\""));
        }
        page.shows("The chart as a table");
        page.shows("Decisions are counted until <time");
        // The reasons are sentences.
        page.shows("<th scope=\"row\">No principal of this tenant has the subject&#39;s id</th>");
        let (waiting, list) = number(&page, "Waiting for approval");
        assert_eq!((waiting.as_str(), rows(&mut browser, &list).await), ("2", 2));
        page.shows("oldest asked");
    }
    // The owner of the agent may not decide them.
    for (person, expected) in [(APPROVER, 2), (("approver", "owner@acme.example"), 0)] {
        let mut browser = console.signed_in(person).await;
        let page = browser.get("/console").await;
        assert_eq!(number(&page, "Waiting for approval").0, "2", "{person:?}");
        let (yours, list) = number(&page, "Waiting for you");
        assert_eq!(yours, expected.to_string(), "{person:?}");
        assert_eq!(rows(&mut browser, &list).await, expected, "{person:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stopped_fails_or_expires_is_counted() {
    let console = Console::start().await;
    let owner = console.app.owner();
    let stop = json!({"tenant_id": "acme", "actor_id": AGENT, "reason": "a test"});
    let made = owner.create_stop_signal(stop).await;
    assert_eq!(made.0, 201, "{:#}", made.1);
    let quarantine = json!({"tenant_id": "acme", "action": "never.*", "reason": "a test"});
    assert_eq!(owner.create_quarantine(quarantine).await.0, 201);
    let within = |days: i64| (Clock::default().now() + TimeDelta::days(days)).to_rfc3339();
    for (days, label) in [(3, "soon"), (13, "later"), (20, "much later")] {
        let key = new_api_key(label, &["runtime:read"])
            .with("tenant_id", "acme")
            .with("expires_at", within(days));
        assert_eq!(owner.create_api_key(key).await.0, 201);
    }
    // No event of this type occurs here: a failed delivery would count as well.
    for number in 0..3 {
        let hook = json!({"tenant_id": "acme", "url": format!("https://hooks.example.com/{number}"),
                          "event_types": ["svc.evidence_pack.generated"]});
        assert_eq!(owner.create_webhook_endpoint(hook).await.0, 201);
    }
    let failing = "SELECT set_config('role', authority_role('system'), false); \
         UPDATE webhook_cursors SET failing_since = now() \
         WHERE endpoint_id = (SELECT min(id) FROM webhook_endpoints)";
    console.app.database.run(failing).await;
    let delegation = console.app.demo().await.delegation_id;
    let renewed = owner.renew_delegation(&delegation, only("expires_at", within(5))).await;
    assert!(renewed.0 < 300, "{:#}", renewed.1);
    let mut admin = console.signed_in(ADMIN).await;
    let page = admin.get("/console").await;
    let (stopped, list) = number(&page, "Stopped now");
    assert_eq!((stopped.as_str(), list.as_str()), ("2", "/console/stop"));
    for (label, expected) in [
        ("Failing webhook endpoints", 1),
        ("API keys that expire within 14 days", 2),
        ("Delegations that expire within 14 days", 1),
    ] {
        let (value, list) = number(&page, label);
        assert_eq!(value, expected.to_string(), "{label}");
        assert_eq!(rows(&mut admin, &list).await, expected, "{label}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_sees_the_numbers_of_its_lists() {
    let console = Console::start().await;
    decided(&console).await;
    for (person, expected, has_usage) in [
        (ADMIN, 6, true),
        (AUDITOR, 3, true),
        (APPROVER, 3, false),
        (("legal", "legal@acme.example"), 3, false),
        (("viewer", "viewer@acme.example"), 0, false),
    ] {
        let mut browser = console.signed_in(person).await;
        let page = browser.get("/console").await;
        assert_eq!(numbers(&page).len(), expected, "{person:?}: {:?}", numbers(&page));
        let shows_usage = page.text.contains("Decisions in the last 24 hours");
        assert_eq!(shows_usage, has_usage, "{person:?}");
        // A histogram of all tenants is for the owner of the installation.
        assert!(!page.text.contains("on this node"), "{person:?}");
        assert_eq!(page.text.contains("No lists for your role"), expected == 0, "{person:?}");
    }
    let mut owner = console.signed_in(OWNER).await;
    let page = owner.get("/console").await;
    page.shows("Time of decisions on this node");
    page.shows("aria-current=\"page\">Overview</a>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_decisions_are_not_counted() {
    let console = Console::start().await;
    decided(&console).await;
    assert_eq!(console.app.owner().create_tenant(new_tenant("Other", "other")).await.0, 201);
    let mut owner = console.signed_in(OWNER).await;
    assert!(!counts(&owner.get("/console").await).is_empty());
    let choice = owner.get("/console/tenant").await;
    let form = choice.form_with("/console/tenant", "tenant_id", "svc:tenant:other");
    let page = owner.post("/console/tenant", &form).await;
    page.shows("<h1>Overview</h1>");
    assert!(counts(&page).is_empty(), "{}", page.text);
    assert_eq!(number(&page, "Waiting for approval").0, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_page_has_its_own_decisions() {
    let console = Console::start().await;
    decided(&console).await;
    let mut admin = console.signed_in(ADMIN).await;
    let page = admin.get(&format!("/console/agents/{AGENT}")).await;
    let all = counts(&page);
    assert!(!all.is_empty(), "{}", page.text);
    let agent = format!("agent={}", AGENT.replace(':', "%3A"));
    for (count, list) in &all {
        assert!(list.contains(&agent), "{list}");
        assert_eq!(rows(&mut admin, list).await, *count, "{list}");
    }
    let denied = all.iter().find(|(_, list)| list.contains("outcome=deny&since")).unwrap();
    assert_eq!(denied.0, 4);
    assert!(!page.text.contains("Agents denied most"), "{}", page.text);
    let other = admin.get("/console/agents/svc:agent:acme:support-bot").await;
    assert!(counts(&other).is_empty() && other.text.contains("No decision was counted."));
}
