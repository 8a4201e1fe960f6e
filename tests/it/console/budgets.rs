//! Budgets on the pages of delegations, agents, `uses` grants and denied decisions.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::Console;
use crate::support::{AGENT, Answered, Members, asking, new_uses};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const OWNER: (&str, &str) = ("owner", "operator@localhost");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_what_is_left_and_when_it_resets() {
    let console = Console::start().await;
    let first = console.app.demo().await.delegation_id;
    let (_, found) = console.app.owner().get_delegation(&first).await;
    let body = json!({"tenant_id": "svc:tenant:acme", "actions": ["payment.*"], "currency": "EUR",
                      "delegator_id": found["delegation"]["delegator_id"], "delegate_id": AGENT,
                      "max_uses": {"count": 1, "window_seconds": 604_800},
                      "max_total_amount": {"amount": "450.5", "window_seconds": 86_400}});
    let lent = console.app.owner().create_delegation(body).await.assert_made("delegation");
    let constraints = json!({"max_uses": {"count": 7, "window_seconds": 3600}}).to_string();
    let row = new_uses(AGENT, "ticket.reply").with("constraints_json", &constraints);
    let row = console.app.owner().create_uses(row).await.assert_made("uses");
    let ask = asking(60.0, "DE").with("delegation_id", &lent);
    let (_, allowed) = console.agent.evaluate(ask.clone()).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    let (_, denied) = console.agent.evaluate(ask).await;
    let end = denied["exceeded_budgets"][0]["resets_at"].as_str().unwrap().to_owned();
    let end = format!("<time datetime=\"{end}\"");

    let mut browser = console.signed_in(ADMIN).await;
    for path in [
        format!("/console/delegations/{lent}"),
        format!("/console/records/delegations/{lent}"),
        format!("/console/agents/{AGENT}"),
    ] {
        let page = browser.get(&path).await;
        page.shows("Budgets</h");
        page.shows("1 of 1 use used, 0 uses left.");
        page.shows("60.00 of 450.50 EUR used, 390.50 EUR left.");
        page.shows(&end);
    }
    let page = browser.get(&format!("/console/agents/{AGENT}")).await;
    page.shows("0 of 7 uses used, 7 uses left.");
    // Only the installation's owner reads `uses` grants as records.
    let key = URL_SAFE_NO_PAD.encode(format!("{AGENT}|ticket.reply|action"));
    let mut owner = console.signed_in_at(OWNER, "/console/records").await;
    let page = owner.get(&format!("/console/records/uses/{key}")).await;
    page.shows(&row);
    page.shows("0 of 7 uses used, 7 uses left.");
    // A delegation without budgets has no such section.
    let page = browser.get(&format!("/console/delegations/{first}")).await;
    assert!(!page.text.contains("id=\"budgets\""), "{}", page.text);
    let id = denied["decision_id"].as_str().unwrap();
    let page = browser.get(&format!("/console/decisions/{id}")).await;
    page.shows("Before this request: 1 of 1 use used, 0 uses left. The budget resets at ");
    page.shows(&end);
}
