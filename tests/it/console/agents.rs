//! The agents of a tenant. Each page about an agent links to its stop page.

use regex::Regex;

use super::Console;
use crate::support::{AGENT, Answered, new_stop, only};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const AUDITOR: (&str, &str) = ("auditor", "auditor@acme.example");

/// The style and the target of the Stop link in the header.
#[track_caller]
fn halt(page: &str) -> (String, String) {
    let link = Regex::new("<a class=\"button ([a-z]+) halt\" href=\"([^\"]*)\"").unwrap();
    let found = link.captures(page).unwrap_or_else(|| panic!("no Stop in {page}"));
    (found[1].to_owned(), found[2].to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_in_the_menu_and_found_by_a_part_of_their_name() {
    let console = Console::start().await;
    for (who, sees) in [(ADMIN, true), (AUDITOR, true), (super::APPROVER, false)] {
        let mut browser = console.signed_in(who).await;
        let page = browser.get("/console/approvals").await;
        assert_eq!(page.text.contains("<a href=\"/console/agents\">Agents</a>"), sees, "{who:?}");
        let page = browser.get("/console/agents").await;
        assert_eq!(page.status, if sees { 200 } else { 403 }, "{who:?}");
    }
    let mut admin = console.signed_in(ADMIN).await;
    let page = admin.get("/console/agents").await;
    page.shows("<a href=\"/console/agents/svc%3Aagent%3Aacme%3Ainvoice-bot\">invoice-bot</a>");
    page.shows("Pays supplier invoices");
    // People are not listed as agents, but as their owners.
    let heads = page.text.split("<th scope=\"row\">").skip(1);
    let names = heads.filter_map(|row| row.split("</th>").next());
    assert!(!names.collect::<String>().contains("Head of finance"), "{}", page.text);
    page.shows("data-head=\"Owner\"><a href=\"/console/agents/svc");
    page.shows("Head of finance</a>");
    let page = admin.get("/console/agents?q=SUPPORT").await;
    page.shows("support-bot");
    assert!(!page.text.contains("invoice-bot"), "{}", page.text);
    admin.get("/console/agents?state=revoked").await.shows("No matches");
    // The menu on any page links to each kind, and the list of a kind links to each record.
    let page = admin.get("/console/decisions").await;
    for kind in ["principals", "delegations", "api-keys", "policies", "tools", "purposes"] {
        let list = format!("/console/records/{kind}");
        page.shows(&format!("<a href=\"{list}\">"));
        admin.get(&list).await.shows(&format!("<a href=\"{list}/svc"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_headers_stop_is_on_what_the_page_is_about() {
    let console = Console::start().await;
    let approval = console.held(25_000.0).await;
    let decision = console.approval(&approval).await["decision_id"].as_str().unwrap().to_owned();
    let delegation = console.app.demo().await.delegation_id;
    let mut admin = console.signed_in(ADMIN).await;
    let mut auditor = console.signed_in(AUDITOR).await;
    let subject = "/console/stop/confirm?subject=svc%3Aagent%3Aacme%3Ainvoice-bot".to_owned();
    let under = format!("/console/stop/confirm?delegation={}", delegation.replace(':', "%3A"));
    for (path, stops) in [
        (format!("/console/agents/{AGENT}"), &subject),
        (format!("/console/decisions/{decision}"), &subject),
        (format!("/console/approvals/{approval}"), &subject),
        (format!("/console/records/principals/{AGENT}"), &subject),
        (format!("/console/delegations/{delegation}"), &under),
        (format!("/console/records/delegations/{delegation}"), &under),
        ("/console/approvals".to_owned(), &"/console/stop".to_owned()),
    ] {
        let page = admin.get(&path).await;
        assert_eq!(halt(&page.text), ("stop".to_owned(), stops.clone()), "{path}");
        // A user without the permission to stop gets a link to the list of stops.
        let page = auditor.get(&path).await;
        let reads = ("quiet".to_owned(), "/console/stop".to_owned());
        assert_eq!(halt(&page.text), reads, "{path}");
    }
    // The next page shows the affected delegations. A release undoes a stop: no name is typed.
    for path in [&subject, &under] {
        let page = admin.get(path).await;
        page.shows("<h2 id=\"ends\">Effects</h2>");
        assert!(!page.text.contains("to confirm"), "{}", page.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_says_what_waits_and_what_is_still_permitted() {
    let console = Console::start().await;
    let mut admin = console.signed_in(ADMIN).await;
    let confirm = format!("/console/stop/confirm?subject={AGENT}");
    admin.get(&confirm).await.shows("No request in the last 24 hours.");
    console.held(25_000.0).await;
    console.held(26_000.0).await;
    let question = crate::support::asking(1_200.0, "DE");
    let (_, allowed) = console.agent.evaluate(question).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    let permit = format!("/console/decisions/{}", allowed["decision_id"].as_str().unwrap());
    let page = admin.get(&confirm).await;
    page.shows(
        "<a href=\"/console/approvals?agent=svc%3Aagent%3Aacme%3Ainvoice-bot\">2 requests</a>",
    );
    page.shows("Still valid: 1 permission.");
    page.shows("1 valid permission</summary>");
    assert!(!page.text.contains("Approved and not used yet"), "{}", page.text);
    page.shows(&format!("<a href=\"{permit}\"><code>payment.execute</code></a>"));
    // The consequences of a stop do not list requests and permits of other actions.
    let page = admin.get(&format!("{confirm}&action=refund.*")).await;
    page.shows("No request in the last 24 hours.");
    assert!(!page.text.contains("requests</a>"), "{}", page.text);
    let page = admin.get("/console/stop/confirm?action=payment.execute").await;
    page.shows("2 requests</a>");
    let approved = console.held(27_000.0).await;
    let approver = console.app.person("svc:tenant:acme", "approver", "ann@example.org");
    let digest = approver.get_approval(&approved).await.1["approval"]["request_digest"].clone();
    let given = only("request_digest", &digest);
    approver.act_on_approval(&approved, "approve", given).await.assert_status(200);
    let unused = "Approved and not used yet: <a href=\"/console/approvals?state=approved&amp;agent=\
                  svc%3Aagent%3Aacme%3Ainvoice-bot\">1 request</a>";
    let page = admin.get(&confirm).await;
    page.shows(unused);
    assert!(!page.text.contains("stopped already"), "{}", page.text);
    assert_eq!(console.app.owner().create_stop_signal(new_stop(AGENT, "pays twice")).await.0, 201);
    let page = admin.get(&confirm).await;
    page.shows("invoice-bot is stopped already.");
    page.shows(">pays twice</a>");
    // The page still shows the pending requests.
    page.shows("waiting requests cannot be approved");
}
