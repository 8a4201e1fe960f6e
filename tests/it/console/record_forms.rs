//! Forms that create, change and end records: typed values are never lost, and only changes are
//! sent.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{
    Console,
    browser::{Browser, Page, Source},
    records::{as_role, links},
};
use crate::support::{Answered, Plain};

/// The values of a form as a browser sends it without changes.
fn filled(page: &Page, action: &str) -> BTreeMap<String, String> {
    let mut form: BTreeMap<_, _> = page.form(action).into_iter().collect();
    let fields = [
        "<input id=\"[^\"]*\" name=\"([^\"]*)\" value=\"([^\"]*)\"",
        "(?s)<textarea id=\"[^\"]*\" name=\"([^\"]*)\"[^>]*>\n(.*?)</textarea>",
        "(?s)<select id=\"[^\"]*\" name=\"([^\"]*)\"[^>]*>[^/]*(?:</option>[^/]*)*?<option value=\"([^\"]*)\" selected",
    ];
    for pattern in fields {
        for found in Regex::new(pattern).unwrap().captures_iter(&page.text) {
            form.insert(found[1].to_owned(), found[2].replace("&quot;", "\""));
        }
    }
    form
}

fn with(form: &BTreeMap<String, String>, changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut form = form.clone();
    form.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form.into_iter().collect()
}

async fn tool(console: &Console, id: &str) -> Value {
    let found = console.app.owner().get_tool(id).await.assert_status(200);
    found["tool"].clone()
}

/// The form has an older version of the record.
async fn another_tab_overwrites_nothing(
    console: &Console,
    owner: &mut Browser,
    address: &str,
    form: &BTreeMap<String, String>,
) {
    let update = format!("{address}/update");
    let id = address.rsplit('/').next().unwrap().replace("%3A", ":");
    let stale = owner.post(&update, &with(form, &[("m.name", "mine"), ("key", "another")])).await;
    assert_eq!(stale.status, 412, "{}", stale.text);
    assert_eq!(tool(console, &id).await["name"], "agenda");
    // The typed values are kept, the record's current values are shown next to them, and the form
    // can be sent again.
    stale.shows("value=\"mine\"");
    stale.shows("The record now has: agenda");
    stale.shows("<li><a href=\"#m.name\">Name</a>: the record now has agenda</li>");
    stale.shows("aria-describedby=\"about-m.name present-m.name\"");
    // Fields that this tab did not change keep the other tab's values.
    assert_eq!(stale.text.matches("The record now has: ").count(), 1, "{}", stale.text);
    stale.shows(&format!("href=\"{address}\" target=\"_blank\""));
    let again = filled(&stale, &update);
    owner.post(&update, &with(&again, &[])).await.shows("Updated.");
    let both = tool(console, &id).await;
    assert_eq!((both["name"].text(), &both["access_level"]), ("mine", &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_made_changed_and_ended_by_forms() {
    let console = Console::start().await;
    let mut owner = as_role(&console, "owner").await.0;
    let create = "/console/records/tools/new/create";
    let form = filled(&owner.get(create).await, create);
    let written = [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.name", "calendar"),
        ("m.function_signature", "book(day)"),
        ("m.actions", "calendar.book\r\ncalendar.*"),
        ("m.access_level", "write"),
        ("m.metadata", "{\"team\": {\"size\": 5}}"),
    ];
    // API errors are shown at their fields, and the typed values are kept.
    let nameless = with(&form, &[written.as_slice(), &[("m.name", "")]].concat());
    let refused = owner.post(create, &nameless).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("id=\"wrong-m.name\"");
    refused.shows("book(day)");
    let page = owner.post(create, &with(&form, &written)).await;
    page.shows("Created.");
    let id = links(&page, "/console/records/tools/svc[^\"/]+/update");
    let address = id[0].trim_end_matches("/update").to_owned();
    let id = address.rsplit('/').next().unwrap().replace("%3A", ":");
    let made = tool(&console, &id).await;
    assert_eq!(made["actions"].texts(), ["calendar.book", "calendar.*"], "{made:#}");
    assert_eq!(
        (made["access_level"].text(), made["metadata"]["team"]["size"].number()),
        ("write", 5)
    );

    let update = format!("{address}/update");
    let page = owner.get(&update).await;
    let form = filled(&page, &update);
    assert_eq!(
        (form["m.actions"].as_str(), form["m.access_level"].as_str()),
        ("calendar.book\ncalendar.*", "write")
    );
    // A form of another site has no effect.
    let elsewhere = Source { origin: Some("https://evil.example"), site: Some("cross-site") };
    let foreign = owner.post_from(&update, &with(&form, &[("m.name", "mine")]), elsewhere).await;
    assert_eq!(foreign.status, 403, "{}", foreign.text);
    assert_eq!(tool(&console, &id).await["name"], "calendar");
    // Unchanged fields are not sent, even if a form would format them differently.
    owner.post(&update, &with(&form, &[])).await;
    assert_eq!(tool(&console, &id).await["updated_at"], made["updated_at"]);
    let page =
        owner.post(&update, &with(&form, &[("m.name", "agenda"), ("m.access_level", "")])).await;
    page.shows("Updated.");
    let changed = tool(&console, &id).await;
    assert_eq!((changed["name"].text(), &changed["access_level"]), ("agenda", &Value::Null));
    // The history shows the old and the new value of each field.
    page.shows("changed by");
    let became =
        "<span class=\"to\" aria-hidden=\"true\">→</span><span class=\"hidden\"> became </span>";
    page.shows(&format!("<div class=\"was\">calendar</div>{became}<div>agenda</div>"));
    page.shows(&format!(
        "<div class=\"was\">write</div>{became}<span class=\"dim\">no value</span>"
    ));
    another_tab_overwrites_nothing(&console, &mut owner, &address, &form).await;
    let form = filled(&owner.get(&update).await, &update);
    owner.post(&update, &with(&form, &[("m.name", "agenda")])).await.shows("Updated.");

    let delete = format!("{address}/delete");
    let page = owner.get(&delete).await;
    page.shows("Delete “agenda”?");
    let refused = owner.post(&delete, &page.form_with(&delete, "name", "agend")).await;
    refused.shows("<h1>Not deleted</h1>");
    refused.shows("Type agenda exactly, to confirm.");
    assert_eq!((refused.status, tool(&console, &id).await["state"].text()), (400, "active"));
    let form = page.form_with(&delete, "name", "Agenda");
    owner.post(&delete, &form).await.shows("Deleted.");
    assert_eq!(tool(&console, &id).await["state"], "deprecated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_keys_secret_is_shown_once() {
    let console = Console::start().await;
    let mut admin = as_role(&console, "admin").await.0;
    let create = "/console/records/api-keys/new/create";
    let page = admin.get(create).await;
    let mut form = with(&filled(&page, create), &[("m.label", "support desk")]);
    form.push(("m.scopes".to_owned(), "runtime:read".to_owned()));
    form.push(("m.scopes".to_owned(), "events:read".to_owned()));
    let page = admin.post(create, &form).await;
    page.shows("not shown again");
    let secret = Regex::new("svc_[a-z]+_[A-Za-z0-9]+_[A-Za-z0-9_]+").unwrap();
    let secret = secret.find(&page.text).unwrap().as_str().to_owned();
    let (status, _) = console.app.client(&secret).get_authority("svc:agent:acme:invoice-bot").await;
    assert_eq!(status, 200);
    let address = links(&page, "/console/records/api-keys/svc[^\"/]+").remove(0);
    let page = admin.get(&address).await;
    page.shows("support desk");
    page.shows("events:read");
    assert!(!page.text.contains(&secret));
    let revoke = format!("{address}/revoke");
    let page = admin.get(&revoke).await;
    admin.post(&revoke, &page.form(&revoke)).await.shows("Type support desk exactly");
    let form = page.form_with(&revoke, "name", "support desk");
    admin.post(&revoke, &form).await.shows("<span class=\"state revoked\">revoked</span>");
    let (status, _) = console.app.client(&secret).get_authority("svc:agent:acme:invoice-bot").await;
    assert_eq!(status, 401);
}
