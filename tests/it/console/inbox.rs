//! The list of requests: its order, its filters and groups, and the requests that a person may
//! decide.

use super::{APPROVER, Console, browser::Page};
use crate::support::only;

const OWNER: (&str, &str) = ("owner", "owner@localhost");
/// The owner of the demonstration's agents.
const OWNING: (&str, &str) = ("approver", "owner@acme.example");

/// The ids on a page, from the top.
fn ids(page: &Page) -> Vec<String> {
    let links = page.text.split("class=\"what\" href=\"/console/approvals/").skip(1);
    links.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The address of the next page, if any.
fn next(page: &Page) -> Option<String> {
    let link = page.text.split("href=\"").find(|rest| rest.contains("\">Next page</a>"))?;
    let path = link.split('"').next()?;
    path.contains("page=").then(|| path.replace("&amp;", "&"))
}

impl Console {
    /// Sets the lifetime of requests that are opened from now on.
    async fn lasting(&self, seconds: u32) {
        let body = only("approval_ttl_seconds", seconds);
        assert_eq!(self.app.owner().update_tenant("acme", body).await.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_first_is_on_top_of_two_pages() {
    let console = Console::start().await;
    let mut opened = Vec::new();
    console.lasting(36_000).await;
    for number in 0..101_u32 {
        opened.push(console.held(20_000.0 + f64::from(number)).await);
    }
    // The newest request expires first.
    console.lasting(3600).await;
    let urgent = console.held(30_000.0).await;
    let mut expected = vec![urgent.clone()];
    expected.extend(opened.iter().cloned());
    for person in [APPROVER, OWNER] {
        let mut browser = console.signed_in(person).await;
        let first = browser.get("/console/approvals").await;
        first.shows("102 requests waiting");
        first.shows("The requests that end first are at the top.");
        assert_eq!(ids(&first), expected[..100], "{person:?}");
        let second = browser.get(&next(&first).unwrap()).await;
        assert_eq!(ids(&second), expected[100..], "{person:?}");
        assert!(
            next(&second).is_none() && !second.text.contains("end first are"),
            "{}",
            second.text
        );
        // A filter applies to all requests, and not only to the requests on the page.
        let path = "/console/approvals?action=payment.execute&agent=svc:agent:acme:invoice-bot";
        browser.get(path).await.shows("102 requests waiting");
        browser.get("/console/approvals?action=payment.refund").await.shows("No matches");
    }
    // Decided requests are listed newest first.
    let approver = console.app.person("svc:tenant:acme", "approver", APPROVER.1);
    for id in [&opened[3], &opened[1], &urgent] {
        assert_eq!(approver.decline_approval(id, "no").await.0, 200);
    }
    let page = console.signed_in(APPROVER).await.get("/console/approvals?state=declined").await;
    assert_eq!(ids(&page), [urgent, opened[3].clone(), opened[1].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pending_requests_are_sorted() {
    let console = Console::start().await;
    let mut opened = Vec::new();
    for amount in [12_000.0, 30_000.0, 11_000.0] {
        opened.push(console.held(amount).await);
    }
    let of = |order: [usize; 3]| order.map(|at| opened[at].clone());
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals").await;
    page.shows("<a href=\"/console/approvals?sort=amount\">Amount</a>");
    page.shows("aria-sort=\"ascending\"><a href=\"/console/approvals\">Ends");
    for (sort, order) in [("amount", of([1, 0, 2])), ("age", of([0, 1, 2])), ("", of([0, 1, 2]))] {
        let page = browser.get(&format!("/console/approvals?sort={sort}")).await;
        assert_eq!(ids(&page), order, "{sort}");
        assert_eq!(page.text.matches("aria-sort=").count(), 1, "{}", page.text);
    }
    let page = browser.get("/console/approvals?sort=amount").await;
    page.shows("aria-sort=\"descending\"><a href=\"/console/approvals?sort=amount\">Amount");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_active_filter_has_a_link_that_removes_it() {
    let console = Console::start().await;
    console.held(12_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals").await;
    assert!(!page.text.contains("Remove the filter"), "{}", page.text);
    let agent = "agent=svc%3Aagent%3Aacme%3Ainvoice-bot";
    let query = format!("state=declined&{agent}&action=payment.execute");
    let page = browser.get(&format!("/console/approvals?{query}")).await;
    for (label, without) in [
        ("Declined", format!("{agent}&amp;action=payment.execute")),
        ("Agent: invoice-bot", "state=declined&amp;action=payment.execute".to_owned()),
        ("Action: payment.execute", format!("state=declined&amp;{agent}")),
    ] {
        page.shows(&format!(
            "<a href=\"/console/approvals?{without}\"><span class=\"hidden\">Remove the filter \
             </span>{label} "
        ));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alike_requests_stand_together_with_their_sums() {
    let console = Console::start().await;
    console.held(12_000.0).await;
    console.held(13_000.5).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals").await;
    assert!(!page.text.contains("class=\"group\""), "{}", page.text);
    page.shows("href=\"/console/approvals?group=yes\"");
    let page = browser.get("/console/approvals?group=yes").await;
    page.shows(
        "<strong>invoice-bot</strong> <code>payment.execute</code>, 2 on this page, \
         25\u{202f}000.50\u{202f}EUR <a href=\"/console/approvals?agent=svc%3Aagent%3Aacme%3Ainvoice-bot&amp;\
         action=payment.execute\">Only these</a>",
    );
    assert_eq!(ids(&page).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_what_is_theirs_to_decide_and_the_next_after_an_act() {
    let console = Console::start().await;
    let mut opened = Vec::new();
    for amount in [12_000.0, 13_000.0] {
        opened.push(console.held(amount).await);
    }
    let mut owning = console.signed_in(OWNING).await;
    let page = owning.get("/console/approvals").await;
    page.shows("Yours to decide <span class=\"num\">0</span>");
    page.shows("All that wait <span class=\"num\">2</span>");
    assert_eq!(ids(&page), opened);
    let page = owning.get("/console/approvals?yours=yes").await;
    page.shows("No waiting requests");
    assert!(ids(&page).is_empty(), "{}", page.text);
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals?yours=yes").await;
    page.shows("2 requests waiting for you");
    assert_eq!(ids(&page), opened);
    for (id, next) in [(&opened[0], Some(&opened[1])), (&opened[1], None)] {
        assert_eq!(browser.get(&format!("/console/approvals/{id}")).await.status, 200);
        let approve = format!("/console/approvals/{id}/approve");
        let form = browser.get(&approve).await.form(&approve);
        let page = browser.post(&approve, &form).await;
        page.shows("You approved this");
        match next {
            Some(next) => {
                page.shows(&format!("href=\"/console/approvals/{next}\">Next: invoice-bot"));
            }
            None => page.shows("No other request is yours to decide."),
        }
    }
    let page = browser.get("/console/approvals").await;
    page.shows("Yours to decide <span class=\"num\">0</span>");
}
