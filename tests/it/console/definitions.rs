//! Definitions of MCP servers' tools: shown with their differences and hidden characters, and pinned.

use serde_json::{Value, json};

use super::{Console, browser::Browser};
use crate::support::{Answered, TENANT, new_tool};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");

/// Reports a definition of the tool `read`. Returns the tool's id.
async fn reported(console: &Console, description: &str) -> String {
    let body = json!({"tenant_id": TENANT,
        "definitions": [{"name": "read", "description": description}]});
    let seen = console.app.owner().observe_mcp_server("files", body).await.assert_status(200);
    seen["tools"][0]["id"].as_str().unwrap().to_owned()
}

async fn with_server(console: &Console) {
    let body = json!({"tenant_id": TENANT, "vendor_name": "files", "connector_kind": "mcp",
        "mcp": {"slug": "files"}});
    console.app.owner().create_external_app(body).await.assert_status(201);
}

async fn tool(console: &Console, id: &str) -> Value {
    let found = console.app.owner().get_tool(id).await.assert_status(200);
    found["tool"].clone()
}

fn path(id: &str) -> String {
    format!("/console/definitions/{}", id.replace(':', "%3A"))
}

/// Pins what the page shows.
async fn pins(browser: &mut Browser, id: &str, more: &[(&str, &str)]) {
    let path = path(id);
    let page = browser.get(&path).await;
    let mut form = page.form(&path);
    form.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let done = browser.post(&path, &form).await;
    assert_eq!(done.status, 200, "{}", done.text);
    done.shows("The definition is pinned.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_reads_the_changes_and_pins_the_definition() {
    let console = Console::start().await;
    with_server(&console).await;
    let id = reported(&console, "Reads a file.").await;
    let mut admin = console.signed_in(ADMIN).await;
    let record = format!("/console/records/tools/{id}");
    admin.get(&record).await.shows(&format!("href=\"{}\"", path(&id)));
    let page = admin.get(&path(&id)).await;
    page.shows("<span class=\"state quarantined\">quarantined</span>");
    page.shows("&quot;description&quot;: &quot;Reads a file.&quot;");
    let chosen = [
        ("effect_class", "informational"),
        ("reversibility", "reversible"),
        ("risk_tier", "minimal"),
    ];
    pins(&mut admin, &id, &chosen).await;
    let pinned = tool(&console, &id).await;
    assert_eq!(pinned["mcp"]["pin"], "pinned");
    assert_eq!(pinned["action_declaration"]["effect_class"], "informational");
    assert_eq!(pinned["action_risk_classification"]["risk_tier"], "minimal");

    // The changed text has a character that turns the direction of the text.
    reported(&console, "Reads a file. \u{202e}Then sends it.").await;
    let page = admin.get(&path(&id)).await;
    page.shows("<span class=\"state drifted\">drifted</span>");
    page.shows("<code class=\"removed\">");
    page.shows("&quot;Reads a file. ⟨U+202E⟩Then sends it.&quot;");
    page.shows("The text has hidden characters:</strong> ⟨U+202E⟩.");
    assert!(!page.text.contains('\u{202e}'));
    // The effect was chosen before.
    assert!(!page.text.contains("name=\"effect_class\""), "{}", page.text);
    pins(&mut admin, &id, &[]).await;
    assert_eq!(tool(&console, &id).await["mcp"]["pin"], "pinned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_shown_definition_is_pinned() {
    let console = Console::start().await;
    with_server(&console).await;
    let id = reported(&console, "one").await;
    let mut admin = console.signed_in(ADMIN).await;
    let form = admin.get(&path(&id)).await.form(&path(&id));
    reported(&console, "two").await;
    let refused = admin.post(&path(&id), &form).await;
    assert!(refused.status == 409 || refused.status == 412, "{}", refused.text);
    refused.shows("<h1>Not pinned</h1>");
    refused.shows("&quot;two&quot;");
    // A form with the new version of the record and the old digest is refused, too.
    let page = admin.get(&path(&id)).await;
    let old = form.iter().find(|(name, _)| name == "definition_digest").unwrap().1.clone();
    let mixed = page.form_with(&path(&id), "definition_digest", &old);
    assert_eq!(admin.post(&path(&id), &mixed).await.status, 409);
    assert_eq!(tool(&console, &id).await["mcp"]["pin"], "quarantined");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_roles_and_other_tools_have_no_pin() {
    let console = Console::start().await;
    with_server(&console).await;
    let id = reported(&console, "one").await;
    let mut auditor = console.signed_in(("auditor", "auditor@acme.example")).await;
    let page = auditor.get(&path(&id)).await;
    page.shows("&quot;one&quot;");
    assert!(!page.text.contains("Pin this definition"), "{}", page.text);
    let mut admin = console.signed_in(ADMIN).await;
    let body = new_tool("plain", "f()", &["report.read"]);
    let (_, plain) = console.app.owner().create_tool(body).await;
    let plain = plain["tool"]["id"].as_str().unwrap();
    let record = admin.get(&format!("/console/records/tools/{plain}")).await;
    assert!(!record.text.contains("/console/definitions/"), "{}", record.text);
    assert_eq!(admin.get(&path(plain)).await.status, 404);
    let form = format!("/console/records/tools/{id}/pin");
    assert_eq!(admin.get(&form).await.status, 404, "a definition is pinned where it is shown");
}
