//! The behaviour shared by all records: the five operations,
//! violations, pages, versions, tenants, history.

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Plain, only};

fn tool(tenant: &str) -> Value {
    json!({
        "tenant_id": tenant, "name": "pay", "function_signature": "pay(amount)",
        "actions": ["payment.*"], "tags": ["a"], "metadata": {"z": 1, "a": {"half": 0.5}},
        "action_declaration": {"effect_class": "financial", "reversibility": "irreversible"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_lives_and_ends() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let made = app.make("/tools", tool(&tenant)).await;
    assert!(id(&made).starts_with("svc:ent:acme:tool:"), "{made:#}");
    assert_eq!((made["state"].text(), &made["description"]), ("active", &Value::Null));
    assert_eq!(made["action_declaration"]["rollback_available"], Value::Null);
    assert_eq!(made["metadata"], json!({"z": 1, "a": {"half": 0.5}}));
    assert_eq!(made["created_by"], "ada@example.com");
    let path = format!("/tools/{}", id(&made));
    assert_eq!(app.get(&path).await.is(200).body, json!({"ok": true, "tool": made}));
    let patch = json!({"description": "sends", "metadata": {"n": 3}, "tags": null,
        "action_declaration": null});
    let changed = app.call("PATCH", &path, patch).await.is(200).body;
    let tool = &changed["tool"];
    assert_eq!((&tool["metadata"], &tool["tags"]), (&only("n", 3), &json!([])));
    assert_eq!((&tool["action_declaration"], tool["name"].text()), (&Value::Null, "pay"));
    assert_eq!(app.get(&path).await.body, changed);
    let gone = app.call("DELETE", &path, Value::Null).await.is(200).body;
    assert_eq!((gone["ok"].as_bool(), gone["tool"]["state"].text()), (Some(true), "deprecated"));
    app.get(&path).await.is(200);
    for (method, body) in [("PATCH", only("notes", "n")), ("DELETE", Value::Null)] {
        let refused = app.call(method, &path, body).await.is(409);
        assert_eq!(refused.body["error"], "record_is_final");
    }
    assert_eq!(app.caught_up(), 4);
    assert_eq!(versions(&app, &id(&made)).await, ["active", "active", "deprecated"]);
}

async fn versions(app: &App, id: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Version {
        #[diesel(sql_type = Text)]
        state: String,
    }
    let sql = "SELECT coalesce(body ->> 'state', 'gone') AS state FROM record_versions \
               WHERE entity_id = $1 ORDER BY version";
    let query = diesel::sql_query(sql).bind::<Text, _>(id);
    let rows: Vec<Version> = query.load(&mut app.database.owner().await).await.unwrap();
    rows.into_iter().map(|row| row.state).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_request_is_named() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let refused =
        app.call("POST", "/tools", json!({"actions": ["Bad"], "no_such_member": 1})).await;
    assert!(refused.is(400).body.to_string().contains("no_such_member"));
    let refused = app.call("POST", "/tools", json!({"actions": ["Bad"], "id": "x"})).await.is(400);
    assert_eq!(refused.fields(), ["tenant_id", "name", "function_signature", "actions[0]", "id"]);
    let mut other = tool(&tenant);
    other["workspace_id"] = "svc:ent:other:workspace:0".into();
    let refused = app.call("POST", "/tools", other).await.is(400);
    assert_eq!(refused.fields(), ["workspace_id"]);
    let refused = app.call("POST", "/tools", tool("svc:tenant:none")).await.is(400);
    assert_eq!(refused.fields(), ["tenant_id"]);
    let made = app.make("/tools", tool(&tenant)).await;
    let path = format!("/tools/{}", id(&made));
    let patch = json!({"id": "x", "tenant_id": tenant, "state": "deprecated", "name": null});
    let refused = app.call("PATCH", &path, patch).await.is(400);
    assert_eq!(refused.fields(), ["id", "tenant_id", "state", "name"]);
    for (method, path) in [("GET", "/tools/none"), ("PATCH", "/tools/none"), ("DELETE", "/tools/x")]
    {
        let body = if method == "PATCH" { only("notes", "n") } else { Value::Null };
        app.call(method, path, body).await.is(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_in_pages() {
    let app = App::start().await;
    let (acme, other) = (app.tenant("acme").await, app.tenant("other").await);
    for number in 0..5 {
        app.make("/teams", json!({"tenant_id": acme, "name": format!("t{number}")})).await;
    }
    app.make("/teams", json!({"tenant_id": other, "name": "theirs"})).await;
    let (mut names, mut token) = (Vec::new(), String::new());
    for page in 0..3 {
        let path = format!("/teams?tenant_id={acme}&limit=2&count=true&page_token={token}");
        let body = app.get(&path).await.is(200).body;
        assert_eq!((body["ok"].as_bool(), body["total"].number()), (Some(true), 5));
        let teams = body["teams"].as_array().unwrap();
        names.extend(teams.iter().map(|team| team["name"].as_str().unwrap().to_owned()));
        assert_eq!(body["next_page_token"].is_null(), page == 2, "{body:#}");
        token = body["next_page_token"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"]);
    for query in ["limit=0", "limit=501", "page_token=AAAA", "state=nonsense", "none=1"] {
        app.get(&format!("/teams?{query}")).await.is(400);
    }
    let all = app.get("/teams").await.is(200).body;
    assert_eq!((all["teams"].as_array().unwrap().len(), &all["total"]), (6, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_may_ask_for_the_version_it_knows() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let made = app.call("POST", "/tools", tool(&tenant)).await.is(201);
    let etag = made.headers["etag"].to_str().unwrap().to_owned();
    let path = format!("/tools/{}", id(&made.body["tool"]));
    let notes = only("notes", "n");
    let known = [("if-match", etag.as_str())];
    let first = app.call_as("owner", "PATCH", &path, notes.clone(), &known).await.is(200);
    assert_ne!(first.headers["etag"], etag.as_str());
    for (method, body) in [("PATCH", notes), ("DELETE", Value::Null)] {
        let refused = app.call_as("owner", method, &path, body, &known).await.is(412);
        assert_eq!(refused.body["error"], "precondition_failed");
    }
    // `If-Match` may list several versions, in one header line or in several. One must be current.
    let mut etag = first.headers["etag"].to_str().unwrap().to_owned();
    let lists: [fn(&str) -> Vec<String>; 3] = [
        |etag| vec![format!("\"0\", {etag}")],
        |etag| vec!["\"0\"".to_owned(), etag.to_owned()],
        |etag| vec![format!("{etag},\"0\""), "\"1\"".to_owned()],
    ];
    for (n, list) in lists.into_iter().enumerate() {
        let list = list(&etag);
        let lines: Vec<_> = list.iter().map(|line| ("if-match", line.as_str())).collect();
        let notes = only("notes", format!("{n}"));
        let changed = app.call_as("owner", "PATCH", &path, notes, &lines).await.is(200);
        etag = changed.headers["etag"].to_str().unwrap().to_owned();
    }
    let lines = [("if-match", "\"0\""), ("if-match", "\"1\"")];
    app.call_as("owner", "DELETE", &path, Value::Null, &lines).await.is(412);
    app.call_as("owner", "DELETE", &path, Value::Null, &[("if-match", "*")]).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sees_nothing_of_another() {
    let app = App::start().await;
    let (acme, other) = (app.tenant("acme").await, app.tenant("other").await);
    let made = app.make("/tools", tool(&acme)).await;
    let path = format!("/tools/{}", id(&made));
    let none = Value::Null;
    app.call_as(&acme, "GET", &path, none.clone(), &[]).await.is(200);
    app.call_as(&other, "GET", &path, none.clone(), &[]).await.is(404);
    app.call_as(&other, "PATCH", &path, only("notes", "n"), &[]).await.is(404);
    app.call_as(&other, "DELETE", &path, none.clone(), &[]).await.is(404);
    let list = app.call_as(&other, "GET", "/tools", none.clone(), &[]).await.is(200);
    assert_eq!(list.body["tools"], json!([]));
    let asked = format!("/tools?tenant_id={acme}");
    assert_eq!(app.call_as(&other, "GET", &asked, none, &[]).await.body["tools"], json!([]));
    let refused = app.call_as(&other, "POST", "/tools", tool(&acme), &[]).await.is(400);
    assert_eq!(refused.fields(), ["tenant_id"]);
}
