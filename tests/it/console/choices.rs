//! The options and explanations in forms: scopes, roles, state machines.

use serde_json::json;

use super::Console;

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const OWNER: (&str, &str) = ("owner", "operator@localhost");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_scope_and_role_is_explained_beside_it() {
    let console = Console::start().await;
    let mut admin = console.signed_in(ADMIN).await;
    let page = admin.get("/console/records/api-keys/new/create").await;
    for (scope, sentence) in [
        ("runtime:stop", "Stops agents and quarantines actions. It cannot release them."),
        ("evidence:write", "Puts decisions into the tenant&#39;s log."),
    ] {
        page.shows(&format!("<span>{scope}<span class=\"dim\">{sentence}</span></span></label>"));
    }
    assert_eq!(page.text.matches("name=\"m.scopes\"").count(), 10, "{}", page.text);
    // The agents that the key can be bound to are chosen by name.
    page.shows("<span>invoice-bot (Pays supplier invoices) <span class=\"dim\">svc:agent:acme:invoice-bot</span>");
    assert!(!page.text.contains("<span>Head of finance <span"), "{}", page.text);
    // The user menu explains the role of the signed-in user.
    page.shows("stops agents, ends delegations, and manages API keys");
    let mut owner = console.signed_in(OWNER).await;
    let page = owner.get("/console/records/member-of/new/create").await;
    page.shows("<li><strong>auditor</strong>: Reviews the team.</li>");
    page.shows("grants nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_machine_is_chosen_from_the_library_or_from_those_that_there_are() {
    let console = Console::start().await;
    let mut owner = console.signed_in(OWNER).await;
    let adopt = "/console/records/state-machines/new/adopt";
    let page = owner.get(adopt).await;
    page.shows("<select id=\"m.library_id\" name=\"m.library_id\" required");
    page.shows("<option value=\"payments.card_dispute\">payments: ");
    page.shows("<option value=\"1.0.0\">1.0.0</option>");
    let mut form = page.form(adopt);
    for (name, value) in [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.library_id", "payments.card_dispute"),
        ("m.library_version", "1.0.0"),
        ("m.tenant_entity_class", "no space here"),
    ] {
        form.push((name.to_owned(), value.to_owned()));
    }
    // After an error, the choices are still selected.
    let refused = owner.post(adopt, &form).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("<option value=\"payments.card_dispute\" selected>");
    form.last_mut().unwrap().1 = "chargeback".to_owned();
    let made = owner.post(adopt, &form).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let (_, listed) = console.app.owner().list_state_machines("").await;
    let machines = listed["state_machines"].as_array().unwrap();
    let adopted = machines.iter().find(|machine| machine["entity_class"] == json!("chargeback"));
    let id = adopted.unwrap()["id"].as_str().unwrap();
    let page = owner.get("/console/records/state-events/new/create-state-transition").await;
    page.shows("<select id=\"m.machine_id\" name=\"m.machine_id\" required");
    page.shows(&format!("<option value=\"{id}\">"));
}
