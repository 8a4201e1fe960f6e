//! Relationship rows and their keys.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::new_uses;

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_is_found_by_query_or_by_segment() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let bot = app.principal(&tenant, "agent", "Bot").await;
    let ws = id(&app.make("/workspaces", json!({"tenant_id": tenant, "name": "w"})).await);
    let body =
        json!({"principal_id": bot, "workspace_id": ws, "allowed_actions_json": "[\"a.*\"]"});
    let row = app.make("/relationships/acts-in", body.clone()).await;
    app.call("POST", "/relationships/acts-in", body).await.is(409);
    let base = "/relationships/acts-in";
    let query = format!("{base}/item?principal_id={bot}&workspace_id={ws}");
    assert_eq!(app.get(&query).await.is(200).body, json!({"ok": true, "acts_in": row}));
    let key = |first: &str, second: &str| URL_SAFE_NO_PAD.encode(format!("{first}|{second}"));
    app.get(&format!("{base}/{}", key(&bot, &ws))).await.is(200);
    app.get(&format!("{base}/{}", key("a", "b"))).await.is(404);
    app.get(&format!("{base}/!!")).await.is(400);
    app.get(&format!("{base}/item?principal_id={bot}")).await.is(400);
    app.call("DELETE", &format!("/workspaces/{ws}"), Value::Null).await.is(409);
    app.call("DELETE", &query, Value::Null).await.is(200);
    app.call("DELETE", &query, Value::Null).await.is(404);
    app.call("DELETE", &format!("/workspaces/{ws}"), Value::Null).await.is(200);
    let bad = json!({"principal_id": bot, "workspace_id": ws, "allowed_actions_json": "a.*"});
    let refused = app.call("POST", base, bad).await.is(400);
    assert_eq!(refused.fields(), ["allowed_actions_json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_are_found_by_all_three_parts() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let bot = app.principal(&tenant, "agent", "Bot").await;
    let body = json!({"tenant_id": tenant, "name": "t", "function_signature": "f()"});
    let tool = id(&app.make("/tools", body).await);
    let row = app
        .make("/relationships/uses", json!({"agent_id": bot, "used_id": tool, "used_kind": "tool"}))
        .await;
    assert_eq!(row["allowed"], 1);
    let path = format!("/relationships/uses/item?agent_id={bot}&used_id={tool}&used_kind=tool");
    app.get(&path).await.is(200);
    app.get(&path.replace("&used_kind=tool", "")).await.is(400);
    app.get(&path.replace("used_kind=tool", "used_kind=model")).await.is(404);
    app.call("DELETE", &format!("/tools/{tool}"), Value::Null).await.is(409);
    // Either reference may be in the wrong tenant. Both fields are therefore reported.
    for (body, members) in [
        (
            json!({"agent_id": bot, "used_id": "x", "used_kind": "tool"}),
            &["used_id", "agent_id"][..],
        ),
        (new_uses(&bot, "A"), &["used_id"]),
        (json!({"agent_id": "x", "used_id": tool, "used_kind": "tool"}), &["agent_id"]),
        (
            json!({"agent_id": bot, "used_id": tool, "used_kind": "tool", "constraints_json": "{\"x\":1}"}),
            &["constraints_json"],
        ),
        (
            json!({"agent_id": bot, "used_id": tool, "used_kind": "tool", "allowed": 2}),
            &["allowed"],
        ),
    ] {
        let refused = app.call("POST", "/relationships/uses", body).await.is(400);
        assert_eq!(refused.fields(), members);
    }
    app.call("DELETE", &path, Value::Null).await.is(200);
    app.call("DELETE", &format!("/tools/{tool}"), Value::Null).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn access_is_granted_to_principals_and_teams_of_the_tenant() {
    let app = App::start().await;
    let (acme, other) = (app.tenant("acme").await, app.tenant("other").await);
    let body = json!({"tenant_id": acme, "kind": "ledger", "name": "gl"});
    let ledger = id(&app.make("/resources", body).await);
    let stranger = app.principal(&other, "human", "Eve").await;
    let team = id(&app.make("/teams", json!({"tenant_id": acme, "name": "t"})).await);
    let grant = |grantee: &str, kind: &str| json!({"resource_id": ledger, "grantee_id": grantee, "grantee_kind": kind, "access_level": "read"});
    let path = "/relationships/granted-access-to";
    let row = app.make(path, grant(&team, "team")).await;
    for (body, members) in [
        (grant(&stranger, "principal"), &["grantee_id", "resource_id"][..]),
        (grant(&team, "principal"), &["grantee_id", "resource_id"]),
        (
            json!({"resource_id": "x", "grantee_id": team, "grantee_kind": "team", "access_level": "read"}),
            &["resource_id"],
        ),
    ] {
        let refused = app.call("POST", path, body).await.is(400);
        assert_eq!(refused.fields(), members);
    }
    app.call("DELETE", &format!("/resources/{ledger}"), Value::Null).await.is(409);
    app.call("DELETE", &format!("/teams/{team}"), Value::Null).await.is(409);
    app.call("DELETE", &format!("{path}/{}", id(&row)), Value::Null).await.is(200);
    app.call("DELETE", &format!("/resources/{ledger}"), Value::Null).await.is(200);
}
