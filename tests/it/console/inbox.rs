//! The list of requests: the earliest expiry comes first, and a truncated list is marked.

use serde_json::json;

use super::{APPROVER, Console, browser::Page};

const OWNER: (&str, &str) = ("owner", "owner@localhost");

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
        let body = json!({"approval_ttl_seconds": seconds});
        assert_eq!(self.app.owner().patch("/api/v1/tenants/acme", body).await.0, 200);
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
        first.shows("These 100 end first");
        assert_eq!(ids(&first), expected[..100], "{person:?}");
        let second = browser.get(&next(&first).unwrap()).await;
        assert_eq!(ids(&second), expected[100..], "{person:?}");
        assert!(next(&second).is_none() && !second.text.contains("end first"), "{}", second.text);
        // A filter applies to all requests, and not only to the requests on the page.
        let path = "/console/approvals?action=payment.execute&agent=svc:agent:acme:invoice-bot";
        browser.get(path).await.shows("102 requests waiting");
        browser.get("/console/approvals?action=payment.refund").await.shows("Nothing matches");
    }
    // Decided requests are listed newest first.
    let approver = console.app.person("svc:tenant:acme", "approver", APPROVER.1);
    for id in [&opened[3], &opened[1], &urgent] {
        let path = format!("/api/v1/app/approvals/{id}/decline");
        assert_eq!(approver.post(&path, json!({"reason": "no"})).await.0, 200);
    }
    let page = console.signed_in(APPROVER).await.get("/console/approvals?state=declined").await;
    assert_eq!(ids(&page), [urgent, opened[3].clone(), opened[1].clone()]);
}
