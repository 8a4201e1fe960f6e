//! Requests that automatically cite a ready approval, if their tenant permits it.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
};
use crate::support::{Answered, Client, Plain, TestApp, asking, nothing, only};

const SCOPES: [&str; 2] = ["runtime:read", "runtime:write"];

/// Starts the demonstration tenant with `cite_ready_approval` and a client with its key.
async fn citing() -> (TestApp, Client) {
    let (app, client, _) = demo().await;
    cite(&app, true).await;
    (app, client)
}

async fn cite(app: &TestApp, whether: bool) {
    let body = only("cite_ready_approval", whether);
    let (status, tenant) = app.owner().update_tenant("acme", body).await;
    assert_eq!((status, &tenant["tenant"]["cite_ready_approval"]), (200, &json!(whether)));
}

async fn asked(client: &Client, ask: &Value) -> Value {
    client.evaluate(ask.clone()).await.assert_status(200)
}

/// Creates a ready approval for the request.
async fn ready(app: &TestApp, client: &Client, ask: &Value) -> String {
    let id = held(client, ask).await;
    let (_, approved) = act(&approver(app), &id, "approve", nothing()).await;
    assert_eq!(approved["state"], "approved", "{approved:#}");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_approval_is_cited_once() {
    let (app, client, _) = demo().await;
    cite(&app, false).await;
    let ask = asking(25_000.0, "DE");
    let first = ready(&app, &client, &ask).await;
    // A second ready approval for the same request, which is possible only in older data.
    let hidden = format!("UPDATE approvals SET requested_by = '{{}}' WHERE id = '{first}'");
    let asked_by = app.owner().get_approval(&first).await.1["approval"]["requested_by"][0].clone();
    app.database.run(&hidden).await;
    let second = ready(&app, &client, &ask).await;
    assert_ne!(first, second);
    let shown = format!(
        "UPDATE approvals SET requested_by = ARRAY['{asked_by}'::jsonb] WHERE id = '{first}'"
    );
    app.database.run(&shown).await;
    cite(&app, true).await;
    assert_eq!(asked(&client, &asking(25_001.0, "DE")).await["decision"], "require_approval");
    let allowed = asked(&client, &ask).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    // The oldest approval is used and stored in the record.
    let used = read(&approver(&app), &first).await;
    assert_eq!((used["state"].text(), &used["used_by"]), ("used", &allowed["decision_id"]));
    assert_eq!(read(&approver(&app), &second).await["state"], "approved");
    let (_, shown) = client.get_decision(allowed["decision_id"].as_str().unwrap()).await;
    assert_eq!(shown["record"]["request"]["approval_id"], first, "{shown:#}");
    // The second approval permits exactly one call when twelve are made at once.
    let answers = join_all((0..12).map(|_| asked(&client, &ask))).await;
    let allowed = answers.iter().filter(|answer| answer["decision"] == "allow").count();
    assert_eq!(allowed, 1, "{answers:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_asking_credential_cites_it() {
    let (app, _) = citing().await;
    let made = json!({"tenant_id": TENANT, "label": "asks", "scopes": SCOPES});
    let (_, made) = app.owner().create_api_key(made).await;
    let own = app.client(made["secret"].as_str().unwrap());
    let other = app.client(&app.api_key(TENANT, &SCOPES).await);
    let ask = asking(25_000.0, "DE");
    let id = ready(&app, &own, &ask).await;
    for stranger in [&other, &app.owner()] {
        let answer = asked(stranger, &ask).await;
        assert_eq!(answer["decision"], "require_approval", "{answer:#}");
        assert_ne!(answer["approval_id"], id);
    }
    // A key stays the same after its secret is rotated.
    let rotated = app
        .owner()
        .rotate_api_key(made["api_key"]["id"].as_str().unwrap())
        .await
        .assert_status(200);
    let own = app.client(rotated["secret"].as_str().unwrap());
    assert_eq!(asked(&own, &ask).await["decision"], "allow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_ready_or_not_needed_is_not_cited() {
    let (app, client) = citing().await;
    let ask = asking(25_000.0, "DE");
    let pending = held(&client, &ask).await;
    assert_eq!(asked(&client, &ask).await["approval_id"], json!(pending));
    let ann = approver(&app);
    assert_eq!(act(&ann, &pending, "approve", nothing()).await.0, 200);
    assert_eq!(act(&ann, &pending, "withdraw", only("reason", "no")).await.0, 200);
    let next = held(&client, &ask).await;
    assert_ne!(next, pending);
    assert_eq!(act(&ann, &next, "approve", nothing()).await.1["state"], "approved");
    // Without the policy no approval is needed or used.
    let (_, policies) = app.owner().list_policies("").await;
    let policy = policies["policies"][0]["id"].as_str().unwrap();
    assert_eq!(app.owner().update_policy(policy, only("state", "retired")).await.0, 200);
    assert_eq!(asked(&client, &ask).await["decision"], "allow");
    assert_eq!(read(&ann, &next).await["state"], "approved");
}
