//! Findings after a request was opened: an approval covers only the findings that were shown.

use serde_json::json;

use super::{APPROVER, Console, assert_waits, browser::Page};
use crate::support::Answered;

impl Console {
    /// Creates a drift that holds payments for a review; returns the event's id.
    async fn drift(&self) -> String {
        let check = json!({"tenant_id": "svc:tenant:acme", "action_id": "ledger.close",
                           "coupling_result": "coupled", "runtime_effect": "continue"});
        let check =
            self.app.owner().create_coupling_check(check).await.assert_made("coupling_check");
        let event = json!({"tenant_id": "svc:tenant:acme", "action_id": "payment.execute",
                           "severity": "high", "drift_type": "stable_drift", "check_id": check});
        self.app.owner().create_drift_event(event).await.assert_made("drift_event")
    }
}

/// The link to the second step on a request's page.
#[track_caller]
fn second_step(page: &Page) -> String {
    let found = page.text.split("href=\"").filter_map(|rest| rest.split('"').next());
    let mut found = found.filter(|path| path.contains("/approve"));
    found.next().unwrap_or_else(|| panic!("{}", page.text)).replace("&amp;", "&")
}

fn reviewed(form: &[(String, String)]) -> Vec<&str> {
    form.iter().filter(|(name, _)| name == "reviewed").map(|(_, value)| value.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_page_showed_is_what_its_form_reviews() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let approve = format!("{path}/approve");
    // The drift begins after the request's page was opened and before the second step.
    let before = second_step(&browser.get(&path).await);
    let first = console.drift().await;
    let page = browser.get(&before).await;
    assert_eq!(page.status, 409, "{}", page.text);
    page.shows("No change was made");
    page.shows(
        "<th scope=\"row\">To review</th><td data-head=\"When you opened it\">not shown</td>",
    );
    page.shows("stable drift, since");
    // After the page is read again, the request can be approved. The second step lists the findings
    // to review.
    let page = browser.get(&path).await;
    page.shows("By approving you confirm that you have reviewed this.");
    let page = browser.get(&second_step(&page)).await;
    page.shows("By approving you confirm that you have reviewed:");
    let form = page.form(&approve);
    let [shown] = reviewed(&form)[..] else { panic!("{form:?}") };
    assert!(shown.starts_with(&format!("{first}@20")), "{shown}");
    // Another drift begins after the second step. The form does not review it.
    let second = console.drift().await;
    let refused = browser.post(&approve, &form).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    refused.shows("To review");
    assert_waits(&console.approval(&id).await);
    // A form that names another time for the drift does not review it.
    let mut altered = form.clone();
    altered.retain(|(name, _)| name != "reviewed");
    altered.push(("reviewed".to_owned(), format!("{first}@2026-01-01T00:00:00Z")));
    altered.push(("reviewed".to_owned(), second.clone()));
    assert_eq!(browser.post(&approve, &altered).await.status, 409);
    assert_waits(&console.approval(&id).await);
    let step = second_step(&browser.get(&path).await);
    let form = browser.get(&step).await.form(&approve);
    assert_eq!(reviewed(&form).len(), 2, "{form:?}");
    browser.post(&approve, &form).await.shows("You approved this");
    assert_eq!(console.approval(&id).await["state"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_review_is_not_approved_with_others() {
    let console = Console::start().await;
    let ids = [console.held(11_000.0).await, console.held(12_000.0).await];
    let mut browser = console.signed_in(APPROVER).await;
    for id in &ids {
        browser.get(&format!("/console/approvals/{id}")).await;
    }
    let several = "/console/approvals/several";
    let both = format!("{several}?id={}&id={}", ids[0], ids[1]);
    let form = browser.get(&both).await.form(several);
    console.drift().await;
    let page = browser.get(&both).await;
    page.shows("None of these is approved here");
    page.shows("2 more need a review");
    let done = browser.post(several, &form).await;
    assert_eq!(done.status, 409, "{}", done.text);
    done.shows("Approved 0 of 2 requests");
    done.shows("It needs a review");
    for id in &ids {
        assert_waits(&console.approval(id).await);
    }
}
