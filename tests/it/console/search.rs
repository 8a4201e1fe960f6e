//! The search of the header: without a script, and only over the lists that the person may read.

use serde_json::{Value, json};

use super::{APPROVER, Console, browser::Page};
use crate::support::{AGENT, Answered, asking};

const AUDITOR: (&str, &str) = ("auditor", "auditor@acme.example");
const OWNER: (&str, &str) = ("owner", "operator@localhost");
const FORM: &str = "<form class=\"find\" method=\"get\" action=\"/console/search\" role=\"search\"";

/// A payment with the facts that the demonstration's tool declares.
fn paying(amount: f64, payee: &str, invoice: &str) -> Value {
    let mut ask = asking(amount, "DE");
    ask["context"]["payee"] = json!(payee);
    ask["context"]["invoice"] = json!(invoice);
    ask
}

async fn decided(console: &Console, ask: Value) -> String {
    let answer = console.agent.evaluate(ask).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// The headings of the groups.
fn groups(page: &Page) -> Vec<String> {
    let main = page.text.split("<main").nth(1).unwrap();
    let headings = main.split("<h2>").skip(1);
    headings.map(|rest| rest.split("</h2>").next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_finds_a_decision_by_what_it_was_about() {
    let console = Console::start().await;
    let paid = decided(&console, paying(1240.5, "Müller AG", "RE-2026-118")).await;
    decided(&console, paying(10.0, "Globex", "RE-2026-119")).await;
    console.app.index_facts().await;
    let mut auditor = console.signed_in(AUDITOR).await;
    auditor.get("/console/decisions").await.shows(FORM);
    let empty = auditor.get("/console/search").await;
    assert_eq!(empty.status, 200, "{}", empty.text);
    empty.shows("<h1>Search</h1>");
    for (text, role) in [
        ("M%C3%BCller+AG", "Payee"),
        ("re-2026-118", "Document"),
        ("1%2C240.50+EUR", "Amount"),
        ("document%3ARE-2026-118", "Document"),
    ] {
        let page = auditor.get(&format!("/console/search?q={text}")).await;
        assert_eq!(groups(&page), ["Decisions"], "{text}: {}", page.text);
        page.shows(&format!("<a class=\"what\" href=\"/console/decisions/{}\"", encoded(&paid)));
        page.shows(&format!("<bdi>{role} · "));
        page.shows("<span class=\"amount verdict allowed\">allowed</span>");
        page.shows("are found by their facts.");
        assert_eq!(page.text.matches("class=\"request flat\"").count(), 1, "{}", page.text);
    }
    let nothing = auditor.get("/console/search?q=RE-2026").await;
    nothing.shows("<h2>No results</h2>");
    // The id of a decision leads to its page, as does its last part.
    for id in [paid.as_str(), paid.rsplit(':').next().unwrap()] {
        let page = auditor.get(&format!("/console/search?q={id}")).await;
        assert_eq!((page.status, page.path), (200, format!("/console/decisions/{paid}")));
    }
    let agent = auditor.get("/console/search?q=invoice-bot").await;
    assert_eq!(groups(&agent), ["Agents and people"], "{}", agent.text);
    agent.shows("href=\"/console/agents/svc%3Aagent%3Aacme%3Ainvoice-bot\"");
    let tool = auditor.get("/console/search?q=payments").await;
    assert_eq!(groups(&tool), ["Other records"], "{}", tool.text);
    tool.shows("href=\"/console/records/tools/");
    // So does the id of any other record.
    let id = tool.text.split("href=\"/console/records/tools/").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    for (id, path) in [
        (id, format!("/console/records/tools/{id}")),
        (AGENT, format!("/console/agents/{}", encoded(AGENT))),
    ] {
        let page = auditor.get(&format!("/console/search?q={id}")).await;
        assert_eq!((page.status, page.path), (200, path));
    }
    let part = auditor.get("/console/search?q=svc:agent:acme:invoice").await;
    assert_eq!(groups(&part), ["Agents and people"], "{}", part.text);
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_results_are_in_the_list_of_decisions() {
    let console = Console::start().await;
    for number in 0..21 {
        decided(&console, paying(10.0, "Globex", &format!("R-{number}"))).await;
    }
    console.app.index_facts().await;
    let mut auditor = console.signed_in(AUDITOR).await;
    let page = auditor.get("/console/search?q=payee%3AGlobex").await;
    assert_eq!(page.text.matches("class=\"request flat\"").count(), 20, "{}", page.text);
    page.shows(
        "<a class=\"button quiet\" href=\"/console/decisions?fact=payee%3AGlobex\">Show all</a>",
    );
    let all = auditor.get("/console/decisions?fact=payee%3AGlobex").await;
    assert_eq!(all.status, 200, "{}", all.text);
    all.shows("<td class=\"some\" data-head=\"To\"><bdi title=\"Globex\">Globex</bdi></td>");
    assert!(!all.text.contains("is not filtered by"), "{}", all.text);
    assert_eq!(all.text.matches("href=\"/console/decisions/svc:decision:").count(), 21);
    let none = auditor.get("/console/decisions?fact=payee%3AInitech").await;
    none.shows("<h2>No matches</h2>");
    // A file cannot show that a filter was ignored.
    let export = auditor.get("/console/decisions/export?fact=payee%3AGlobex").await;
    assert_eq!(export.status, 400, "{}", export.text);
}

/// People see the groups of their lists. The text is escaped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_finds_what_it_may_list() {
    let console = Console::start().await;
    let script = "\"><script>alert(1)</script>";
    let approval = console.held_with(paying(25_000.0, "Globex", script)).await;
    console.app.index_facts().await;
    let query = format!("/console/search?q={}", encoded(script));
    for (person, expected) in
        [(APPROVER, &["Approval requests"][..]), (AUDITOR, &["Decisions", "Approval requests"])]
    {
        let mut browser = console.signed_in(person).await;
        let page = browser.get(&query).await;
        assert_eq!(groups(&page), expected, "{}", page.text);
        page.shows(&format!("href=\"/console/approvals/{}\"", encoded(&approval)));
        assert!(!page.text.contains("<script>alert"), "{}", page.text);
    }
    let mut viewer = console.browser();
    viewer.sign_in("viewer", "viewer@acme.example", "/console").await;
    let page = viewer.get("/console").await;
    assert!(!page.text.contains(FORM), "{}", page.text);
    let refused = viewer.get(&query).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    // The owner of the installation searches facts in one tenant.
    let mut owner = console.signed_in(OWNER).await;
    owner.get("/console/search?q=Globex").await.shows("Choose a tenant</a>");
}
