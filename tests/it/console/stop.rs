//! Stop: what ends is shown, a name is typed, and then every decision is a denial until it is released.

use serde_json::{Value, json};

use super::{Console, browser::Browser};
use crate::support::asking;

const ADMIN: (&str, &str) = ("admin", "admin@acme.example");
const AGENT: &str = "svc:agent:acme:invoice-bot";
const CONFIRM: &str = "/console/stop/confirm";

async fn ask(console: &Console) -> Value {
    let (status, answer) =
        console.agent.post("/api/v1/runtime/evaluate", asking(1_200.0, "DE")).await;
    assert_eq!(status, 200, "{answer:#}");
    answer["reason_code"].clone()
}

/// The confirmation's form, filled in.
async fn filled(
    browser: &mut Browser,
    query: &str,
    name: &str,
    why: &str,
) -> Vec<(String, String)> {
    let page = browser.get(&format!("{CONFIRM}?{query}")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let mut form = page.form(CONFIRM);
    form.push(("name".to_owned(), name.to_owned()));
    form.push(("reason".to_owned(), why.to_owned()));
    form
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_stopped_in_two_steps_and_released() {
    let console = Console::start().await;
    assert_eq!(ask(&console).await, "permission_granted");
    let mut browser = console.browser();
    let page = browser.sign_in(ADMIN.0, ADMIN.1, "/console/stop").await;
    page.shows("Nothing is stopped");
    page.shows("href=\"/console/stop/confirm?subject=svc:agent:acme:invoice-bot\"");
    let query = format!("subject={AGENT}");
    let page = browser.get(&format!("{CONFIRM}?{query}")).await;
    page.shows("Pays supplier invoices");
    page.shows("lets <strong title=\"svc:agent:acme:invoice-bot\">invoice-bot</strong>");
    for (name, why, wrong) in
        [("invoice-bo", "pays twice", "Type invoice-bot exactly"), ("invoice-bot", " ", "Say why")]
    {
        let form = filled(&mut browser, &query, name, why).await;
        let page = browser.post(CONFIRM, &form).await;
        assert_eq!(page.status, 400, "{}", page.text);
        page.shows(wrong);
        assert_eq!(ask(&console).await, "permission_granted");
    }
    let form = filled(&mut browser, &query, "Invoice-bot ", "pays twice").await;
    let page = browser.post(CONFIRM, &form).await;
    page.shows("It is stopped");
    page.shows("pays twice");
    // It was permitted before, has reported nothing, and has not asked since.
    page.shows("nothing reported");
    page.shows("No refusal yet");
    let path = page.path.split('?').next().unwrap().to_owned();
    assert_eq!(ask(&console).await, "actor_stopped");
    browser.get(&path).await.shows("Refused once");
    browser.get("/console/stop").await.shows("pays twice");
    // Sent twice, it stops once.
    assert_eq!(browser.post(CONFIRM, &form).await.path.split('?').next(), Some(path.as_str()));

    let release = format!("{path}/release");
    let form = browser.get(&release).await.form(&release);
    browser.post(&release, &form).await.shows("It is released");
    assert_eq!(ask(&console).await, "permission_granted");
    browser.get("/console/stop").await.shows("Nothing is stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_is_suspended_for_everybody_or_for_one() {
    let console = Console::start().await;
    ask(&console).await;
    let mut browser = console.signed_in(ADMIN).await;
    let page = browser.get(&format!("{CONFIRM}?action=payment.*")).await;
    page.shows("In the last day it was asked for by <strong title=\"svc:agent:acme:invoice-bot\">");
    let form = filled(&mut browser, "action=payment.*", "payment.*", "the bank is away").await;
    browser.post(CONFIRM, &form).await.shows("payment.*");
    assert_eq!(ask(&console).await, "capability_quarantined");
    let (_, listed) = console.app.owner().get("/api/v1/quarantines?state=active").await;
    let made = &listed["quarantines"][0];
    assert_eq!((&made["action"], &made["subject_id"]), (&json!("payment.*"), &Value::Null));
    let query = format!("subject={AGENT}&action=refund.execute");
    let form = filled(&mut browser, &query, "invoice-bot", "refunds wrongly").await;
    browser.post(CONFIRM, &form).await.shows("refund.execute of invoice-bot");
    let (_, listed) = console.app.owner().get("/api/v1/quarantines?state=active").await;
    assert_eq!(listed["quarantines"][1]["subject_id"], AGENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_stop_sees_what_stands_or_nothing() {
    let console = Console::start().await;
    let mut auditor = console.browser();
    let page = auditor.sign_in("auditor", "auditor@acme.example", "/console/stop").await;
    page.shows("Nothing is stopped");
    page.shows(">Stopped</a>");
    assert!(!page.text.contains(CONFIRM), "{}", page.text);
    let path = format!("{CONFIRM}?subject={AGENT}");
    let page = auditor.get(&path).await;
    page.shows("You cannot stop this");
    // Who sends the form all the same, is refused by the API.
    let (_, token) = page.form("/console/sign-out").remove(0);
    let members =
        [("csrf", token.as_str()), ("subject", AGENT), ("name", "invoice-bot"), ("reason", "x")];
    let form = members.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(auditor.post(CONFIRM, &form).await.status, 403);
    assert_eq!(ask(&console).await, "permission_granted");
    let mut approver = console.signed_in(super::APPROVER).await;
    let page = approver.get("/console/stop").await;
    assert_eq!(page.status, 403, "{}", page.text);
    assert!(!page.text.contains("href=\"/console/stop\""));
}
