//! A form acts only if a page of the person's own session sent it: anything else is a 403, and nothing has changed.

use super::{APPROVER, Console, assert_waits, browser::Source};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_form_changes_nothing() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    browser.get(&format!("/console/approvals/{id}")).await;
    let path = format!("/console/approvals/{id}/approve");
    let form = browser.get(&path).await.form(&path);
    let origin = browser.base.clone();
    let own = (Some(origin.as_str()), Some("same-origin"));
    let without: Vec<_> = form.iter().filter(|(name, _)| name != "csrf").cloned().collect();
    let mut others = form.clone();
    let mut other = console.signed_in(("legal", "legal@acme.example")).await;
    let theirs = other.get("/console/approvals").await.form("/console/sign-out");
    others.iter_mut().find(|(name, _)| name == "csrf").unwrap().1 = theirs[0].1.clone();
    for (form, (from, site)) in [
        (&without, own),
        (&others, own),
        (&form, (Some("https://evil.example"), Some("same-origin"))),
        (&form, (Some("null"), Some("same-origin"))),
        (&form, (None, Some("same-origin"))),
        (&form, (own.0, Some("cross-site"))),
        (&form, (own.0, Some("same-site"))),
        (&form, (own.0, None)),
    ] {
        let source = Source { origin: from, site };
        let page = browser.post_from(&path, form, source).await;
        assert_eq!(page.status, 403, "{from:?} {site:?}: {}", page.text);
        page.shows("othing was changed");
        assert_waits(&console.approval(&id).await);
    }
    let mut ended = browser.clone();
    let sign_out = browser.get("/console/approvals").await.form("/console/sign-out");
    browser.post("/console/sign-out", &sign_out).await;
    let page = ended.post(&path, &form).await;
    assert_eq!(page.status, 403, "{}", page.text);
    page.shows("Your session has ended");
    assert_waits(&console.approval(&id).await);
}
