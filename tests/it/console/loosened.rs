//! Before a form loosens or ends a tool that binds requests, it lists the terms that will no longer
//! apply.

use serde_json::json;

use super::Console;
use crate::support::Answered;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_becomes_milder_is_asked_once_more() {
    let console = Console::start().await;
    let tool = json!({"tenant_id": "svc:tenant:acme", "name": "wires", "function_signature": "wire()",
        "actions": ["payment.execute"], "requires": ["bic"],
        "action_risk_classification": {"risk_tier": "high"}});
    let made = console.app.owner().create_tool(tool).await.assert_status(201);
    let id = made["tool"]["id"].as_str().unwrap();
    let now = async || {
        let (_, found) = console.app.owner().get_tool(id).await;
        (found["tool"]["requires"].clone(), found["tool"]["state"].clone())
    };
    let record = format!("/console/records/tools/{id}");
    let mut owner = console.browser();
    owner.sign_in("owner", "operator@localhost", "/console/records").await;

    let path = format!("{record}/update");
    let action = path.replace(':', "%3A");
    let mut form = owner.get(&path).await.form_with(&action, "m.requires", "");
    let asked = owner.post(&path, &form).await;
    asked.shows("Less will be asked of requests: payment.execute: no longer requires bic");
    asked.shows("Loosen it</button>");
    assert_eq!(
        now().await,
        (json!(["bic"]), json!("active")),
        "the change was made before the confirmation"
    );
    form.extend(asked.form(&action).into_iter().filter(|(name, _)| name == "said"));
    owner.post(&path, &form).await;
    assert_eq!(now().await, (json!([]), json!("active")));

    let page = owner.get(&format!("{record}/delete")).await;
    page.shows("Less will be asked of requests afterwards:");
    page.shows("payment.execute: oversight none, was two_person");
    assert_eq!(now().await.1, "active");
}
