//! The receipt page is readable without a script. With its script, the page verifies the receipt's
//! signature in a real browser.

use std::time::Duration;

use regex::Regex;
use tokio::process::Command;

use super::{asking, decided, sealed, sealing};
use crate::support::{
    Answered, Client, Members, Plain, new_api_key, new_principal, new_tenant, nothing, only,
    redacted_text,
};

async fn page(client: &Client, id: &str) -> (u16, String) {
    client.text("GET", &format!("/receipts/{id}"), None).await
}

/// Returns the text of a page without its tags, one line for each piece.
fn readable(page: &str) -> String {
    let tags = Regex::new("<[^>]*>").unwrap();
    let pieces = tags.split(page).map(str::trim).filter(|piece| !piece.is_empty());
    pieces.collect::<Vec<_>>().join("\n")
}

/// U+202E and similar characters could make one name look like another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_characters_are_shown_escaped() {
    let (app, client) = sealing().await;
    let anybody = app.client("");
    let hidden = "\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\
                  \u{2069}\u{a0}\u{2003}\u{2028}\u{2029}\u{202f}\u{2060}\u{2800}\u{3000}\u{feff}\u{fe0f}\u{e0041}";
    let ask = asking(1.0, "DE").with("resource_id", format!("svc:{hidden}fdp.exe"));
    let id = decided(&client, ask).await;
    let (status, shown) = page(&anybody, &id).await;
    assert_eq!(status, 200);
    let (seen, exact) = shown.split_once("data-exact=\"").expect("the exact record");
    let (exact, rest) = exact.split_once('"').unwrap();
    for letter in hidden.chars() {
        assert!(!seen.contains(letter) && !rest.contains(letter), "{letter:?}");
        let mut units = [0; 2];
        let units = letter.encode_utf16(&mut units).iter();
        let escaped = units.map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
        assert!(seen.contains(&escaped) && rest.contains(&escaped), "{letter:?}");
        // The attribute `data-exact`, which the script verifies, has the exact signed text.
        assert!(exact.contains(letter), "{letter:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_facts_are_there_for_anybody_without_script() {
    let (app, client) = sealing().await;
    let anybody = app.client("");
    let mut ask = asking(1234.5, "DE");
    ask["context"]["note"] = "hush </pre><script>".into();
    let id = decided(&client, ask).await;
    let (status, shown) = page(&anybody, &id).await;
    assert_eq!(status, 200);
    let text = readable(&shown);
    let (facts, _) = text.split_once("\nThe record\n").expect("the record comes last");
    insta::assert_snapshot!("receipt", redacted_text(facts));
    assert!(!shown.contains("hush") && !shown.contains("1234.5"), "no value of the context");
    sealed(&client, &id).await;
    assert!(page(&anybody, &id).await.1.contains("/log/acme"));
    for (ask, headline) in
        [(asking(25_000.0, "DE"), "Held for approval"), (asking(1.0, "US"), "Denied")]
    {
        let id = decided(&client, ask).await;
        let (_, shown) = page(&anybody, &id).await;
        assert!(shown.contains(headline), "{shown}");
    }
    let (status, missing) = page(&anybody, &format!("svc:decision:{}", "0".repeat(64))).await;
    assert_eq!(status, 404);
    assert!(missing.contains("No such receipt"));
    let (status, _) = page(&anybody, "%3Cscript%3E").await;
    assert_eq!(status, 404);
    let answer = anybody.http.get(format!("{}/receipts/{id}", anybody.base)).send().await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
    for file in ["style.css", "verify.js"] {
        assert_eq!(anybody.text("GET", &format!("/receipts/{file}"), None).await.0, 200);
    }
}

/// Each link of a page leads to a file that needs no credential, and `verify` reports the saved
/// pack as `valid` with the saved keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_receipt_links_is_there_for_its_reader() {
    let (app, client) = sealing().await;
    let anybody = app.client("");
    let mut ask = asking(1234.5, "DE");
    ask["context"]["note"] = "hush".into();
    let id = decided(&client, ask).await;
    let get = async |file: &str| anybody.text("GET", &format!("/receipts/{id}/{file}"), None).await;
    for file in ["pack.json", "proof"] {
        let (status, answer) = get(file).await;
        assert_eq!(status, 404, "{answer}");
        assert!(answer.contains(r#""error":"not_found""#), "{answer}");
    }
    let pack = sealed(&client, &id).await;
    let (_, shown) = page(&anybody, &id).await;
    let links: Vec<_> = shown
        .split("href=\"")
        .filter_map(|rest| rest.split('"').next())
        // Links that start with `./` are relative to `/receipts/`.
        .filter(|link| link.starts_with(['/', '.']))
        .map(|link| link.replacen("./", "/receipts/", 1))
        .collect();
    assert!(links.len() >= 6, "{links:?}");
    // When the page is printed, a link with `data-print` shows its full URL, including the host.
    let printed = format!("/receipts/{id}/pack.json\">evidence pack</a>");
    assert!(shown.contains("data-print=\"http") && shown.contains(&printed), "{shown}");
    for link in links {
        let (status, text) = anybody.text("GET", &link, None).await;
        assert_eq!(status, 200, "{link}: {text}");
        assert!(!text.contains("hush") && !text.contains("1234.5"), "{link}: {text}");
    }
    assert_eq!(get("pack.json").await.1, pack);
    let whole: serde_json::Value = serde_json::from_str(&pack).unwrap();
    let record = serde_json_canonicalizer::to_string(&whole["record"]).unwrap();
    assert_eq!(get("record.json").await.1, record);
    let signature: serde_json::Value =
        serde_json::from_str(&get("signature.json").await.1).unwrap();
    assert_eq!(signature, whole["signature"]);
    assert_eq!(get("proof").await.1, whole["log"]["proof"].as_str().unwrap());
    for other in ["bundle.json", "context.json", "facts.json", "record", ".."] {
        assert_eq!(get(other).await.0, 404, "{other}");
    }
    assert_eq!(anybody.evidence_text(&id, "").await.0, 401);
    let keys = super::published(&anybody).await;
    assert_eq!(super::check(&pack, Some(&keys)).unwrap().to_string(), "valid");
}

/// Names are shown next to ids, but a person's name only to users of the same tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_receipt_names_its_policy_and_leads_approvers_to_the_console() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(25_000.0, "DE")).await;
    let (status, shown) = page(&app.client(""), &id).await;
    assert_eq!(status, 200);
    for text in [
        "<bdi>invoice-bot, “Pays supplier invoices”</bdi>",
        "from <bdi>a person</bdi> to <bdi>invoice-bot, “Pays supplier invoices”</bdi>",
        "<bdi>Payment threshold</bdi><br>policy <code>payment-threshold</code>",
        "<h1>Held for approval</h1>",
        "href=\"/console/approvals/svc:approval:",
    ] {
        assert!(shown.contains(text), "no {text} in {shown}");
    }
    assert!(!shown.contains("Head of finance"), "{shown}");
    assert_eq!(app.owner().update_tenant("acme", only("receipts", "members")).await.0, 200);
    let member = app.client(&app.member_token(super::TENANT, "viewer"));
    for (reader, giver) in [(&member, "Head of finance"), (&client, "a person")] {
        let (status, shown) = page(reader, &id).await;
        assert_eq!(status, 200);
        assert!(shown.contains(&format!("from <bdi>{giver}</bdi>")), "{shown}");
    }
}

/// The page of an ended approval request does not offer approvers a link to open it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_says_what_became_of_its_request() {
    let (app, client) = sealing().await;
    let anybody = app.client("");
    let held = async |amount: f64| {
        let id = decided(&client, asking(amount, "DE")).await;
        let (_, listed) = app.owner().list_approvals("order=newest&limit=1").await;
        (id, listed["approvals"][0]["id"].as_str().unwrap().to_owned())
    };
    let approver = app.person(super::TENANT, "approver", "another@example.org");
    let act = async |approval: &str, verb: &str, body| {
        approver.act_on_approval(approval, verb, body).await.assert_status(200);
    };
    let (id, approval) = held(25_000.0).await;
    let waiting = page(&anybody, &id).await.1;
    for text in ["Waits for approval, until <time", "<span>Open</span> for any approver"] {
        assert!(waiting.contains(text), "no {text} in {waiting}");
    }
    act(&approval, "decline", only("reason", "no")).await;
    let declined = page(&anybody, &id).await.1;
    for text in ["Declined as approver, on <time", "<h1>Held for approval, then declined</h1>"] {
        assert!(declined.contains(text), "no {text} in {declined}");
    }
    let (other, approval) = held(26_000.0).await;
    act(&approval, "approve", nothing()).await;
    let approved = page(&anybody, &other).await.1;
    assert!(approved.contains("Approved and not used yet"), "{approved}");
    let (used, approval_of_used) = held(27_000.0).await;
    act(&approval_of_used, "approve", nothing()).await;
    let cites = asking(27_000.0, "DE").with("approval_id", &approval_of_used);
    let allowed = decided(&client, cites).await;
    for (on, leads_to) in [(&used, &allowed), (&allowed, &used)] {
        let shown = page(&anybody, on).await.1;
        let link = format!("<a href=\"./{leads_to}\">The decision");
        assert!(shown.contains(&link), "{shown}");
    }
    act(&approval, "withdraw", only("reason", "late")).await;
    let withdrawn = page(&anybody, &other).await.1;
    assert!(withdrawn.contains("The approval was withdrawn on <time"), "{withdrawn}");
    for ended in [declined, approved, withdrawn] {
        for text in ["<span>Open</span>", "/console/approvals/"] {
            assert!(!ended.contains(text), "{text} in {ended}");
        }
    }
}

/// A tenant can restrict its receipts, both the page and the files, to its own credentials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_of_members_need_a_credential_of_the_tenant() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1.0, "DE")).await;
    sealed(&client, &id).await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let (status, tenant) = app.owner().update_tenant("acme", only("receipts", "members")).await;
    assert_eq!((status, tenant["tenant"]["receipts"].text()), (200, "members"));
    let bound = new_api_key("bound", &["evidence:read"])
        .with("principal_ids", ["svc:agent:acme:report-bot"]);
    let agent = new_principal("agent", "report bot").with("name", "report-bot");
    assert_eq!(app.owner().create_principal(agent).await.0, 201);
    let made = app.owner().create_api_key(bound).await.assert_status(201);
    let bound = app.client(made["secret"].as_str().unwrap());
    let other_work = app.client(&app.api_key(super::TENANT, &["webhooks:write"]).await);
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    let member = app.client(&app.member_token(super::TENANT, "viewer"));
    for file in ["", "/record.json", "/signature.json", "/pack.json", "/proof"] {
        let path = format!("/receipts/{id}{file}");
        let of = async |client: &Client| client.text("GET", &path, None).await.0;
        let forged = app.client("svc_sandbox_forged");
        assert_eq!((of(&app.client("")).await, of(&forged).await), (401, 401), "{path}");
        assert_eq!((of(&stranger).await, of(&bound).await), (404, 404), "{path}");
        assert_eq!(of(&other_work).await, 404, "{path}");
        for own in [&member, &client, &app.owner()] {
            assert_eq!(of(own).await, 200, "{path}");
        }
    }
    let refused = app.client("").http.get(format!("{}/receipts/{id}", app.base_url()));
    let refused = refused.send().await.unwrap();
    assert!(refused.headers()["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
}

/// Returns the page in the browser after its script has run, and the browser's console log.
async fn browsed(url: &str) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let page = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", url])
        .kill_on_drop(true)
        .output();
    let page = tokio::time::timeout(Duration::from_secs(90), page).await.unwrap();
    let page = page.expect("chromium: script/test installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&page.stdout), text(&page.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_verifies_the_signature() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(12.5, "DE")).await;
    let (dom, log) = browsed(&format!("{}/receipts/{id}", app.base_url())).await;
    assert!(dom.contains(r#"id="verification" data-state="verified""#), "{dom}");
    assert!(!log.contains("CONSOLE"), "the browser reported an error: {log}");
}
