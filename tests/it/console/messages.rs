//! The page for the channels of messages.

use serde_json::json;

use super::{APPROVER, Console, browser::Page};
use crate::support::Answered;

const LIST: &str = "/console/messages";

fn with(page: &Page, action: &str, values: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut form = page.form(action);
    form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_begins_with_the_settings_of_the_tenant() {
    let console = Console::start().await;
    let body = json!({"message_defaults": {"actions": ["payment.*"]}});
    console.app.owner().update_tenant("acme", body).await.assert_status(200);
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get(LIST).await;
    page.shows("id=\"actions\" name=\"actions\" value=\"payment.*\"");
    let url = "https://hooks.slack.com/services/c4p4b1l1ty";
    let mut form = with(&page, LIST, &[("kind", "slack"), ("url", url)]);
    form.retain(|(name, _)| name != "actions");
    form.push(("actions".to_owned(), String::new()));
    browser.post(LIST, &form).await.shows("The channel is added.");
    // Fields that the person cleared stay empty.
    let listed = console.app.person("svc:tenant:acme", "approver", APPROVER.1);
    let (_, listed) = listed.list_message_channels("").await;
    assert_eq!(listed["message_channels"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed["message_channels"][0]["settings"]["actions"], json!([]), "{listed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_adds_changes_and_deletes_a_channel() {
    let console = Console::start().await;
    let mut browser = console.signed_in(APPROVER).await;
    browser.get("/console").await.shows("href=\"/console/messages\"");
    let page = browser.get(LIST).await;
    page.shows("No channels");
    // The kind `email` needs an SMTP server. Only an admin adds a chat of the tenant.
    assert!(!page.text.contains("value=\"email\""), "{}", page.text);
    assert!(!page.text.contains("for_tenant"), "{}", page.text);
    let wrong = [("kind", "slack"), ("url", "https://10.0.0.1/secret"), ("label", "Pay <me>")];
    let refused = browser.post(LIST, &with(&page, LIST, &wrong)).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("<h1>Not added</h1>");
    refused.shows("value=\"Pay &lt;me&gt;\"");
    let url = "https://hooks.slack.com/services/c4p4b1l1ty";
    let right = [("kind", "slack"), ("url", url), ("label", "Pay <me>"), ("actions", "payment.*")];
    let added = browser.post(LIST, &with(&refused, LIST, &right)).await;
    added.shows("The channel is added.");
    added.shows("Pay &lt;me&gt;");
    assert!(!added.text.contains("c4p4b1l1ty"), "{}", added.text);

    let path = added.text.split("href=\"/console/messages/").nth(1).unwrap();
    let path = format!("{LIST}/{}", path.split('"').next().unwrap());
    let one = browser.get(&path).await;
    one.shows("value=\"payment.*\"");
    let action = one.text.split("<form class=\"fields\" method=\"post\" action=\"").nth(1).unwrap();
    let action = action.split('"').next().unwrap().to_owned();
    let half = [("do", "save"), ("label", "Other"), ("least_amount", "1000")];
    let refused = browser.post(&action, &with(&one, &action, &half)).await;
    refused.shows("<h1>Not saved</h1>");
    refused.shows("value=\"1000\"");
    let whole = [("do", "save"), ("label", "Other"), ("least_amount", "1000"), ("currency", "eur")];
    let saved = browser.post(&action, &with(&one, &action, &whole)).await;
    saved.shows("The settings are saved.");
    saved.shows("value=\"EUR\"");
    let failing = "UPDATE message_channels SET failing_since = now(), last_error = 'status_404'";
    console.app.database.run(failing).await;
    browser.get("/console").await.shows("<strong class=\"num\">1</strong> <span>Failing channels");
    browser.get(LIST).await.shows("status_404");
    let deleted = browser.post(&action, &with(&one, &action, &[("do", "delete")])).await;
    deleted.shows("The channel is deleted.");
    deleted.shows("No channels");
}
