//! The reason shown to people is the policy's own: its name and its advice.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{APPROVER, Console};
use crate::support::{Answered, Members, TENANT, asking, new_policy};

const GENERIC: &str = "gives this reason";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_request_shows_the_name_and_advice_of_its_policy() {
    let console = Console::start().await;
    let cedar = "@id(\"window\") @reason(\"x_change_window\") @decision(\"require_approval\")\n\
                 @advice(\"Ask the release manager first.\")\n\
                 forbid (principal, action, resource);";
    let policy = new_policy("internal", cedar).with("name", "Production change window");
    console.app.owner().create_policy(policy).await.assert_status(201);
    let id = console.held(10.0).await;
    let why = "Held by “Production change window”: Ask the release manager first";
    let mut approver = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let inbox = approver.get("/console/approvals").await;
    let page = approver.get(&path).await;
    page.shows("Change window. <code class=\"dim\">x_change_window</code>");
    page.shows("Ask the release manager first.");
    let second = approver.get(&format!("{path}/approve")).await;
    for page in [&inbox, &page, &second] {
        assert!(!page.text.contains(GENERIC), "{}", page.text);
    }
    inbox.shows(why);
    second.shows(why);
    let decision = console.approval(&id).await["decision_id"].as_str().unwrap().to_owned();
    let mut admin = console.signed_in(("admin", "admin@acme.example")).await;
    let page = admin.get(&format!("/console/decisions/{decision}")).await;
    page.shows(&format!("<p class=\"lead\">{why}.</p>"));
    let list = admin.get("/console/decisions").await;
    list.shows("title=\"Held by “Production change window”\">Held by “Production change window”<");
    for page in [&page, &list] {
        assert!(!page.text.contains(GENERIC), "{}", page.text);
    }
}

/// A policy that has neither name nor advice is shown by its statement's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_names_each_policy_that_denied() {
    let console = Console::start().await;
    for (id, name) in [("night", None), ("weekend", Some("No work at weekends"))] {
        let cedar =
            format!("@id(\"{id}\") @reason(\"x_closed\") forbid (principal, action, resource);");
        let policy =
            json!({"tenant_id": TENANT, "regime": "internal", "cedar": cedar, "name": name});
        console.app.owner().create_policy(policy).await.assert_status(201);
    }
    let (_, denied) = console.agent.evaluate(asking(10.0, "DE")).await;
    assert_eq!(denied["reason_code"], "x_closed", "{denied:#}");
    let path = format!("/console/decisions/{}", denied["decision_id"].as_str().unwrap());
    let mut admin = console.signed_in(("admin", "admin@acme.example")).await;
    let page = admin.get(&path).await;
    page.shows("<p class=\"lead\">Denied by “night”.</p>");
    page.shows("<p class=\"lead\">Denied by “No work at weekends”.</p>");
    page.shows("Closed. <code class=\"dim\">x_closed</code>");
    let named = "title=\"Denied by “No work at weekends”\">Denied by “No work at weekends”<";
    // A busy node leaves the names out of a list.
    let (begun, mut list) = (Instant::now(), admin.get("/console/decisions").await);
    while !list.text.contains(named) && begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        list = admin.get("/console/decisions").await;
    }
    list.shows(named);
}
