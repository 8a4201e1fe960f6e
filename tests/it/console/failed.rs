//! An act that failed comes first on its page: in the title, in the heading and in the focus.

use super::{
    APPROVER, Console,
    browser::{Browser, Page},
    policies::{self, ALL},
};
use crate::support::new_stop;

const BOT: &str = "svc:agent:acme:invoice-bot";
const STOP: &str = "/console/stop/confirm";

/// Sends the form of a page with these fields.
async fn sent(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> Page {
    let page = browser.get(path).await;
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    let to = path.split('?').next().unwrap();
    let encoded = to.replace(':', "%3A");
    let is_encoded = page.text.contains(&format!("action=\"{encoded}\""));
    let mut form = page.form(if is_encoded { &encoded } else { to });
    form.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    browser.post(to, &form).await
}

#[track_caller]
fn assert_failure_first(page: &Page, status: u16, heading: &str) {
    assert_eq!(page.status, status, "{heading}: {}", page.text);
    page.shows(&format!("<title>{heading}: "));
    let (_, main) = page.text.split_once("<main id=\"main\" tabindex=\"-1\">").unwrap();
    let first = "<div class=\"note bad\" role=\"alert\" id=\"problem\" tabindex=\"-1\" autofocus>";
    let first = format!("{first}<h1>{heading}</h1><p>");
    assert!(main.trim_start().starts_with(&first), "{heading}: {main}");
    assert_eq!(main.matches("<h1").count(), 1, "{heading}: {main}");
    assert_eq!(main.matches("autofocus").count(), 1, "{heading}: {main}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_failed_is_first_on_the_page() {
    let console = Console::start().await;
    let mut admin = console.signed_in(("admin", "admin@acme.example")).await;
    let (agent, action) = (format!("{STOP}?subject={BOT}"), format!("{STOP}?action=payment.*"));
    for (path, name, reason, field) in [
        // A whole tenant.
        (STOP, "acm", "pays twice", "name"),
        (agent.as_str(), "", " ", "reason"),
        // A quarantine has the same page.
        (action.as_str(), "", " ", "reason"),
    ] {
        let page = sent(&mut admin, path, &[("name", name), ("reason", reason)]).await;
        assert_failure_first(&page, 400, "Not stopped");
        page.shows(&format!("<a href=\"#{field}\">Go to the field</a>"));
        page.shows(&format!("id=\"{field}\""));
        page.shows("will be denied");
        assert!(!page.text.contains("is denied until"), "{}", page.text);
    }
    // The page is the same if the API refuses the act: an auditor sends an administrator's form.
    let mut auditor =
        console.signed_in_at(("auditor", "auditor@acme.example"), "/console/stop").await;
    let (_, token) = auditor.get("/console/stop").await.form("/console/sign-out").remove(0);
    let fields = [("csrf", &*token), ("subject", BOT), ("name", "invoice-bot"), ("reason", "x")];
    let form = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let page = auditor.post(STOP, &form).await;
    assert_eq!(page.status, 403, "{}", page.text);
    page.shows("<title>Not stopped · Agent Authority</title>");
    page.shows(
        "<h1>Not stopped</h1>\n<div class=\"note bad\" role=\"alert\" tabindex=\"-1\" autofocus>",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_act_that_failed_is_first_on_its_page() {
    let console = Console::start().await;
    let held = console.held(25_000.0).await;
    let mut owner = policies::owner(&console).await;
    let policy = policies::written(&console, &mut owner, ALL).await;
    let api = console.app.owner();
    let (_, keys) = api.list_keys("").await;
    let kid = keys["keys"][0]["kid"].as_str().unwrap().to_owned();
    let (_, listed) = api.list_delegations(&format!("delegate_id={BOT}")).await;
    let delegation = listed["delegations"][0]["id"].as_str().unwrap();
    let (_, listed) = api.list_policies("state=active").await;
    let active = listed["policies"][0]["id"].as_str().unwrap();
    let wrong = [("name", "another"), ("m.reason", "left")];
    let other = "svc:agent:acme:support-bot";
    let signal = new_stop(other, "a test");
    let (_, made) = api.create_stop_signal(signal).await;
    let signal = made["stop_signal"]["id"].as_str().unwrap();
    for (path, fields, heading) in [
        (format!("/console/stop/{signal}/release"), &[("reason", " ")][..], "Not released"),
        (format!("/console/keys/act?step=revoke&of={kid}"), &wrong[..1], "Not revoked"),
        (format!("/console/records/delegations/{delegation}/revoke"), &wrong[..], "Not revoked"),
        (format!("/console/records/principals/{BOT}/delete"), &wrong[..1], "Not deleted"),
        (
            format!("/console/records/principals/{BOT}/update"),
            &[("m.state", "nowhere")][..],
            "Not saved",
        ),
        ("/console/records/purposes/new/create".to_owned(), &[("m.slug", "-")][..], "Not created"),
        (
            format!("/console/policies/{policy}/activate?version=1"),
            &[("reason", " ")][..],
            "Not activated",
        ),
        (format!("/console/policies/{active}/retire"), &wrong[..1], "Not retired"),
        (
            format!("/console/policies/{policy}"),
            &[("cedar", "forbid"), ("do", "save")][..],
            "Not saved",
        ),
    ] {
        let page = sent(&mut owner, &path, fields).await;
        assert_failure_first(&page, 400, heading);
    }
    let mut approver = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{held}");
    approver.get(&path).await;
    let decline = format!("{path}/decline");
    let page = sent(&mut approver, &decline, &[("text", " ")]).await;
    assert_failure_first(&page, 400, "Not declined");
    // A request that was decided in another tab.
    let form = approver.get(&decline).await.form_with(&decline, "text", "no");
    let done = sent(&mut approver, &format!("{path}/approve"), &[]).await;
    done.shows("You approved this");
    let page = approver.post(&decline, &form).await;
    assert_failure_first(&page, 409, "Not declined");
    page.shows("<h2>This has changed</h2>");
}

/// Forms without a page of their own: the page of the failure has the act's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_act_without_a_form_names_the_act() {
    let console = Console::start().await;
    let mut owner = policies::owner(&console).await;
    let (_, token) = owner.get("/console/stop").await.form("/console/sign-out").remove(0);
    let unknown = "svc:decision:00000000000000000000000000000000";
    for (path, heading) in [
        (format!("/console/decisions/{unknown}/seal"), "Not sealed"),
        (format!("/console/decisions/{unknown}/replay"), "Not replayed"),
        ("/console/webhooks/svc:webhook_endpoint:none/test".to_owned(), "Test not sent"),
        ("/console/webhooks/svc:webhook_endpoint:none/redrive".to_owned(), "Not sent again"),
        ("/console/tenant".to_owned(), "Tenant not chosen"),
    ] {
        let form = [("csrf", token.as_str()), ("tenant_id", "svc:tenant:none")];
        let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let page = owner.post(&path, &form).await;
        assert!(page.status >= 400, "{path}: {} {}", page.status, page.text);
        page.shows(&format!("<title>{heading} · "));
        page.shows(&format!(
            "<h1>{heading}</h1>\n<div class=\"note bad\" role=\"alert\" tabindex=\"-1\" autofocus>"
        ));
    }
}
