//! The pages that approvers open.

use std::collections::{BTreeSet, VecDeque};

use regex::Regex;

use super::{Console, browser::unescaped};
use crate::support::{Members, asking, only};

/// The most pages that a person opens here.
const MOST: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_sees_the_tool_and_opens_every_page_with_a_link() {
    let console = Console::start().await;
    let owner = console.app.owner();
    let (_, found) = owner.list_tools("tenant_id=svc:tenant:acme").await;
    let mut tools = found["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == "payments").unwrap()["id"].clone();
    let tool = tool.as_str().unwrap();
    let about = only("description", "Pays <b>invoices</b>.");
    assert_eq!(owner.update_tool(tool, about).await.0, 200);
    let id = console.held_with(asking(25_000.0, "DE").with("tool_id", tool)).await;
    let links = Regex::new(r#"href="(/[^"]*)""#).unwrap();
    for role in ["approver", "legal"] {
        let email = format!("{role}@acme.example");
        let mut browser = console.signed_in((role, &email)).await;
        let page = browser.get(&format!("/console/approvals/{id}")).await;
        page.shows("<strong>payments</strong>. Pays &lt;b&gt;invoices&lt;/b&gt;.");
        page.shows("<code class=\"id dim\">invoice-settlement</code>");
        let refused = browser.get(&format!("/console/records/tools/{tool}")).await;
        assert_eq!(refused.status, 403, "{role}: {}", refused.text);
        let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([page]));
        while let Some(page) = next.pop_front() {
            assert!(
                !page.text.contains(&format!("/console/records/tools/{tool}")),
                "{role}: {}",
                page.path
            );
            for link in links.captures_iter(&page.text) {
                let path = unescaped(&link[1]);
                let path = path.split('#').next().unwrap().to_owned();
                if !path.starts_with("/console") || path.contains("logout") || seen.len() >= MOST {
                    continue;
                }
                if seen.insert(path.clone()) {
                    let opened = browser.get(&path).await;
                    assert_eq!(opened.status, 200, "{role}: {path}: {}", opened.text);
                    next.push_back(opened);
                }
            }
        }
        assert!(seen.len() > 10, "{role}: {seen:?}");
    }
}
