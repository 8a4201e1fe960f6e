//! Policies: written as drafts, tried on recent decisions, and activated only then.

use serde_json::{Value, json};

use super::{
    Console,
    browser::{Browser, Page},
};
use crate::support::{Answered, Plain};

const CREATE: &str = "/console/records/policies/new/create";
pub(super) const ALL: &str =
    "@id(\"no-payments\")\nforbid (principal, action in Svc::Action::\"payment\", resource);\n";

pub(super) async fn owner(console: &Console) -> Browser {
    let mut browser = console.browser();
    browser.sign_in("owner", "operator@localhost", "/console/records").await;
    browser
}

/// Writes a policy; returns its id.
pub(super) async fn written(console: &Console, browser: &mut Browser, text: &str) -> String {
    let page = browser.get(CREATE).await;
    assert!(!page.text.contains("name=\"m.state\""), "{}", page.text);
    let mut form = page.form(CREATE);
    // A state that the form does not offer is ignored.
    for (name, value) in [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.state", "active"),
        ("m.regime", "internal"),
        ("m.name", "No payments"),
        ("m.cedar", text),
    ] {
        form.push((name.to_owned(), value.to_owned()));
    }
    let page = browser.post(CREATE, &form).await;
    page.shows("Created.");
    let at = page.text.find("href=\"/console/policies/").unwrap() + 24;
    let id = page.text[at..].split('"').next().unwrap().replace("%3A", ":");
    let id = id.trim_start_matches('/').to_owned();
    assert_eq!(policy(console, &id).await["state"], "draft");
    id
}

pub(super) async fn policy(console: &Console, id: &str) -> Value {
    let found = console.app.owner().get_policy(id).await.assert_status(200);
    found["policy"].clone()
}

/// The fields of a form that activates the first version of [`ALL`], while no version is active.
fn version_one() -> [(String, String); 3] {
    let digest = hex::encode(authority_crypto::sha256(ALL.as_bytes()));
    [("version", "1".to_owned()), ("digest", digest), ("base", "none".to_owned())]
        .map(|(name, value)| (name.to_owned(), value))
}

/// Sends the editor's text.
async fn edit(browser: &mut Browser, path: &str, text: &str, act: &str) -> Page {
    let page = browser.get(path).await;
    let action = path.replace(':', "%3A");
    let mut form = page.form_with(&action, "cedar", text);
    form.push(("do".to_owned(), act.to_owned()));
    browser.post(path, &form).await
}

/// A changed text and a missing reason are refused. The reason stays in its field after another
/// error.
async fn nothing_is_activated_otherwise(
    console: &Console,
    owner: &mut Browser,
    page: &Page,
    id: &str,
) {
    let activate = format!("/console/policies/{id}/activate");
    let action = activate.replace(':', "%3A");
    let form = page.form(&action);
    for member in ["digest", "base"] {
        let mut other = form.clone();
        other.iter_mut().find(|(name, _)| name == member).unwrap().1 = "0".repeat(64);
        let refused = owner.post(&activate, &other).await;
        assert_eq!(refused.status, 409, "{member}: {}", refused.text);
        refused.shows("<h1>Not activated</h1>");
        assert_eq!(policy(console, id).await["state"], "draft");
    }
    let mut without = form.clone();
    without.push(("reason".to_owned(), " \r\n".to_owned()));
    for form in [&form, &without] {
        let refused = owner.post(&activate, form).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        refused.shows("Enter a reason. The policy&#39;s history shows it.");
        refused
            .shows("name=\"reason\" rows=\"2\" maxlength=\"2000\" required aria-invalid=\"true\"");
        assert_eq!(policy(console, id).await["state"], "draft");
    }
    let mut other = page.form_with(&action, "digest", &"0".repeat(64));
    other.push(("reason".to_owned(), "The <b>board's</b> decision.".to_owned()));
    owner
        .post(&activate, &other)
        .await
        .shows("The &lt;b&gt;board&#39;s&lt;/b&gt; decision.</textarea>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_checked_tried_and_activated() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let path = format!("/console/policies/{id}");
    let page =
        edit(&mut owner, &path, "forbid (principal, action, resource)\nwhen { contexx };", "try")
            .await;
    page.shows("The text is not valid");
    // The position is shown once, with its line.
    page.shows("<strong>Line 2, column ");
    assert!(!page.text.contains("line 2, column"), "{}", page.text);
    page.shows("<br><code><span class=\"dim\">2</span> when { contexx };</code>");
    assert!(!page.text.contains("Effect on past decisions"));
    let page = edit(&mut owner, &path, ALL, "try").await;
    page.shows("The text is valid");
    page.shows("Of the last <strong>1</strong> decision, <strong>1</strong> would be decided differently than by the policies in force now.");
    page.shows("<strong class=\"verdict held\">held</strong>");
    page.shows("<strong class=\"verdict denied\">denied</strong>");

    page.shows("<p>1 is newly denied.</p>");
    page.shows("<td class=\"num\" data-head=\"Amount\">25\u{202f}000.00\u{202f}EUR</td>");

    let activate = format!("{path}/activate");
    let action = activate.replace(':', "%3A");
    let page = owner.get(&format!("{activate}?version=1")).await;
    page.shows("Of the last <strong>1</strong> decision");
    nothing_is_activated_otherwise(&console, &mut owner, &page, &id).await;
    let form = page.form_with(&action, "reason", "The board's\r\ndecision of 3 May.");
    owner.post(&activate, &form).await.shows("The text is in force.");
    let active = policy(&console, &id).await;
    assert_eq!(
        (active["state"].text(), active["activation_reason"].text()),
        ("active", "The board's\ndecision of 3 May.")
    );
    let page = owner.get(&path).await;
    page.shows("by <span class=\"id\">operator@localhost</span>. Reason: <q>The board&#39;s\ndecision of 3 May.</q>.");
    assert!(!page.text.contains("Another version replaced it"), "{}", page.text);

    // Another text is a draft and is compared with the text in force, also before it is saved.
    let narrower = ALL.replace("resource);", "resource)\nwhen { context has amount };");
    let page = edit(&mut owner, &path, &narrower, "try").await;
    page.shows("From the text in force to yours");
    // The text that was tried is the text that is activated.
    page.shows("<button form=\"editor\" name=\"do\" value=\"activate\">");
    let next = edit(&mut owner, &path, &format!("// Narrower.\n{narrower}"), "activate").await;
    next.shows("Activate version 2 of");
    next.shows("// Narrower.");
    let page = edit(&mut owner, &path, &narrower, "try").await;
    page.shows("as it is saved, not the text below");
    let page = edit(&mut owner, &path, &narrower, "save").await;
    page.shows("Version 3 is not active");
    page.shows("when { context has amount };");
    let now = policy(&console, &id).await;
    assert_eq!((now["version"].number(), now["draft_version"].number()), (1, 3), "{now:#}");
    let page = owner.get(&format!("{activate}?version=3")).await;
    let form = page.form_with(&action, "reason", "Only where there is an amount.");
    owner.post(&activate, &form).await.shows("The text is in force.");
    assert_eq!(policy(&console, &id).await["version"], 3);
    let page = owner.get(&path).await;
    page.shows("Reason: <q>Only where there is an amount.</q>.");
    page.shows("decision of 3 May.</q>. Another version replaced it <time");
    owner.get(&format!("{path}?version=1")).await.shows("From version 1 to the present text");

    let retire = format!("{path}/retire");
    let page = owner.get(&retire).await;
    // The request was held before the policy existed. The policy would deny it now.
    page.shows("Of the last <strong>1</strong> decision, <strong>1</strong> would be decided differently than by the policies in force now.");
    let action = retire.replace(':', "%3A");
    // Retiring is final and requires the policy's name.
    let unnamed = owner.post(&retire, &page.form(&action)).await;
    assert_eq!(unnamed.status, 400, "{}", unnamed.text);
    unnamed.shows("<h1>Not retired</h1>");
    unnamed.shows("Type No payments exactly, to confirm.");
    assert_eq!(policy(&console, &id).await["state"], "active");
    let form = page.form_with(&action, "name", "no payments");
    owner.post(&retire, &form).await.shows("The policy is retired.");
    assert_eq!(policy(&console, &id).await["state"], "retired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_observes_and_the_page_shows_its_counts() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let path = format!("/console/policies/{id}");
    let form = |page: &Page, verb: &str| page.form(&format!("{path}/{verb}").replace(':', "%3A"));
    let page = owner.get(&path).await;
    let sent = form(&page, "observe");
    let page = owner.post(&format!("{path}/observe"), &sent).await;
    page.shows("The version is observing. It changes no decision.");
    page.shows("no decision is counted yet.");
    assert_eq!(policy(&console, &id).await["state"], "draft");
    console.held(25_000.0).await;
    console.app.count_observations().await;
    let page = owner.get(&path).await;
    page.shows("Version 1 is observing");
    page.shows(
        "of 1 decision, 1 would have been different. \
         0 would have been permitted, 0 held and 1 denied.",
    );
    let sent = form(&page, "unobserve");
    let page = owner.post(&format!("{path}/unobserve"), &sent).await;
    page.shows("The observation has ended.");
    page.shows("<br>Observed from ");
    assert!(!page.text.contains("Version 1 is observing"), "{}", page.text);
    // The pages of records don't offer the operations.
    for verb in ["observe", "unobserve"] {
        let verb = format!("/console/records/policies/{id}/{verb}");
        assert_eq!(owner.get(&verb).await.status, 404, "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_was_run_against_nothing_is_not_activated() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let activate = format!("/console/policies/{id}/activate");
    let page = owner.get(&format!("{activate}?version=1")).await;
    page.shows("You cannot activate this here");
    assert!(!page.text.contains("name=\"digest\""));
    let mut form = page.form("/console/sign-out");
    form.extend(version_one());
    let page = owner.post(&activate, &form).await;
    assert_eq!(page.status, 409, "{}", page.text);
    page.shows("You cannot activate this here");
    assert_eq!(policy(&console, &id).await["state"], "draft");
    // The pages of records can't activate it either.
    let verb = format!("/console/records/policies/{id}/activate");
    assert_eq!(owner.get(&verb).await.status, 404);
    let update = format!("/console/records/policies/{id}/update");
    let page = owner.get(&update).await;
    assert!(!page.text.contains("name=\"m.state\"") && !page.text.contains("name=\"m.cedar\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_write_policies_reads_them() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    for (role, writes) in [("admin", true), ("auditor", false)] {
        let mut browser = console.browser();
        browser.sign_in(role, &format!("{role}@acme.example"), "/console/records").await;
        let page = browser.get(&format!("/console/policies/{id}")).await;
        page.shows("no-payments");
        for form in ["value=\"try\"", "value=\"save\""] {
            assert_eq!(page.text.contains(form), writes, "{role}: {form}");
        }
        // An admin may activate the text of another person.
        assert_eq!(page.text.contains("/activate"), writes, "{role}");
        let mut form = page.form("/console/sign-out");
        form.extend(version_one());
        if !writes {
            let page = browser.post(&format!("/console/policies/{id}/activate"), &form).await;
            assert_eq!(page.status, 403, "{role}: {}", page.text);
        }
        assert_eq!(policy(&console, &id).await["state"], "draft");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_editors_the_later_writes_over_nothing() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let path = format!("/console/policies/{id}");
    let action = path.replace(':', "%3A");
    let (first, second) = (owner.get(&path).await, owner.get(&path).await);
    let sent = |page: &Page, text: &str, act: &str| {
        let mut form = page.form_with(&action, "cedar", text);
        form.push(("do".to_owned(), act.to_owned()));
        form
    };
    let earlier = ALL.replace("no-payments", "written-first");
    owner.post(&path, &sent(&first, &earlier, "save")).await.shows("The text is saved as a draft.");
    let later = ALL.replace("no-payments", "written-second");
    let refused = owner.post(&path, &sent(&second, &later, "save")).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    refused.shows("<h1>Not saved</h1>");
    refused.shows("Somebody changed this policy after you opened it");
    // The page shows the differences and the way to continue, and keeps the typed text.
    refused.shows("@id(&quot;written-first&quot;)</code>");
    refused.shows("written-second");
    assert_eq!(policy(&console, &id).await["cedar"], json!(earlier));
    // A check on an old page also shows that the policy changed, before the text is saved.
    let checked = owner.post(&path, &sent(&second, &later, "check")).await;
    checked.shows("Somebody changed this policy after you opened it");
    // The error page has shown the other text. Its form saves a new draft.
    owner.post(&path, &sent(&refused, &later, "save")).await.shows("The text is saved as a draft.");
    assert_eq!(policy(&console, &id).await["cedar"], json!(later));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_activation_is_of_the_difference_that_was_shown() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let path = format!("/console/policies/{id}");
    let activate = format!("{path}/activate");
    let action = activate.replace(':', "%3A");
    let first = owner.get(&format!("{activate}?version=1")).await;
    let form = first.form_with(&action, "reason", "First.");
    owner.post(&activate, &form).await.shows("The text is in force.");
    for (number, name) in [(2, "second"), (3, "third")] {
        let page = edit(&mut owner, &path, &ALL.replace("no-payments", name), "save").await;
        page.shows(&format!("Version {number} is not active"));
    }
    // The page compared with version 1. Then another user activates version 3.
    let shown = owner.get(&format!("{activate}?version=2")).await;
    let third = owner.get(&format!("{activate}?version=3")).await;
    let third = third.form_with(&action, "reason", "Third.");
    owner.post(&activate, &third).await.shows("The text is in force.");
    let stale = owner.post(&activate, &shown.form_with(&action, "reason", "Second.")).await;
    assert_eq!(stale.status, 409, "{}", stale.text);
    stale.shows("Another text is in force since you opened the page.");
    stale.shows("@id(&quot;third&quot;)</code>");
    assert_eq!(policy(&console, &id).await["version"], 3);
    // The new page compares with version 3, and its form can activate the draft.
    stale.shows(">Second.</textarea>");
    let form = stale.form_with(&action, "reason", "Second.");
    owner.post(&activate, &form).await.shows("The text is in force.");
    assert_eq!(policy(&console, &id).await["version"], 2);

    // A policy can't be retired in a state that was not shown either.
    let retire = format!("{path}/retire");
    let page = owner.get(&retire).await;
    edit(&mut owner, &path, ALL, "save").await.shows("The text is saved as a draft.");
    let form = page.form_with(&retire.replace(':', "%3A"), "name", "No payments");
    let stale = owner.post(&retire, &form).await;
    assert_eq!(stale.status, 409, "{}", stale.text);
    stale.shows("<h1>Not retired</h1>");
    stale.shows("Somebody changed the policy after you opened this page.");
    assert_eq!(policy(&console, &id).await["state"], "active");
    let page = owner.get(&retire).await;
    let form = page.form_with(&retire.replace(':', "%3A"), "name", "No payments");
    owner.post(&retire, &form).await.shows("The policy is retired.");
    let page = owner.get(&path).await;
    page.shows("It was retired <time ");
    page.shows(&format!(
        "/console/records/policies/{id}#history\">Its history</a> shows who retired it."
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_text_changes_of_a_held_request_is_said() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut owner = owner(&console).await;
    let two = "@id(\"two-people\")\n@decision(\"require_approval\")\n@approvals(\"2\")\nforbid (principal, action in \
               Svc::Action::\"payment\", resource);\n";
    let id = written(&console, &mut owner, two).await;
    let page = edit(&mut owner, &format!("/console/policies/{id}"), two, "try").await;
    page.shows(
        "None is newly allowed or denied; 1 stays held but needs 2 people instead of 1 person.",
    );
    page.shows("<strong class=\"verdict held\">held</strong>, 1 person");
    page.shows("<strong class=\"verdict held\">held</strong>, 2 people");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_narrower_policy_permits_is_said_on_its_forms() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let (_, policies) = console.app.owner().list_policies("tenant_id=svc:tenant:acme").await;
    let id = policies["policies"][0]["id"].as_str().unwrap().to_owned();
    let edit = owner.get(&format!("/console/records/policies/{id}/update")).await;
    edit.shows("the policy denies and holds no requests outside them");
    let target = owner.get("/console/records/applies-to/new/create").await;
    target.shows("an active policy no longer denies or holds requests that it does not cover");
}
