//! `stop`, `quarantine`, `release`, `delegations revoke`: what ends is shown, and a name is typed.

use super::reads::{answering, ids, owner, with_token};
use crate::support::{TestApp, asking};

const BOT: &str = "svc:agent:acme:invoice-bot";

async fn decision(app: &TestApp, api_key: &str) -> String {
    let (_, made) = app.client(api_key).post("/api/v1/runtime/evaluate", asking(12.0, "DE")).await;
    format!("{}: {}", made["decision"].as_str().unwrap(), made["reason_code"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_shows_what_ends_and_waits_for_the_name() {
    let app = TestApp::start().await;
    let demo = app.demo().await;
    let typed = format!("stop {BOT} --reason broken");
    for answer in ["", "y\n", "support-bot\n"] {
        let (code, _, told) = answering(&app, &typed, answer).await;
        assert_eq!(code, 1, "{told}");
        for part in [
            "To stop svc:agent:acme:invoice-bot (Pays supplier invoices) on http://127.0.0.1",
            "1 delegation ends with it",
            &demo.delegation_id,
            "payment.* invoice.*",
            "Type `invoice-bot` to stop it:",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert_eq!(decision(&app, &demo.api_key).await, "allow: permission_granted");
    }
    let (code, printed, told) = answering(&app, &typed, "invoice-bot\n").await;
    assert_eq!(code, 0, "{told}");
    let id = printed.split_whitespace().next().unwrap().to_owned();
    assert!(told.contains(&format!("agent-authority release {id}")), "{told}");
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
    let (_, table, _) = owner(&app, "stop-signals list --state active").await;
    assert!(ids(&table) == [&id] && table.contains("broken"), "{table}");

    let (code, _, told) = answering(&app, &format!("release {id}"), "n\n").await;
    assert!(code == 1 && told.contains("reason: broken"), "{told}");
    let (code, printed, told) = answering(&app, &format!("release {id}"), "y\n").await;
    assert!(code == 0 && printed == format!("{id}  lifted\n"), "{printed}{told}");
    assert_eq!(decision(&app, &demo.api_key).await, "allow: permission_granted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_is_of_what_is_named() {
    let app = TestApp::start().await;
    let demo = app.demo().await;
    let admin = app.member_token("svc:tenant:acme", "admin");
    let typed = "quarantine --action payment.* --reason review";
    let (code, _, told) = answering(&app, &format!("{typed} --tenant acme"), "\n").await;
    assert!(code == 1 && told.contains("All authority for payment.* is suspended on"), "{told}");
    let (code, printed, told) = with_token(&app, &admin, &format!("{typed} --yes")).await;
    assert_eq!(code, 0, "{told}");
    let id = printed.split_whitespace().next().unwrap();
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
    let (code, printed, _) = with_token(&app, &admin, &format!("release {id} -y")).await;
    assert!(code == 0 && printed.contains("released"), "{printed}");
    // All of a tenant is its slug to type.
    let all = "quarantine --tenant acme --reason review";
    let (_, _, told) = answering(&app, all, "").await;
    assert!(told.contains("All authority of acme is") && told.contains("Type `acme`"), "{told}");
    let by_subject = format!("quarantine --subject {BOT} --reason review");
    let (code, _, told) = answering(&app, &by_subject, "invoice-bot\n").await;
    assert!(code == 0 && told.contains(&demo.delegation_id), "{told}");
    // A key that may stop may not read what ends.
    let key = app.api_key("svc:tenant:acme", &["runtime:stop"]).await;
    let (code, _, told) = with_token(&app, &key, &format!("stop {BOT} --reason broken -y")).await;
    assert_eq!(code, 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_final_and_waits_for_the_holders_name() {
    let app = TestApp::start().await;
    let demo = app.demo().await;
    let typed = format!("delegations revoke {} --reason over", demo.delegation_id);
    let (code, _, told) = answering(&app, &typed, "yes\n").await;
    assert!(code == 1 && told.contains("cannot be undone"), "{told}");
    let (code, printed, told) = answering(&app, &typed, "invoice-bot\n").await;
    assert_eq!((code, printed), (0, format!("{}  revoked\n", demo.delegation_id)), "{told}");
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
}
