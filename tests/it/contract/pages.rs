//! The pages that a browser can reach from the service's address alone: `/`, and the API's
//! reference.

use reqwest::Response;

use crate::support::{TestApp, http};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn get(app: &TestApp, path: &str, accept: Option<&str>) -> Response {
    let request = http().get(format!("{}{path}", app.base_url()));
    let request = match accept {
        Some(accept) => request.header("accept", accept),
        None => request,
    };
    request.send().await.unwrap()
}

#[track_caller]
fn policy(answer: &Response) -> String {
    answer.headers()["content-security-policy"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_gets_a_page_at_the_root_and_programs_json() {
    let app = TestApp::shared().await;
    let page = get(app, "/", Some(BROWSER)).await;
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()["vary"], "accept");
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(policy(&page).starts_with("default-src 'none'; style-src 'self';"));
    assert!(policy(&page).contains("script-src 'self';"));
    let text = page.text().await.unwrap();
    assert!(text.contains(&format!("Release {}", env!("CARGO_PKG_VERSION"))), "{text}");
    assert_eq!(text.matches("<script").count(), 1, "{text}");
    assert!(
        text.contains("<script src=\"/theme/choice.js\">") && !text.contains(" style="),
        "{text}"
    );
    // Each link on the page works.
    let links = text.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let links: Vec<_> = links.map(|link| format!("/{link}")).collect();
    for known in ["/console", "/docs", "/docs/guides", "/openapi", "/docs/evaluate"] {
        assert!(links.iter().any(|link| link == known), "{known}: {links:?}");
    }
    for link in links {
        let answer = get(app, &link, None).await;
        assert!(answer.status().is_success(), "{link}: {}", answer.status());
    }
    for (path, accept) in [
        ("/", None),
        ("/", Some("*/*")),
        ("/", Some("application/json, text/html;q=0.9")),
        // A person may view the JSON in a browser.
        ("/?pretty", Some(BROWSER)),
    ] {
        let answer = get(app, path, accept).await;
        assert_eq!(answer.headers()["content-type"], "application/json", "{path} {accept:?}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["service"], "agent-authority", "{path} {accept:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_is_filtered_by_a_script_of_its_own() {
    let app = TestApp::shared().await;
    let page = get(app, "/docs", Some(BROWSER)).await;
    assert!(policy(&page).contains("script-src 'self'") && !policy(&page).contains("unsafe"));
    let text = page.text().await.unwrap();
    // Without the script the search field is hidden, and every operation is listed.
    assert!(text.contains("<form id=\"filter\" role=\"search\" hidden>"), "{text}");
    assert!(text.contains("<li id=\"evaluate\">"), "{text}");
    assert!(text.contains("<a href=\"#Runtime\">Runtime <em>"), "{text}");
    let script = get(app, "/docs/filter.js", None).await;
    assert_eq!(script.status(), 200);
    let kind = script.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("text/javascript"), "{kind}");
    let page = get(app, "/docs/evaluate", None).await.text().await.unwrap();
    assert!(page.contains("<a href=\"/docs#Runtime\">Runtime</a>"), "{page}");
}
