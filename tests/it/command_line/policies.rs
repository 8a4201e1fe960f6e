//! `policies validate`, `diff`, `impact`, `observe`, `activate`: checking a policy's text before it
//! takes effect.

use serde_json::json;

use super::reads::{answering, ids, owner};
use crate::support::{Answered, TestApp, asking, only};

const LOWER: &str = "@id(\"payment-threshold\")\n@reason(\"approval_threshold_breach\")\n\
    @decision(\"require_approval\")\n@approvals(\"1\")\n\
    forbid (principal, action in Svc::Action::\"payment\", resource)\n\
    unless { context has amount && context.amount.lessThanOrEqual(decimal(\"10.00\")) };\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_checked_compared_tried_and_put_in_force() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let agent = app.client(&api_key);
    let (_, allowed) = agent.evaluate(asking(12.0, "DE")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (good, bad) = (file("good.cedar", LOWER), file("bad.cedar", "permit (\n  principal,\n"));

    let (code, printed, told) = owner(&app, &format!("policies validate {good}")).await;
    assert!(code == 0 && printed.starts_with("valid"), "{printed}{told}");
    let (code, printed, told) = owner(&app, &format!("policies validate {bad}")).await;
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(told.starts_with(&format!("error: {bad}:")), "{told}");
    let (code, _, told) = owner(&app, "policies validate nowhere.cedar").await;
    assert!(code == 2 && told.contains("`nowhere.cedar`"), "{told}");

    let (_, table, _) = owner(&app, "policies list --tenant acme").await;
    let id = ids(&table)[0].to_owned();
    let (code, shown, told) = owner(&app, &format!("policies diff {id} {good}")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(shown.contains("\n-unless { context has amount"), "{shown}");
    assert!(shown.contains("decimal(\"10.00\")"), "{shown}");
    let (code, _, told) = owner(&app, &format!("policies diff {id}")).await;
    assert!(code == 1 && told.contains("has no draft"), "{told}");

    // The owner need not name the tenant if it is the only one.
    let typed = format!("policies impact {id}={good} --since 1h");
    let (code, table, told) = owner(&app, &typed).await;
    assert_eq!((code, told.as_str()), (0, "1 of 1 decisions would change\n"), "{table}");
    assert_eq!(ids(&table), [allowed["decision_id"].as_str().unwrap()]);
    assert!(table.contains("require_approval: approval_threshold_breach"), "{table}");

    app.owner().update_policy(&id, only("cedar", LOWER)).await.assert_status(200);
    let typed = format!("policies activate {id} --reason Agreed");
    let (code, _, told) = answering(&app, &typed, "n\n").await;
    assert!(code == 1 && told.contains("decimal(\"10.00\")"), "{told}");
    // Before the prompt, the command shows how the draft would change recent decisions.
    let (before, _) =
        told.split_once("Activate version 2 of `Payment threshold` on http://127").unwrap();
    assert!(before.contains("1 of 1 decisions would change:"), "{told}");
    assert!(before.contains("require_approval: approval_threshold_breach"), "{told}");
    let (_, still) = agent.evaluate(asking(13.0, "DE")).await;
    assert_eq!(still["decision"], "allow", "{still:#}");
    let (code, printed, told) = answering(&app, &typed, "y\n").await;
    assert_eq!((code, printed), (0, format!("{id}  active, version 2\n")), "{told}");
    // Activating the version that is already active needs no confirmation.
    let (code, printed, told) = answering(&app, &format!("policies activate {id}"), "").await;
    assert_eq!((code, printed.as_str()), (0, ""), "{told}");
    assert!(told.contains("version 2 is already active") && !told.contains("[y/N]"), "{told}");
    let (_, found) = app.owner().get_policy(&id).await;
    assert_eq!(found["policy"]["activation_reason"], "Agreed", "{found:#}");
    let (_, held) = agent.evaluate(asking(14.0, "DE")).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");

    // A policy with a misspelt target applies to no request.
    let policy = json!({"tenant_id": "svc:tenant:acme", "regime": "internal", "name": "Misspelt",
                        "state": "draft", "cedar": LOWER, "applies_to": ["action:paymnt.execute"]});
    let (_, made) = app.owner().create_policy(policy).await;
    let id = made["policy"]["id"].as_str().unwrap();
    let (_, _, told) = answering(&app, &format!("policies activate {id}"), "n\n").await;
    let (before, _) = told.split_once("[y/N]").unwrap();
    assert!(before.contains("Did you mean `payment.execute`?"), "{told}");
    assert!(before.contains("It applies to action:paymnt.execute."), "{told}");
    // A draft that has never been active is shown as entirely new.
    let added = LOWER.lines().map(|line| format!("+{line}")).collect::<Vec<_>>().join("\n");
    assert!(before.contains(&added), "{told}");
    let (code, shown, told) = owner(&app, &format!("policies diff {id}")).await;
    assert!(code == 0 && shown.contains(&added), "{shown}{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_observed_and_no_longer_observed() {
    let app = TestApp::seeded().await;
    let (_, table, _) = owner(&app, "policies list --tenant acme").await;
    let id = ids(&table)[0].to_owned();
    app.owner().update_policy(&id, only("cedar", LOWER)).await.assert_status(200);

    let (code, printed, told) = owner(&app, &format!("policies observe {id} 2")).await;
    assert_eq!((code, printed), (0, format!("{id}  version 2 is observing\n")), "{told}");
    let (_, shown, _) = owner(&app, &format!("policies show {id}")).await;
    assert!(shown.contains("observing_version: 2\n"), "{shown}");
    assert!(shown.contains("  would_change: 0\n"), "{shown}");
    let (code, printed, told) = owner(&app, &format!("policies unobserve {id}")).await;
    assert_eq!((code, printed), (0, format!("{id}  no version is observing\n")), "{told}");
    let (code, _, told) = owner(&app, &format!("policies unobserve {id}")).await;
    assert!(code == 1 && told.contains("no version of the policy is observing"), "{told}");
}
