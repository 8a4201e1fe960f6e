//! A form only acts if a page of the person's own session sent it. Any other form is a 403 without
//! effect.

use std::collections::BTreeSet;

use authority_store::{Db, Error, RunQueryDsl, Scope};
use diesel::sql_types::{Bool, Integer};
use regex::Regex;

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
        (&form, (None, None)),
        (&form, (own.0, Some(""))),
        // Without `Sec-Fetch-Site`, as over plain http, the form's token still decides.
        (&others, (own.0, None)),
    ] {
        let source = Source { origin: from, site };
        let page = browser.post_from(&path, form, source).await;
        assert_eq!(page.status, 403, "{from:?} {site:?}: {}", page.text);
        page.shows("No change was made");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_form_of_any_page_acts_without_its_sessions_token() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(("admin", "admin@acme.example")).await;
    let (mut unread, mut read) = (vec!["/console/approvals".to_owned()], BTreeSet::new());
    unread.push(format!("/console/approvals/{id}/withdraw"));
    let mut forms = BTreeSet::new();
    let posts = Regex::new(r#"<form[^>]*method="post"[^>]*action="([^"?]*)"#).unwrap();
    let links = Regex::new(r##"href="(/console/[^"#]*)""##).unwrap();
    while let Some(path) = unread.pop() {
        // One page of each kind is enough, since the pages of other records are alike.
        let path_of_kind = path.split('?').next().unwrap().split('/');
        let path_of_kind = path_of_kind.map(|part| if part.contains(':') { "*" } else { part });
        let kind = path_of_kind.collect::<Vec<_>>().join("/");
        if read.len() >= 150 || !read.insert(kind) {
            continue;
        }
        let page = browser.get_one(&path).await;
        forms.extend(posts.captures_iter(&page.text).map(|form| form[1].to_owned()));
        unread.extend(links.captures_iter(&page.text).map(|link| link[1].replace("&amp;", "&")));
    }
    assert!(forms.len() > 12, "{forms:?}");
    let origin = browser.origin.clone();
    for action in &forms {
        for csrf in [None, Some("other")] {
            let form: Vec<_> =
                csrf.iter().map(|csrf| ("csrf".to_owned(), (*csrf).to_owned())).collect();
            let own = Source { origin: Some(&origin), site: Some("same-origin") };
            let page = browser.post_from(action, &form, own).await;
            assert_eq!(page.status, 403, "{action} {csrf:?}: {}", page.text);
        }
    }
    // The sign-out form is among them, but the session continues.
    assert!(forms.contains("/console/sign-out"), "{forms:?}");
    assert_eq!(browser.get_one("/console/approvals").await.status, 200);
}

#[derive(diesel::QueryableByName)]
struct Opened {
    #[diesel(sql_type = Integer)]
    count: i32,
    #[diesel(sql_type = Bool)]
    first: bool,
    #[diesel(sql_type = Bool)]
    second: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_opened_too_many_requests_forgets_the_first() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let store = &console.app.app.store;
    let filled = store.write_tx(&Scope::service(), async |db: &mut Db| {
        let fill = "UPDATE console_sessions SET opened = (SELECT jsonb_object_agg('svc:approval:' || n, \
                    jsonb_build_object('digest', 'd', 'at', n)) FROM generate_series(1, 200) AS n)";
        Ok::<usize, Error>(diesel::sql_query(fill).execute(db).await?)
    });
    assert_eq!(filled.await.unwrap(), 1);
    browser.get(&format!("/console/approvals/{id}")).await;
    let counted = store.read_tx(&Scope::service(), async |db: &mut Db| {
        let count = "SELECT (SELECT count(*)::integer FROM jsonb_object_keys(opened)) AS count, \
                            opened ? 'svc:approval:1' AS first, opened ? 'svc:approval:2' AS second \
                     FROM console_sessions";
        Ok::<Opened, Error>(diesel::sql_query(count).get_result(db).await?)
    });
    let opened = counted.await.unwrap();
    assert_eq!((opened.count, opened.first, opened.second), (200, false, true));
    let path = format!("/console/approvals/{id}/approve");
    browser.get(&path).await.form(&path);
}
