//! The form that renews a delegation.

use serde_json::Value;

use super::Console;
use crate::support::{Answered, Plain};

const BOT: &str = "svc:agent:acme:invoice-bot";

async fn delegations(console: &Console) -> Vec<Value> {
    let listed = console
        .app
        .owner()
        .list_delegations(&format!("delegate_id={BOT}"))
        .await
        .assert_status(200);
    listed["delegations"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation_is_renewed_with_a_later_end() {
    let console = Console::start().await;
    let first = delegations(&console).await[0]["id"].as_str().unwrap().to_owned();
    let record = format!("/console/records/delegations/{first}");
    // The tenant's admin may revoke it but not extend it: no principal of theirs gave it.
    let mut admin = console.signed_in_at(("admin", "admin@acme.example"), &record).await;
    let page = admin.get(&record).await;
    page.shows("/revoke");
    let renew = format!("{record}/renew");
    let form = admin.get(&renew).await;
    let action = renew.replace(':', "%3A");
    let later = form.form_with(&action, "m.expires_at", "2100-01-01T00:00:00Z");
    let refused = admin.post(&renew, &later).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    refused.shows("is not your own principal");
    let mut owner = console.browser();
    owner.sign_in("owner", "operator@localhost", "/console/records").await;
    owner.get(&record).await.shows("Renew");
    let page = owner.get(&renew).await;
    let over = page.form_with(&action, "m.expires_at", "2020-01-01T00:00:00Z");
    let refused = owner.post(&renew, &over).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("is in the past; give a later time");
    let form = page.form_with(&action, "m.expires_at", "2100-01-01T00:00:00Z");
    let shown = owner.post(&renew, &form).await;
    shown.shows("Renewed.");
    let now = delegations(&console).await;
    assert_eq!(now.len(), 2, "{now:#?}");
    assert_eq!((now[0]["state"].text(), &now[0]["renewed_by"]), ("revoked", &now[1]["id"]));
    assert_eq!(now[1]["expires_at"], "2100-01-01T00:00:00Z");
    // The page shows the successor. The renewed delegation links to it and has no buttons.
    shown.shows(now[1]["id"].as_str().unwrap());
    let address = now[1]["id"].as_str().unwrap().replace(':', "%3A");
    assert!(shown.path.contains(&address), "{}", shown.path);
    let old = owner.get(&record).await;
    old.shows(now[1]["id"].as_str().unwrap());
    assert!(!old.text.contains(&format!("{action}\"")), "{}", old.text);
}
