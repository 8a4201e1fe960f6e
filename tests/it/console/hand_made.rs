//! The hand-made forms: their proposals, and the sentence before a record is created.

use serde_json::Value;

use super::{Console, browser::Page, records::as_role};
use crate::support::{Answered, Plain};

/// The form's hidden fields and these values.
fn with(page: &Page, action: &str, values: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut form = page.form(action);
    form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form
}

async fn only(console: &Console, path: &str, kind: &str, name: &str, value: &str) -> Value {
    let listed = console.app.owner().get(path).await.assert_status(200);
    let all = listed[kind].as_array().unwrap();
    let found: Vec<_> = all.iter().filter(|one| one[name] == value).collect();
    assert_eq!(found.len(), 1, "{listed:#}");
    found[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sentence_comes_before_the_record() {
    let console = Console::start().await;
    let mut owner = as_role(&console, "owner").await.0;
    let create = "/console/records/purposes/new/create";
    let page = owner.get(create).await;
    page.shows("<h1 class=\"name\">New purpose</h1>");
    page.shows("name=\"do\" value=\"preview\">Continue</button>");
    let travel = [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.name", "Travel"),
        ("m.slug", "travel"),
        ("m.allowed_actions", "travel.book"),
        ("m.jurisdictions", "DE, AT"),
        ("m.expires_at", "2040-12-31"),
    ];
    let mut form = with(&page, create, &travel);
    form.push(("do".to_owned(), "preview".to_owned()));
    let shown = owner.post(create, &form).await;
    shown.shows("Everybody may declare travel for travel.book in DE and AT until 31 Dec 2040.");
    let listed = console.app.owner().list_purposes("").await.1;
    assert!(!listed.to_string().contains("\"travel\""), "{listed:#}");
    // After a change, the sentence is shown again first.
    let mut changed = with(&shown, create, &travel);
    changed.retain(|(name, _)| name != "m.jurisdictions");
    changed.push(("m.jurisdictions".to_owned(), "DE".to_owned()));
    let again = owner.post(create, &changed).await;
    again.shows("for travel.book in DE until 31 Dec 2040.");
    owner.post(create, &with(&shown, create, &travel)).await.shows("Created.");
    let made = only(&console, "/api/v1/purposes", "purposes", "slug", "travel").await;
    assert_eq!(made["jurisdictions"].texts(), ["DE", "AT"]);
    assert_eq!(made["expires_at"], "2041-01-01T00:00:00Z");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tools_presentation_is_written_in_rows() {
    let console = Console::start().await;
    let mut owner = as_role(&console, "owner").await.0;
    let create = "/console/records/tools/new/create";
    let page = owner.get(create).await;
    let tool = [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.name", "Bank transfer"),
        ("m.function_signature", "pay(amount, payee)"),
        ("m.actions", "payment.execute"),
        ("m.action_declaration.effect_class", "financial"),
        ("m.action_declaration.reversibility", "irreversible"),
        ("m.presentation.title", "Pay {amount} to {payee}"),
        ("m.presentation.facts.0.path", "payee"),
        ("m.presentation.facts.0.label", "To"),
        ("m.presentation.facts.0.role", "payee"),
        ("m.presentation.facts.2.path", "invoice"),
        ("m.presentation.facts.2.label", "Invoice"),
        ("m.presentation.lists.0.path", "items"),
        ("m.presentation.lists.0.columns", "text, net"),
        ("m.presentation.agent_words", "note"),
    ];
    let mut form = with(&page, create, &tool);
    form.push(("do".to_owned(), "preview".to_owned()));
    let shown = owner.post(create, &form).await;
    shown.shows("A request for it reads “Pay {amount} to {payee}”.");
    shown.shows("name=\"m.presentation.facts.2.label\" value=\"Invoice\"");
    owner.post(create, &with(&shown, create, &tool)).await.shows("Created.");
    let made = only(&console, "/api/v1/tools", "tools", "name", "Bank transfer").await;
    assert_eq!(made["action_declaration"]["effect_class"], "financial");
    let shown = &made["presentation"];
    assert_eq!(shown["title"], "Pay {amount} to {payee}", "{made:#}");
    assert_eq!(shown["facts"].as_array().unwrap().len(), 2, "{made:#}");
    assert_eq!(shown["facts"][0]["role"], "payee", "{made:#}");
    assert_eq!(shown["facts"][1]["label"], "Invoice", "{made:#}");
    assert_eq!(shown["lists"][0]["columns"].texts(), ["text", "net"], "{made:#}");
    assert_eq!(shown["agent_words"].texts(), ["note"], "{made:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_and_an_endpoint_are_chosen_from_names() {
    let console = Console::start().await;
    let mut admin = as_role(&console, "admin").await.0;
    let create = "/console/records/api-keys/new/create";
    let page = admin.get(create).await;
    page.shows("name=\"m.principal_ids\" value=\"svc:agent:acme:invoice-bot\"");
    let key = [
        ("m.label", "desk"),
        ("m.scopes", "runtime:read"),
        ("m.principal_ids", "svc:agent:acme:invoice-bot"),
        ("do", "preview"),
    ];
    let shown = admin.post(create, &with(&page, create, &key)).await;
    shown.shows("“desk” may use runtime:read for invoice-bot only.");
    let made = admin.post(create, &with(&shown, create, &key[..3])).await;
    made.shows("<code class=\"secret\" data-copy>svc_");

    let create = "/console/records/webhook-endpoints/new/create";
    let page = admin.get(create).await;
    page.shows("type=\"checkbox\" name=\"m.event_types\" value=\"svc.authority.revoked\"");
    let endpoint = [
        ("m.url", "https://hooks.example.org/events"),
        ("m.event_types", "svc.authority.revoked"),
        ("m.event_types", "svc.decision.*"),
        ("do", "preview"),
    ];
    let shown = admin.post(create, &with(&page, create, &endpoint)).await;
    shown.shows(
        "The service sends svc.authority.revoked and svc.decision.* to https://hooks.example.org/events, \
         signed by standard-webhooks/v1 and rfc9421.",
    );
}
