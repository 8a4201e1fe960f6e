//! The rules of each record.

use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{
    Members, Plain, new_delegation, new_principal, new_tenant, new_uses, nothing, only,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_soft_deleted_and_its_slug_stays_taken() {
    let app = App::start().await;
    let made = app.make("/tenants", only("name", "Acme Europe, Ltd.")).await;
    assert_eq!((made["id"].text(), made["env"].text()), ("svc:tenant:acme-europe-ltd", "sandbox"));
    assert!(made["activated_at"].is_string(), "{made:#}");
    app.get("/tenants/acme-europe-ltd").await.is(200);
    let taken = new_tenant("x", "acme-europe-ltd");
    let refused = app.call("POST", "/tenants", taken.clone()).await.is(409);
    assert_eq!(refused.body["error"], "already_exists");
    app.call("POST", "/tenants", json!({"name": "x", "env": "moon"})).await.is(400);
    app.call("POST", "/tenants", only("name", "日本")).await.is(400);
    app.call("PATCH", "/tenants/acme-europe-ltd", only("state", "deleted")).await.is(400);
    app.call("PATCH", "/tenants/acme-europe-ltd", only("state", "suspended")).await.is(200);
    assert_eq!(app.get("/tenants").await.body["tenants"], json!([]));
    let suspended = app.get("/tenants?state=suspended").await.body;
    assert_eq!(suspended["tenants"].as_array().unwrap().len(), 1);
    let gone = app.call("DELETE", "/tenants/acme-europe-ltd", Value::Null).await.is(200);
    assert!(gone.body["tenant"]["deleted_at"].is_string());
    app.get("/tenants/acme-europe-ltd").await.is(404);
    app.get("/tenants/acme-europe-ltd?deleted=true").await.is(200);
    app.call("POST", "/tenants", taken).await.is(409);
    let body = json!({"tenant_id": "svc:tenant:acme-europe-ltd", "name": "w"});
    assert_eq!(app.call("POST", "/workspaces", body).await.is(400).fields(), ["tenant_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn some_records_are_never_deleted() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    for (path, key, body, last, code) in [
        (
            "billing-accounts",
            "billing_account",
            only("billing_email", "b@example.com"),
            "closed",
            "billing_accounts_cannot_be_deleted",
        ),
        ("policies", "policy", only("regime", "internal"), "retired", "policies_are_immutable"),
        ("audit-streams", "audit_stream", nothing(), "sealed", "audit_streams_are_immutable"),
    ] {
        let body = body.with("tenant_id", &tenant);
        let made = app.make(&format!("/{path}"), body).await;
        let path = format!("/{path}/{}", id(&made));
        let refused = app.call("DELETE", &path, Value::Null).await.is(405);
        assert_eq!(
            (refused.body["error"].text(), &refused.headers["allow"]),
            (code, &"GET, PATCH".parse().unwrap())
        );
        let ended = app.call("PATCH", &path, only("state", last)).await.is(200);
        assert_eq!(ended.body[key]["state"], last);
        app.call("PATCH", &path, only("notes", "n")).await.is(409);
        app.call("PATCH", &path, only("id", "n")).await.is(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_in_use_cannot_be_deleted() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let of = |extra: Value| json!({"tenant_id": tenant, "name": "n"}).and(&extra);
    let ws = id(&app.make("/workspaces", of(only("slug", "w"))).await);
    app.call("POST", "/projects", of(nothing())).await.is(400);
    let body = of(only("visible_in_workspaces", ["svc:ent:acme:workspace:0"]));
    let refused = app.call("POST", "/projects", body).await.is(400);
    assert_eq!(refused.fields(), ["visible_in_workspaces[0]"]);
    let project = app.make("/projects", of(json!({"visible_in_workspaces": [ws]}))).await;
    let path = format!("/workspaces/{ws}");
    let refused = app.call("DELETE", &path, Value::Null).await.is(409);
    assert_eq!(refused.body["error"], "in_use");
    let moved = json!({"visible_in_workspaces": null, "workspace_id": ws});
    let project = format!("/projects/{}", id(&project));
    app.call("PATCH", &project, moved).await.is(200);
    app.call("DELETE", &path, Value::Null).await.is(409);
    // The slug of a deleted workspace can't be used again.
    let spare = app.make("/workspaces", of(only("slug", "spare"))).await;
    let gone =
        app.call("DELETE", &format!("/workspaces/{}", id(&spare)), Value::Null).await.is(200);
    assert_eq!(gone.body, json!({"ok": true, "id": id(&spare), "workspace": null}));
    let refused = app.call("POST", "/workspaces", of(only("slug", "spare"))).await.is(409);
    assert_eq!(refused.fields(), ["slug"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_takes_its_authority_along() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let bot = app.principal(&tenant, "agent", "Pay Bot").await;
    assert_eq!(bot, "svc:agent:acme:pay-bot");
    let body = new_principal("human", "A").with("tenant_id", &tenant).with("name", "a");
    assert_eq!(app.call("POST", "/principals", body).await.is(400).fields(), ["name"]);
    let ada = app.principal(&tenant, "human", "Ada").await;
    let team = id(&app.make("/teams", json!({"tenant_id": tenant, "name": "t"})).await);
    app.make("/relationships/member-of", json!({"team_id": team, "principal_id": bot})).await;
    app.make("/relationships/uses", new_uses(&bot, "payment.*")).await;
    let lent = new_delegation(&ada, &bot, &["a.b"]).with("tenant_id", &tenant);
    let lent = id(&app.make("/delegations", lent).await);
    app.call("DELETE", &format!("/principals/{bot}"), Value::Null).await.is(200);
    app.get(&format!("/principals/{bot}")).await.is(404);
    let rows = app.get(&format!("/relationships/uses?agent_id={bot}")).await.body;
    assert_eq!(rows["uses"], json!([]));
    let ended = app.get(&format!("/delegations/{lent}")).await.body;
    assert_eq!(ended["delegation"]["state"], "revoked");
    // Neither the deleted agent's name nor its id can be used again.
    let again = new_principal("agent", "Pay Bot").with("tenant_id", &tenant);
    app.call("POST", "/principals", again).await.is(409);
    let body = json!({"team_id": team, "principal_id": bot});
    let refused = app.call("POST", "/relationships/member-of", body).await.is(400);
    assert_eq!(refused.fields(), ["principal_id", "team_id"]);
}
