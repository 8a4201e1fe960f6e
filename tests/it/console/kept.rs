//! Forms send unchanged values back exactly, byte for byte.

use serde_json::{Value, json};

use super::{
    Console,
    browser::{Browser, Page},
};
use crate::support::{Answered, Members, Plain, asking, new_policy};

async fn owner(console: &Console) -> Browser {
    let mut browser = console.browser();
    browser.sign_in("owner", "operator@localhost", "/console/records").await;
    browser
}

/// Returns every field of the form as a browser sends it without changes.
fn whole(page: &Page, action: &str) -> Vec<(String, String)> {
    let mut form = page.form(action);
    form.extend(page.fields(action));
    form
}

fn set(form: &mut Vec<(String, String)>, name: &str, value: &str) {
    form.retain(|(known, _)| known != name);
    form.push((name.to_owned(), value.to_owned()));
}

async fn made(console: &Console, path: &str, record: Value, word: &str) -> (String, Value) {
    let made =
        console.app.owner().post(&format!("/api/v1/{path}"), record).await.assert_status(201);
    (made[word]["id"].as_str().unwrap().to_owned(), made[word].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_keeps_what_nobody_changed() {
    let console = Console::start().await;
    let notes = "\n first\r\nsecond \u{2764}\u{fe0f}\rthird\u{202e}\n\"&<>' ⟨U+00A0⟩ ";
    let record = json!({
        "tenant_id": "svc:tenant:acme", "name": "Card\u{a0}payments", "notes": notes,
        "actions": ["card.pay"], "metadata": {"a": "1\u{a0}000\r\n\u{200b}"},
        "function_signature": "\u{a0}x(\r\n)\u{3000}", "tags": ["\u{a0}x\u{3000}"],
    });
    let (id, before) = made(&console, "tools", record, "tool").await;
    let mut owner = owner(&console).await;
    let action = format!("/console/records/tools/{}/update", id.replace(':', "%3A"));
    let page = owner.get(&action).await;
    page.shows("characters that cannot be seen: ⟨U+00A0⟩. They stay");
    page.shows("⟨U+000D⟩ ⟨U+202E⟩ ⟨U+FE0F⟩");
    let mut form = whole(&page, &action);
    set(&mut form, "m.actions", "card.pay\r\ncard.refund");
    let asked = owner.post(&action, &form).await;
    asked.shows("Less will be asked of requests");
    let asked = asked.form(&action).into_iter().filter(|(name, _)| name == "said");
    form.extend(asked);
    owner.post(&action, &form).await.shows("Updated.");
    let (_, after) = console.app.owner().get_tool(&id).await;
    for (name, value) in before.as_object().unwrap() {
        if !["actions", "warnings", "updated_at", "version", "revision"].contains(&name.as_str()) {
            assert_eq!(&after["tool"][name], value, "{name}");
        }
    }
    assert_eq!(after["tool"]["actions"].texts(), ["card.pay", "card.refund"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_denies_what_it_denied_before() {
    let console = Console::start().await;
    let cedar = "@id(\"no-x\")\r\nforbid (principal, action, resource)\r\nwhen { context has input && \
                 context.input has supplier && context.input.supplier == \"Clean\u{a0}Ltd\" };\r\n";
    let record = new_policy("internal", cedar).with("name", "No");
    let (id, _) = made(&console, "policies", record, "policy").await;
    let mut owner = owner(&console).await;
    let (path, action) = (
        format!("/console/policies/{id}"),
        format!("/console/policies/{}", id.replace(':', "%3A")),
    );
    let activate = async |owner: &mut Browser, version: u32| {
        let page = owner.get(&format!("{path}/activate?version={version}")).await;
        let form = page.form_with(&format!("{action}/activate"), "reason", "Agreed.");
        owner.post(&format!("{path}/activate"), &form).await.shows("The text is in force.");
    };
    let mut question = asking(1_200.0, "DE");
    question["context"]["supplier"] = "Clean\u{a0}Ltd".into();
    let ask = async || {
        let answer = console.agent.evaluate(question.clone()).await.assert_status(200);
        answer["decision"].clone()
    };
    assert_eq!(ask().await, "deny");
    let page = owner.get(&path).await;
    page.shows("characters that cannot be seen: ⟨U+000D⟩ ⟨U+00A0⟩");
    let mut form = whole(&page, &action);
    let text = form.iter().find(|(name, _)| name == "cedar").unwrap().1.clone();
    set(&mut form, "cedar", &format!("// A comment.\r\n{text}"));
    form.push(("do".to_owned(), "save".to_owned()));
    owner.post(&path, &form).await.shows("The text is saved as a draft.");
    activate(&mut owner, 2).await;
    let (_, found) = console.app.owner().get_policy(&id).await;
    assert_eq!(found["policy"]["cedar"], format!("// A comment.\r\n{cedar}"));
    assert_eq!(ask().await, "deny");
}

/// A page of an older node lacks the fields that a newer node has added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_form_does_not_have_stays() {
    let console = Console::start().await;
    let record = json!({
        "tenant_id": "svc:tenant:acme", "label": "bound", "scopes": ["runtime:write"],
        "principal_ids": ["svc:agent:acme:invoice-bot"], "ip_allowlist": ["10.0.0.0/8"],
        "expires_at": "2099-01-01T00:00:00Z",
    });
    let (id, before) = made(&console, "api-keys", record, "api_key").await;
    let mut owner = owner(&console).await;
    let action = format!("/console/records/api-keys/{}/update", id.replace(':', "%3A"));
    let page = owner.get(&action).await;
    let all = whole(&page, &action);
    let mut form = all.clone();
    form.retain(|(name, _)| ["csrf", "key", "version"].contains(&name.as_str()));
    form.push(("m.label".to_owned(), "other".to_owned()));
    owner.post(&action, &form).await.shows("Updated.");
    let stored = async || {
        let (_, found) = console.app.owner().get_api_key(&id).await;
        found["api_key"].clone()
    };
    let after = stored().await;
    assert_eq!(after["label"], "other");
    for name in ["scopes", "principal_ids", "ip_allowlist", "expires_at"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    // A field that is sent twice is an error, and neither value is used.
    for name in ["m.ip_allowlist", "version"] {
        let mut twice = whole(&owner.get(&action).await, &action);
        let value = twice.iter().find(|(known, _)| known == name).unwrap().clone();
        twice.push(value);
        let refused = owner.post(&action, &twice).await;
        assert_eq!(refused.status, 400, "{name}: {}", refused.text);
        assert_eq!(stored().await["ip_allowlist"], before["ip_allowlist"]);
    }
    // A form must name the version that it shows. Without the version it does not replace values.
    for version in [None, Some("*"), Some("")] {
        let mut unnamed = whole(&owner.get(&action).await, &action);
        unnamed.retain(|(name, _)| name != "version");
        unnamed.extend(version.map(|version| ("version".to_owned(), version.to_owned())));
        set(&mut unnamed, "m.label", "unseen");
        let refused = owner.post(&action, &unnamed).await;
        assert_eq!(refused.status, 400, "{version:?}: {}", refused.text);
        assert_eq!(stored().await["label"], "other");
    }
    // A field that a person clears is cleared.
    let mut emptied = whole(&owner.get(&action).await, &action);
    set(&mut emptied, "m.ip_allowlist", "");
    owner.post(&action, &emptied).await.shows("Updated.");
    assert_eq!(stored().await["ip_allowlist"], Value::Null);
}

/// A link may set the target of a stop, but neither its reason nor its idempotency key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_brings_no_key_and_no_reason_to_a_stop() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let page = owner
        .get("/console/stop/confirm?subject=svc:agent:acme:invoice-bot&key=theirs&reason=drill")
        .await;
    let form = whole(&page, "/console/stop/confirm");
    let member = |name: &str| form.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert!(member("key") != "theirs" && member("reason") == "Unexpected behaviour", "{form:?}");
}
