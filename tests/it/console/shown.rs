//! The contents of pages and their response headers.

use regex::Regex;
use serde_json::json;

use super::{APPROVER, Console};
use crate::support::{EVALUATE, EVALUATE_DECISION, asking};

/// A text with markup, a script address and characters that reverse the reading order.
const HOSTILE: &str = "\"><script>alert(1)</script>javascript:x\u{202e}'\u{200b}\u{202f}\u{3000}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_is_shown_escaped_and_none_is_left_out() {
    let console = Console::start().await;
    let mut question = asking(25_000.0, "DE");
    let long = format!("{}END", "y".repeat(3000));
    question["context"][HOSTILE] = json!({"deep": [HOSTILE, {"deeper": HOSTILE}]});
    question["context"]["long"] = json!(long);
    let id = console.held_with(question).await;
    let mut browser = console.signed_in(APPROVER).await;
    let fields = Regex::new(r#" value="[^"]*""#).unwrap();
    for path in [
        "/console/approvals".to_owned(),
        format!("/console/approvals/{id}"),
        format!("/console/approvals/{id}/approve"),
        format!("/console/approvals?agent={HOSTILE}&action={HOSTILE}"),
        format!("/console/approvals/{HOSTILE}"),
    ] {
        let page = browser.get(&path.replace(' ', "%20")).await;
        assert_eq!(page.text.matches("<script").count(), 2, "{path}: {}", page.text);
        // A field sends back the exact value.
        let text = fields.replace_all(&page.text, "");
        for hidden in ['\u{202e}', '\u{200b}', '\u{3000}'] {
            assert!(!text.contains(hidden), "{path}");
        }
    }
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;javascript:x⟨U+202E⟩&#39;⟨U+200B⟩⟨U+202F⟩⟨U+3000⟩");
    // Between the digits of the service's own amount the character is not escaped.
    page.shows("for <strong class=\"num\">25\u{202f}000.00\u{202f}EUR</strong>");
    page.shows("<title>invoice-bot: payment.execute, 25 000.00 EUR");
    page.shows(&long);
    page.shows("show all 3003 characters");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_has_a_strict_policy_and_is_small() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get("/console/approvals").await;
    let header = |name: &str| page.headers[name].to_str().unwrap().to_owned();
    assert_eq!(
        header("content-security-policy"),
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("referrer-policy"), "same-origin");
    assert_eq!(header("x-frame-options"), "DENY");
    assert!(!page.text.contains(" style=") && !page.text.contains(" onclick"));
    let mut bytes = page.text.len();
    let theme = ["/theme/style.css", "/theme/choice.js", "/theme/icon.svg"];
    for asset in theme.into_iter().chain(["/console/style.css", "/console/console.js"]) {
        let file = browser.get(asset).await;
        assert_eq!(file.status, 200);
        assert!(page.text.contains(asset), "{asset}");
        assert!(!asset.ends_with("style.css") || file.text.len() <= 25_000);
        bytes += file.text.len();
    }
    assert!(bytes < 100_000, "{bytes}");
    let without = console.browser().get_one("/console/approvals").await;
    assert_eq!(without.status, 303);
    assert_eq!(without.headers["location"], "/console/sign-in?to=%2Fconsole%2Fapprovals");
}

/// Headings and buttons must not contain text of an agent between the service's own words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_currency_is_a_code() {
    let console = Console::start().await;
    for currency in ["EUR, approved by finance", "eur", "EU", "1EUR", "EUROEUROS", ""] {
        let mut question = asking(25_000.0, "DE");
        question["context"]["currency"] = json!(currency);
        for path in [EVALUATE, EVALUATE_DECISION] {
            let (status, refused) = console.agent.post(path, question.clone()).await;
            assert_eq!(status, 400, "{currency}: {refused:#}");
            let fault = &refused["details"][0];
            assert!(fault["field"].as_str().unwrap().ends_with("context.currency"), "{fault:#}");
        }
    }
}
