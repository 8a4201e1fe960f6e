//! The callers that may manage endpoints, and the maximum number of endpoints.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{ADMINS, KEYS, OTHER, OWNERS, TENANT, World, bind, body, fields, id, made, made_at};
use crate::support::{Plain, new_principal, nothing, only};

/// Every operation on an endpoint below `base`.
fn operations(base: &str, id: &str) -> Vec<(&'static str, String, Option<Value>)> {
    let item = format!("{base}/{id}");
    vec![
        ("GET", item.clone(), None),
        ("PATCH", item.clone(), Some(only("description", "x"))),
        ("POST", format!("{item}:rotate-secret"), Some(nothing())),
        ("POST", format!("{item}:pause"), Some(nothing())),
        ("POST", format!("{item}:enable"), Some(nothing())),
        ("DELETE", item, None),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_surfaces_manage_the_same_endpoints() {
    let world = World::start().await;
    let owner = world.app.owner();
    let (key_id, key) = world.key().await;
    let (by_key, _) = made_at(&key, KEYS, nothing()).await;
    let (by_owner, _) = made_at(&owner, OWNERS, only("tenant_id", TENANT)).await;
    let (by_admin, _) = made_at(&world.admin, ADMINS, nothing()).await;
    assert_eq!(
        (by_key["key_id"].text(), by_key["created_by"].text()),
        (key_id.as_str(), key_id.as_str())
    );
    assert_eq!((&by_owner["key_id"], &by_admin["key_id"]), (&Value::Null, &Value::Null));
    let all = json!([id(&by_key), id(&by_owner), id(&by_admin)]);
    for (client, path) in [(&key, KEYS), (&owner, OWNERS), (&world.admin, ADMINS)] {
        let (status, list) = client.get(path).await;
        let listed = list["webhook_endpoints"].as_array().unwrap();
        let ids: Vec<_> = listed.iter().map(|one| one["id"].clone()).collect();
        assert_eq!((status, json!(ids)), (200, all.clone()), "{path}");
        let (_, one) = client.get(&format!("{path}/{}", id(&by_owner))).await;
        assert_eq!(one["webhook_endpoint"], by_owner, "{path}");
    }
    let (status, answer) = owner.post(OWNERS, body(nothing())).await;
    assert_eq!((status, fields(&answer)), (400, vec!["tenant_id"]), "{answer:#}");
    for role in ["auditor", "approver", "legal", "member", "viewer"] {
        let client = world.app.person(TENANT, role, "bob@acme.example");
        assert_eq!(client.get(ADMINS).await.0, 403, "{role}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_bound_to_principals_manages_none() {
    let world = World::start().await;
    let endpoint = made(&world.admin, nothing()).await;
    let agent = new_principal("agent", "bot");
    let (_, agent) = world.app.owner().create_principal(agent).await;
    // The API does not create such a key.
    let (key_id, key) = world.key().await;
    world.run(&bind(&key_id, agent["principal"]["id"].as_str().unwrap())).await;
    // The node's in-memory state gets the change from the change log.
    for _ in 0..100 {
        if key.get(KEYS).await.0 != 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut all = operations(KEYS, &endpoint);
    all.push(("GET", KEYS.to_owned(), None));
    all.push(("POST", KEYS.to_owned(), Some(body(nothing()))));
    for (method, path, body) in all {
        let (status, answer) = key.call(method, &path, body, &[]).await;
        assert_eq!((status, answer["error"].text()), (403, "forbidden"), "{method} {path}");
        assert!(answer["message"].as_str().unwrap().contains("bound"), "{answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_endpoint_does_not_exist() {
    let world = World::start().await;
    let endpoint = made(&world.admin, nothing()).await;
    let foreign = world.app.person(OTHER, "admin", "eve@other.example");
    let key = world.app.api_key(OTHER, &["webhooks:write"]).await;
    for (client, base) in [(&foreign, ADMINS), (&world.app.client(&key), KEYS)] {
        for (method, path, body) in operations(base, &endpoint) {
            let (status, answer) = client.call(method, &path, body, &[]).await;
            assert_eq!(status, 404, "{method} {path}: {answer:#}");
        }
        assert_eq!(client.get(base).await.1["webhook_endpoints"], json!([]));
        // A tenant that exists gives the same answer as one that does not.
        for other in [TENANT, "svc:tenant:nobody"] {
            let path = format!("{base}?tenant_id={other}&deleted=true");
            let (_, listed) = client.get(&path).await;
            assert_eq!(listed["webhook_endpoints"], json!([]), "{listed:#}");
        }
        let (status, answer) = client.post(base, body(only("tenant_id", TENANT))).await;
        assert_eq!((status, fields(&answer)), (400, vec!["tenant_id"]), "{answer:#}");
    }
    assert_eq!(world.column(&endpoint, "state").await.unwrap(), "active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_has_twenty_endpoints() {
    let world = World::start().await;
    let mut last = String::new();
    for _ in 0..19 {
        last = made(&world.admin, nothing()).await;
    }
    // Another node is creating the twentieth endpoint and has not committed it.
    let mut other_node = world.db().await;
    let twentieth = format!(
        "BEGIN; SELECT FROM tenants WHERE id = '{TENANT}' FOR NO KEY UPDATE;
         INSERT INTO webhook_endpoints SELECT (copy).* FROM (
             SELECT jsonb_populate_record(e, '{{\"id\": \"svc:endpoint:0\"}}') AS copy
             FROM webhook_endpoints e WHERE id = '{last}') AS copied"
    );
    other_node.batch_execute(&twentieth).await.unwrap();
    let admin = world.admin.clone();
    let attempt = tokio::spawn(async move { admin.post(ADMINS, body(nothing())).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!attempt.is_finished());
    other_node.batch_execute("COMMIT").await.unwrap();
    assert_eq!(attempt.await.unwrap().0, 409);
    let (status, answer) = world.admin.post(ADMINS, body(nothing())).await;
    assert_eq!((status, answer["error"].text()), (409, "limit_reached"));
    let other = world.app.person(OTHER, "admin", "eve@other.example");
    made(&other, nothing()).await;
    let path = format!("{ADMINS}/{last}");
    assert_eq!(world.admin.call("DELETE", &path, None, &[]).await.0, 200);
    made(&world.admin, nothing()).await;
}
