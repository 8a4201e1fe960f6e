//! Forms that end or limit records: their warnings, and the operations that a record's state does
//! not permit.

use serde_json::{Value, json};

use super::{
    Console,
    browser::{Browser, Page},
};
use crate::support::{Answered, Plain, only};

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const CREATE: &str = "/console/records/delegations/new/create";
const BOT: &str = "svc:agent:acme:invoice-bot";

async fn delegation(console: &Console) -> Value {
    let listed = console
        .app
        .owner()
        .list_delegations(&format!("delegate_id={BOT}"))
        .await
        .assert_status(200);
    listed["delegations"][0].clone()
}

async fn state(console: &Console, id: &str) -> Value {
    let found = console.app.owner().get_delegation(id).await.assert_status(200);
    found["delegation"]["state"].clone()
}

async fn owner(console: &Console) -> Browser {
    let mut browser = console.browser();
    browser.sign_in("owner", "operator@localhost", "/console/records").await;
    browser
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation_is_revoked_by_its_delegates_name_with_a_reason() {
    let console = Console::start().await;
    let given = delegation(&console).await;
    let id = given["id"].as_str().unwrap().to_owned();
    let record = format!("/console/records/delegations/{id}");
    let mut admin = console.signed_in_at(ADMIN, &record).await;
    let page = admin.get(&record).await;
    page.shows(
        "Not possible now: Reinstate, as it is active; Withdraw, as it has no standing approval.",
    );
    console.app.owner().reinstate_delegation(&id).await.assert_status(409);

    let path = format!("{record}/revoke");
    let action = path.replace(':', "%3A");
    let page = admin.get(&path).await;
    page.shows("to invoice-bot?");
    page.shows("That ends at once, and for good.");
    let (status, radius) = console.app.owner().get_blast_radius(&id).await;
    assert_eq!((status, radius["delegation_total"].number()), (200, 1), "{radius:#}");
    page.shows("No delegation is below it. 1 agent acts under it.");
    page.shows("Type <strong>invoice-bot</strong> to confirm");
    assert!(!page.text.contains("An API key ends"), "{}", page.text);
    let typed = |name: &str, reason: &str| {
        let mut form = page.form_with(&action, "name", name);
        form.push(("m.reason".to_owned(), reason.to_owned()));
        form
    };
    for (name, reason, shows) in [
        ("support-bot", "left", "Type invoice-bot exactly, to confirm."),
        ("invoice-bot", "", "Give a reason, for the record."),
    ] {
        let refused = admin.post(&path, &typed(name, reason)).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        refused.shows(shows);
        assert_eq!(state(&console, &id).await, "active");
    }
    let page = admin.post(&path, &typed("invoice-bot", "left the company")).await;
    page.shows("Revoked.");
    assert_eq!(state(&console, &id).await, "revoked");
    // A revoked delegation has no further operations.
    page.shows("Revoke, as it is revoked, which is final");
    assert!(!page.text.contains("/revoke\""), "{}", page.text);
    for verb in ["revoke", "suspend", "reinstate", "approve", "withdraw"] {
        let (status, refused) =
            console.app.owner().act_on_delegation(&id, verb, only("reason", "x")).await;
        assert!([400, 403, 409].contains(&status), "{verb}: {refused:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation_without_limits_is_made_after_the_form_said_so() {
    let console = Console::start().await;
    let from = delegation(&console).await["delegator_id"].as_str().unwrap().to_owned();
    let mut owner = owner(&console).await;
    let page = owner.get(CREATE).await;
    // Records are chosen by name, and limits have a field for each part. The tenant is required if
    // it is not known.
    page.shows("<select id=\"m.delegator_id\"");
    page.shows(&format!("<option value=\"{BOT}\">invoice-bot (Pays supplier invoices)</option>"));
    page.shows("<option value=\"86400\">a day</option>");
    page.shows("Tenant ID <span class=\"dim\">(required)</span>");
    let mut form = page.form(CREATE);
    for (name, value) in [
        ("m.tenant_id", "svc:tenant:acme"),
        ("m.delegator_id", &from),
        ("m.delegate_id", BOT),
        ("m.actions", "report.read"),
    ] {
        form.push((name.to_owned(), value.to_owned()));
    }
    // An expiry time in the past is refused as a mistake.
    let mut over = form.clone();
    over.push(("m.expires_at".to_owned(), "2020-01-01T00:00:00Z".to_owned()));
    let refused = owner.post(CREATE, &over).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("is in the past; give a later time");
    let asked = owner.post(CREATE, &form).await;
    asked.shows("Without limits: any amount, any purpose, everywhere, without an end.");
    asked.shows("Create without limits");
    assert_eq!(asked.path, CREATE);
    // The confirmation is only for these values. With other actions it is requested again.
    form.extend(said(&asked, CREATE));
    let mut other = form.clone();
    other.retain(|(name, _)| name != "m.actions");
    other.push(("m.actions".to_owned(), "paymnt.execute".to_owned()));
    assert_eq!(owner.post(CREATE, &other).await.path, CREATE);
    owner.post(CREATE, &form).await.shows("Created.");
    // Narrowing a delegation to a past expiry time is refused as well.
    let id = delegation(&console).await["id"].as_str().unwrap().to_owned();
    let narrow = format!("/console/records/delegations/{id}/narrow");
    let page = owner.get(&narrow).await;
    let over = page.form_with(&narrow.replace(':', "%3A"), "m.expires_at", "2020-01-01T00:00:00Z");
    let refused = owner.post(&narrow, &over).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("is in the past; give a later time");
    // Narrowing is final. The warning is shown first, with suggestions for misspelt actions.
    console.held(25_000.0).await;
    let action = narrow.replace(':', "%3A");
    let mut form = page.form_with(&action, "m.actions", "payment.excute");
    let asked = owner.post(&narrow, &form).await;
    asked.shows("Narrowing cannot be undone.");
    asked.shows("Did you mean `payment.execute`?");
    asked.shows("Narrow for good</button>");
    let actions = async || delegation(&console).await["actions"].clone();
    assert_eq!(actions().await, json!(["payment.*", "invoice.*"]));
    form = page.form_with(&action, "m.actions", "payment.execute");
    let asked = owner.post(&narrow, &form).await;
    assert!(!asked.text.contains("Did you mean"), "{}", asked.text);
    form.extend(said(&asked, &action));
    owner.post(&narrow, &form).await.shows("Narrowed.");
    assert_eq!(actions().await, json!(["payment.execute"]));
}

/// The hidden fields with which a form confirms its warnings.
fn said(page: &Page, action: &str) -> Vec<(String, String)> {
    page.form(action).into_iter().filter(|(name, _)| name == "said").collect()
}

async fn principal(console: &Console, id: &str) -> Value {
    let found = console.app.owner().get_principal(id).await.assert_status(200);
    found["principal"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_principal_ends_by_its_name_after_what_ends_with_it() {
    let console = Console::start().await;
    let given = delegation(&console).await;
    let mut owner = owner(&console).await;
    let record = format!("/console/records/principals/{BOT}");
    let address = record.replace(':', "%3A");
    // A form that sets a final state requires a confirmation. Other changes do not need one.
    let (update, action) = (format!("{record}/update"), format!("{address}/update"));
    let page = owner.get(&update).await;
    let form = |state: &str| {
        let mut form = page.form(&action);
        form.extend(page.fields(&action));
        form.retain(|(name, _)| name != "m.state");
        form.push(("m.state".to_owned(), state.to_owned()));
        form
    };
    let last = owner.post(&update, &form("revoked")).await;
    assert_eq!(last.status, 200, "{}", last.text);
    last.shows("Set “Pays supplier invoices” to revoked?");
    last.shows("1 delegation that it holds or gave ends with it.");
    last.shows(given["id"].as_str().unwrap());
    last.shows("Type <strong>invoice-bot</strong> to confirm");
    assert_eq!(principal(&console, BOT).await["state"], "active");
    let mut renamed = form("revoked");
    renamed.retain(|(name, _)| name != "m.display_name");
    renamed.push(("m.display_name".to_owned(), "Somebody else".to_owned()));
    owner.post(&update, &renamed).await.shows("<bdi>Somebody else</bdi>");
    let wrong = owner.post(&update, &last.form_with(&action, "name", "support-bot")).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
    wrong.shows("<h1>Not changed</h1>");
    wrong.shows("Type invoice-bot exactly, to confirm.");
    assert_eq!(principal(&console, BOT).await["state"], "active");
    owner.post(&update, &form("suspended")).await.shows("Updated.");
    let page = owner.get(&update).await;
    let mut revoked = page.form(&action);
    revoked.push(("m.state".to_owned(), "revoked".to_owned()));
    let last = owner.post(&update, &revoked).await;
    owner.post(&update, &last.form_with(&action, "name", "invoice-bot")).await.shows("Updated.");
    assert_eq!(principal(&console, BOT).await["state"], "revoked");

    // A deletion shows the same consequences.
    let other = format!("{}/delete", record.replace("invoice-bot", "support-bot"));
    let page = owner.get(&other).await;
    page.shows("No delegation that is in force is held or given by it.");
    page.shows("Type <strong>support-bot</strong> to confirm");
    let refused = owner.post(&other, &page.form(&other.replace(':', "%3A"))).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    // For a tenant, the page counts all of its records.
    let page = owner.get("/console/records/tenants/svc:tenant:acme/delete").await;
    page.shows("All of this stops");
    page.shows("2 delegations");
    page.shows("to confirm");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_in_words_and_before_what_is_permitted() {
    let console = Console::start().await;
    let from = delegation(&console).await["delegator_id"].as_str().unwrap().to_owned();
    let mut owner = owner(&console).await;
    let page = owner.get(CREATE).await;
    // The only tenant is filled in, and its slug is also accepted.
    page.shows("<option value=\"svc:tenant:acme\" selected>");
    let form = |members: &[(&str, &str)]| {
        let mut form = page.form(CREATE);
        let usual =
            [("m.tenant_id", "acme"), ("m.delegator_id", &*from), ("m.actions", "report.read")];
        let all = usual.iter().chain(members);
        form.extend(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        form
    };
    let amount = [("m.delegate_id", BOT), ("m.max_amount", "100 EUR"), ("m.currency", "EUR")];
    let refused = owner.post(CREATE, &form(&amount)).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("`100 EUR` must be an amount in digits, without a currency or separators");
    assert!(!refused.text.contains("does not match"), "{}", refused.text);
    let until = [("m.delegate_id", BOT), ("m.expires_at", "next year")];
    let refused = owner.post(CREATE, &form(&until)).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("must be a day, such as 2026-12-31");
    // An unknown delegate is reported before any confirmation. The line ends of a browser are not
    // hidden characters.
    let unknown = [("m.delegate_id", "svc:agent:acme:nobody"), ("m.purposes", "")];
    let mut unknown = form(&unknown);
    unknown.retain(|(name, _)| name != "m.actions");
    unknown.push(("m.actions".to_owned(), "report.read\r\nreport.write".to_owned()));
    let refused = owner.post(CREATE, &unknown).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("id=\"wrong-m.delegate_id\">is unknown");
    // The form is long. Errors are also listed above it, with links to the fields.
    refused.shows("id=\"problem\" tabindex=\"-1\" autofocus>");
    refused.shows("<li><a href=\"#m.delegate_id\">Who may act</a>: is unknown</li>");
    for text in ["Without limits", "It has characters that cannot be seen"] {
        assert!(!refused.text.contains(text), "{text}: {}", refused.text);
    }
    owner.post(CREATE, &form(&[("m.delegate_id", BOT)])).await.shows("Without limits: ");
    let machine = owner.get("/console/records/state-machines/new/create").await;
    machine.shows("<label for=\"m.tenant_id\">Tenant ID</label>");
    machine.shows("Without a tenant, the machine is the installation&#39;s own");
    owner.get("/console/records/principals").await.shows("<label>Search <input name=\"m.q\"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_not_set_is_not_zero() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let page = owner.get("/console/records/tenants/svc:tenant:acme").await;
    for (label, text) in [
        ("Valid for seconds", "not set; the default is 60"),
        ("Decisions per second", "not set: no limit"),
        ("Approval max auth age seconds", "not set: any time"),
    ] {
        page.shows(&format!("{label}</dt><dd>{text}</dd>"));
    }
}
