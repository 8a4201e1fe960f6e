//! `stop`, `quarantine`, `release`, `delegations revoke`: show the impact and require a confirmation.

use super::reads::{answering, ids, owner, with_token};
use crate::support::{Members, TestApp, asking, new_principal, new_tenant};

const BOT: &str = "svc:agent:acme:invoice-bot";

async fn decision(app: &TestApp, api_key: &str) -> String {
    let (_, made) = app.client(api_key).evaluate(asking(12.0, "DE")).await;
    format!("{}: {}", made["decision"].as_str().unwrap(), made["reason_code"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_shows_what_ends_and_waits_for_a_yes() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let typed = format!("stop {BOT} --reason broken");
    assert_eq!(decision(&app, &demo.api_key).await, "allow: permission_granted");
    for answer in ["", "n\n", "invoice-bot\n"] {
        let (code, _, told) = answering(&app, &typed, answer).await;
        assert_eq!(code, 1, "{told}");
        for part in [
            "Stopping svc:agent:acme:invoice-bot (Pays supplier invoices) on http://127.0.0.1",
            "1 delegation is affected",
            &demo.delegation_id,
            "payment.* invoice.*",
            "1 still permitted, 1 in the last 24 hours",
            "Stop invoice-bot? [y/N]",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
    assert_eq!(decision(&app, &demo.api_key).await, "allow: permission_granted");
    let (code, printed, told) = answering(&app, &typed, "y\n").await;
    assert_eq!(code, 0, "{told}");
    let id = printed.split_whitespace().next().unwrap().to_owned();
    // The command that is printed calls the same service.
    let release = format!("agent-authority release {id} --url {}/ --token TOKEN", app.base_url());
    assert!(told.contains(&release), "{told}");
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
    let (_, table, _) = owner(&app, "stop-signals list --state active").await;
    assert!(ids(&table) == [&id] && table.contains("broken"), "{table}");
    // Lists also accept an agent's name.
    for typed in ["stop-signals list --actor invoice-bot", "quarantines list --subject invoice-bot"]
    {
        let (code, table, told) = owner(&app, typed).await;
        let found = ids(&table).len();
        assert_eq!((code, found), (0, usize::from(typed.starts_with("stop"))), "{typed}: {told}");
    }
    for list in
        ["decisions list --tenant acme", "approvals --state any", "decisions export --tenant acme"]
    {
        let (code, printed, told) = owner(&app, &format!("{list} --subject invoice-bot")).await;
        assert_eq!(code, 0, "{list}: {told}");
        assert!(list.starts_with("approvals") || printed.contains("invoice-bot"), "{printed}");
        let (code, _, told) = owner(&app, &format!("{list} --subject nobody")).await;
        assert!(code == 1 && told.contains("no agent is named `nobody`"), "{list}: {told}");
        assert!(!told.contains("stopped") && told.contains("principals list"), "{told}");
    }

    let (code, _, told) = answering(&app, &format!("release {id}"), "n\n").await;
    assert!(code == 1 && told.contains("reason: broken"), "{told}");
    let reasoned = format!("release {id} --reason repaired");
    let (code, printed, told) = answering(&app, &reasoned, "y\n").await;
    assert!(code == 0 && printed == format!("{id}  lifted\n"), "{printed}{told}");
    let (_, shown, _) = owner(&app, &format!("stop-signals show {id}")).await;
    assert!(shown.contains("repaired"), "{shown}");
    assert_eq!(decision(&app, &demo.api_key).await, "allow: permission_granted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_name_is_enough_and_an_unknown_one_is_refused_before_asking() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    for unknown in ["invoice", "nobody", "svc:agent:acme:nobody"] {
        let typed = format!("stop {unknown} --reason broken");
        let (code, _, told) = answering(&app, &typed, "nobody\n").await;
        assert!(code == 1 && !told.contains("[y/N]"), "{told}");
        assert!(told.contains("principals list --principal-class agent --url http"), "{told}");
    }
    // Two tenants have an agent of this name, and the owner must give the full id.
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let (status, made) = app
        .owner()
        .create_principal(
            new_principal("agent", "Invoices")
                .with("tenant_id", "svc:tenant:other")
                .with("name", "invoice-bot"),
        )
        .await;
    assert!(status < 300, "{made:#}");
    let (code, _, told) = answering(&app, "stop invoice-bot --reason broken", "").await;
    assert!(code == 1 && told.contains("svc:agent:acme:invoice-bot, svc:agent:other:"), "{told}");
    // A user of a tenant can only mean the tenant's own agent.
    let admin = app.member_token("svc:tenant:acme", "admin");
    let (code, _, told) = with_token(&app, &admin, "stop invoice-bot --reason broken --yes").await;
    assert_eq!(code, 0, "{told}");
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
    let key = app.api_key("svc:tenant:acme", &["runtime:stop"]).await;
    let (code, _, told) = with_token(&app, &key, "stop invoice-bot --reason broken -y").await;
    assert!(code == 2 && told.contains("svc:agent:TENANT:invoice-bot"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_is_of_what_is_named() {
    let app = TestApp::seeded().await;
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
    // Quarantining a whole tenant requires typing its slug.
    let all = "quarantine --tenant acme --reason review";
    let (_, _, told) = answering(&app, all, "").await;
    assert!(told.contains("All authority of acme is") && told.contains("Type `acme`"), "{told}");
    let by_subject = format!("quarantine --subject {BOT} --reason review");
    let (code, _, told) = answering(&app, &by_subject, "y\n").await;
    assert!(code == 0 && told.contains(&demo.delegation_id), "{told}");
    // This key may stop agents but may not read the delegations that are affected.
    let key = app.api_key("svc:tenant:acme", &["runtime:stop"]).await;
    let (code, _, told) = with_token(&app, &key, &format!("stop {BOT} --reason broken -y")).await;
    assert_eq!(code, 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_action_is_told_before_it_is_suspended() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let admin = app.member_token("svc:tenant:acme", "admin");
    let warning = "tenant has `paymnt.execute`. Did you mean `payment.execute`?";
    let typed = "quarantine --tenant acme --action paymnt.execute --reason review";
    let (code, _, told) = answering(&app, typed, "\n").await;
    assert!(code == 1 && told.contains(warning), "{told}");
    // With --yes, the warning is also printed, and the quarantine is created.
    let typed = "quarantine --action paymnt.execute --reason review --yes";
    let (code, printed, told) = with_token(&app, &admin, typed).await;
    assert!(code == 0 && printed.contains("active") && told.contains(warning), "{printed}{told}");
    for known in ["payment.execute", "payment.*", "invoice.*"] {
        let typed = format!("quarantine --tenant acme --action {known} --reason review");
        let (_, _, told) = answering(&app, &typed, "\n").await;
        assert!(!told.contains("No tool"), "{known}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_final_and_waits_for_the_holders_name() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let typed = format!("delegations revoke {} --reason over", demo.delegation_id);
    let (code, _, told) = answering(&app, &typed, "yes\n").await;
    assert!(code == 1 && told.contains("cannot be undone"), "{told}");
    let (code, printed, told) = answering(&app, &typed, "invoice-bot\n").await;
    assert_eq!((code, printed), (0, format!("{}  revoked\n", demo.delegation_id)), "{told}");
    assert!(decision(&app, &demo.api_key).await.starts_with("deny: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_prints_the_successor() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let renew = |end: &str| format!("delegations renew {} --expires-at {end}", demo.delegation_id);
    let (code, printed, told) = answering(&app, &renew("2100-01-01"), "").await;
    let successor = printed.split("  ").next().unwrap();
    assert!(code == 0 && successor.starts_with("svc:del:acme:"), "{printed}{told}");
    assert_ne!(successor, demo.delegation_id);
    assert!(printed.contains("  active  ends 2"), "{printed}");
    let (_, table, _) = answering(&app, "delegations list --utc", "").await;
    let row = table.lines().find(|line| line.starts_with(successor)).unwrap();
    assert!(table.contains("EXPIRES_AT") && row.contains("2100-01-01T00:00:00Z"), "{table}");
    assert!(decision(&app, &demo.api_key).await.starts_with("allow: "));
    let (code, _, told) = answering(&app, &renew("never"), "").await;
    assert!(code == 1 && told.contains("already renewed") && told.contains(successor), "{told}");
    let endless = format!("delegations renew {successor} --expires-at never");
    let (code, printed, told) = answering(&app, &endless, "").await;
    assert!(code == 0 && printed.ends_with("  active  has no end\n"), "{printed}{told}");
    let (code, _, told) = answering(&app, &renew("1d"), "").await;
    assert!(code == 2 && told.contains("`never`"), "{told}");
    // A tenant's people can't renew. The refusal names the owner.
    let admin = app.member_token("svc:tenant:acme", "admin");
    let (code, _, told) = with_token(&app, &admin, &renew("never")).await;
    assert!(code == 1 && told.contains("owner") && !told.contains("unknown"), "{told}");
}
