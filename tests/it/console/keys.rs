//! The installation's signing keys: replacement, cancellation, completion and revocation, each with
//! its own step.

use serde_json::Value;

use super::{Console, browser::Browser};
use crate::support::Answered;

const ACT: &str = "/console/keys/act";

impl Console {
    async fn keys(&self) -> Vec<Value> {
        let listed = self.app.owner().list_keys("").await.assert_status(200);
        listed["keys"].as_array().unwrap().clone()
    }

    async fn status(&self, kid: &str) -> String {
        let keys = self.keys().await;
        let key = keys.iter().find(|key| key["kid"] == kid).unwrap();
        key["status"].as_str().unwrap().to_owned()
    }

    /// A managed key that signs.
    async fn signing(&self) -> String {
        let keys = self.keys().await;
        let signs = |key: &&Value| key["managed"] == true && key["status"] == "active";
        keys.iter().find(signs).unwrap()["kid"].as_str().unwrap().to_owned()
    }
}

async fn owner(console: &Console) -> Browser {
    let mut browser = console.browser();
    browser.sign_in("owner", "operator@localhost", "/console/keys").await;
    browser
}

/// The first link for this step on the page of keys.
async fn step(browser: &mut Browser, step: &str) -> String {
    let page = browser.get("/console/keys").await;
    let found = page.text.find(&format!("{ACT}?step={step}&amp;of="));
    let at = found.unwrap_or_else(|| panic!("no {step} in {}", page.text));
    page.text[at..].split('"').next().unwrap().replace("&amp;", "&")
}

async fn begin(browser: &mut Browser, kid: &str) {
    let page = browser.get(&format!("{ACT}?step=rotate&of={kid}")).await;
    let purpose = kid.split('-').nth(1).unwrap();
    page.shows(&format!("<h1>Replace the {purpose} key?</h1>"));
    let form = page.form_with(ACT, "reason", "once a year");
    let page = browser.post(ACT, &form).await;
    page.shows("The replacement has begun.");
    page.shows("Replacements under way");
    page.shows("once a year");
    page.shows("signs now</span>");
    page.shows(&format!(
        "Until the replacement is complete, <code class=\"id\">{kid}</code> signs."
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_is_completed_and_the_successor_signs() {
    let console = Console::start().await;
    let mut browser = owner(&console).await;
    let kid = console.signing().await;
    begin(&mut browser, &kid).await;
    let path = step(&mut browser, "complete").await;
    let page = browser.get(&path).await;
    page.shows("Earlier signatures stay valid.");
    let page = browser.post(ACT, &page.form(ACT)).await;
    page.shows("The replacement is completed: the successor signs.");
    assert!(!page.text.contains("Replacements under way"));
    assert_eq!(console.status(&kid).await, "retired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_is_cancelled_and_the_key_goes_on() {
    let console = Console::start().await;
    let mut browser = owner(&console).await;
    let kid = console.signing().await;
    begin(&mut browser, &kid).await;
    let path = step(&mut browser, "cancel").await;
    let page = browser.get(&path).await;
    page.shows("The key goes on signing.");
    let page = browser.post(ACT, &page.form(ACT)).await;
    page.shows("The replacement is cancelled.");
    assert!(!page.text.contains("Replacements under way"));
    assert_eq!(console.status(&kid).await, "active");
}

/// The page describes a revocation as the contract does, and requires the key's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_revoked_by_who_types_its_name() {
    let console = Console::start().await;
    let mut browser = owner(&console).await;
    let kid = console.signing().await;
    let page = browser.get(&format!("{ACT}?step=revoke&of={kid}")).await;
    page.shows("The key stops signing at once");
    page.shows("Earlier signatures stay valid. This cannot be undone.");
    let name = kid.rsplit('-').next().unwrap();
    page.shows(&format!("Type <strong>{name}</strong>"));
    for typed in ["", &kid[..kid.len() - 1], "revoke"] {
        let refused = browser.post(ACT, &page.form_with(ACT, "name", typed)).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        refused.shows("<h1>Not revoked</h1>");
        refused.shows(&format!("Type {name} exactly, to confirm."));
        assert_eq!(console.status(&kid).await, "active", "{typed}");
    }
    let form = page.form_with(ACT, "name", name);
    browser.post(ACT, &form).await.shows("The key is revoked.");
    assert_eq!(console.status(&kid).await, "revoked");
    // A successor signs from then on.
    assert_ne!(console.signing().await, kid);
    let page = browser.get("/console/keys").await;
    assert!(!page.text.contains(&format!("step=revoke&amp;of={kid}")), "{}", page.text);
}

/// The message about a finished step is only shown to the session that did it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_says_nothing_was_done() {
    let console = Console::start().await;
    let mut browser = owner(&console).await;
    for path in ["/console/keys?did=revoke", "/console/keys?did=revoke&proof=AAAA"] {
        let page = browser.get(path).await;
        assert!(!page.text.contains("The key is revoked."), "{path}: {}", page.text);
    }
    let kid = console.signing().await;
    let page = browser.get(&format!("{ACT}?step=rotate&of={kid}")).await;
    let form = page.form_with(ACT, "reason", "once a year");
    let page = browser.post(ACT, &form).await;
    page.shows("The replacement has begun.");
    let mut other = owner(&console).await;
    let page = other.get(&page.path).await;
    assert!(!page.text.contains("The replacement has begun."), "{}", page.text);
}
