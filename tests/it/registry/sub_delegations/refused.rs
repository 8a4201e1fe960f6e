//! Delegations that an API key may not make.

use serde_json::{Value, json};

use super::{Acme, BOT, CAT, DOG, PATH, TENANT, fault, id, part, with};
use crate::support::{Answered, Client, Plain, new_api_key, new_tenant, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_needs_the_scope_and_agents() {
    let acme = Acme::start().await;
    let owner = acme.app.owner();
    let unbound = new_api_key("unbound", &["delegations:write"]);
    let (status, refused) = owner.create_api_key(unbound).await;
    assert_eq!((status, fault(&refused)), (400, ("invalid_request", vec!["principal_ids"])));
    let (_, bound) = acme.key(&[BOT]).await;
    let path = format!("/api/v1/api-keys/{bound}");
    let (status, refused) = owner.patch(&path, json!({"principal_ids": []})).await;
    assert_eq!((status, fault(&refused)), (400, ("invalid_request", vec!["principal_ids"])));
    let other = acme.app.client(&acme.app.api_key(TENANT, &["runtime:write"]).await);
    for (method, path, body) in [
        ("GET", PATH.to_owned(), None),
        ("POST", PATH.to_owned(), Some(nothing())),
        ("POST", format!("{PATH}/x/revoke"), Some(nothing())),
    ] {
        let (status, refused) = other.call(method, &path, body, &[]).await;
        let told = (status, &refused["error"]);
        assert_eq!(told, (403, &json!("permission_scope_exceeded")), "{method} {path}");
    }
    // If a key's list of principals is emptied directly in the database, the key can read no
    // delegation.
    let root = acme.root(BOT, nothing()).await;
    let (key, id) = acme.key(&[BOT]).await;
    let sql = format!("UPDATE api_keys SET principal_ids = '{{}}' WHERE id = '{id}'");
    acme.app.database.run(&format!("BEGIN; {}; COMMIT", Acme::service(&sql))).await;
    acme.app.app.graph.catch_up().await;
    assert_eq!(key.get(PATH).await.1["delegations"], json!([]));
    assert_eq!(key.get(&format!("{PATH}/{root}")).await.0, 404);
    assert_eq!(key.post(PATH, part(&root, CAT)).await.0, 400);
}

/// Delegations of other agents and tenants get the same error as ids that do not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_that_is_anothers_is_unknown() {
    let acme = Acme::start().await;
    let mine = acme.root(BOT, nothing()).await;
    let others = acme.root(DOG, nothing()).await;
    acme.made("tenants", new_tenant("Other", "other")).await;
    let mut theirs = Vec::new();
    for name in ["boss", "bot"] {
        let body = json!({"tenant_id": "svc:tenant:other", "principal_class": "agent",
            "name": name, "display_name": name});
        theirs.push(acme.made("principals", body).await["id"].clone());
    }
    let body = json!({"tenant_id": "svc:tenant:other", "delegator_id": theirs[0],
        "delegate_id": theirs[1], "actions": ["payment.*"], "can_delegate": true});
    let foreign = acme.made("delegations", body).await["id"].as_str().unwrap().to_owned();
    let (key, _) = acme.key(&[BOT]).await;
    let told = async |parent: &str| {
        let (status, mut refused) = key.post(PATH, part(parent, CAT)).await;
        assert_eq!((status, fault(&refused)), (400, ("invalid_request", vec!["parent_id"])));
        refused["request_id"] = Value::Null;
        refused.to_string().replace(parent, "ID")
    };
    let unknown = told("svc:del:acme:nothing").await;
    assert_eq!(told(&others).await, unknown);
    assert_eq!(told(&foreign).await, unknown);
    let (status, refused) =
        key.post(PATH, with(part(&mine, CAT), only("parent_id", Value::Null))).await;
    assert_eq!(status, 400);
    assert!(fault(&refused).1.contains(&"parent_id"), "{refused:#}");
    let elsewhere = with(part(&mine, CAT), only("tenant_id", "svc:tenant:other"));
    let (status, refused) = key.post(PATH, elsewhere).await;
    assert_eq!((status, fault(&refused).1), (400, vec!["tenant_id"]), "{refused:#}");
    let to_theirs = with(part(&mine, CAT), only("delegate_id", &theirs[1]));
    let (status, refused) = key.post(PATH, to_theirs).await;
    assert_eq!((status, fault(&refused).1), (400, vec!["delegate_id"]), "{refused:#}");
    // The key can read this delegation, because the key's agent made it. The agent can't use it as
    // the parent of another delegation.
    let (_, child) = key.post(PATH, with(part(&mine, CAT), only("can_delegate", true))).await;
    let (status, refused) = key.post(PATH, part(&id(&child), DOG)).await;
    assert_eq!((status, refused["error"].text()), (403, "subject_not_permitted"), "{refused:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_amplified() {
    let acme = Acme::start().await;
    let bounds = json!({"max_uses": {"count": 10, "window_seconds": 60},
        "jurisdictions": ["DE"], "max_risk_tier": "limited", "needs_standing_approval": true,
        "expires_at": "2099-01-01T00:00:00Z"});
    let root = acme.root(BOT, bounds.clone()).await;
    let (key, _) = acme.key(&[BOT]).await;
    let good = with(part(&root, CAT), bounds);
    assert_eq!(key.post(PATH, good.clone()).await.0, 201);
    for (member, value) in [
        ("actions", json!(["*"])),
        ("actions", json!(["payment.execute", "refund.execute"])),
        ("max_amount", json!("500.01")),
        ("max_amount", Value::Null),
        ("currency", json!("USD")),
        ("max_uses", json!({"count": 11, "window_seconds": 60})),
        ("max_uses", json!({"count": 10, "window_seconds": 59})),
        ("max_uses", Value::Null),
        ("jurisdictions", json!(["DE", "FR"])),
        ("jurisdictions", Value::Null),
        ("max_risk_tier", json!("high")),
        ("max_risk_tier", Value::Null),
        ("needs_standing_approval", json!(false)),
        ("expires_at", Value::Null),
        ("expires_at", json!("2099-01-01T00:00:01Z")),
    ] {
        let (status, refused) = key.post(PATH, with(good.clone(), json!({member: value}))).await;
        assert_eq!(
            (status, refused["error"].text()),
            (409, "delegation_exceeds_parent"),
            "{member}"
        );
        assert_eq!(fault(&refused).1, [member], "{refused:#}");
    }
    let last = acme.root(BOT, only("can_delegate", false)).await;
    let (status, refused) = key.post(PATH, part(&last, CAT)).await;
    assert_eq!((status, fault(&refused).1), (409, vec!["parent_id"]), "{refused:#}");
    // The server sets these fields itself.
    for member in ["id", "state", "root_id", "created_by"] {
        let refused =
            key.post(PATH, with(good.clone(), json!({member: "x"}))).await.assert_status(400);
        assert!(fault(&refused).1.contains(&member), "{refused:#}");
    }
}

/// A new delegation is refused at any depth below a suspended or revoked delegation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_must_be_in_force() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let ((bot, _), (cat, _)) = (acme.key(&[BOT]).await, acme.key(&[CAT]).await);
    let (_, child) = bot.post(PATH, with(part(&root, CAT), only("can_delegate", true))).await;
    let child = id(&child);
    let refused = async |word: &str| {
        for (key, parent, to) in [(&bot, &root, CAT), (&cat, &child, DOG)] {
            let refused = key.post(PATH, part(parent, to)).await.assert_status(409);
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains(&root) && message.contains(word), "{message}");
        }
    };
    acme.verb(&root, "suspend").await;
    refused("suspended").await;
    acme.verb(&root, "reinstate").await;
    assert_eq!(cat.post(PATH, part(&child, DOG)).await.0, 201);
    acme.verb(&root, "revoke").await;
    refused("revoked").await;
}

async fn children(acme: &Acme, parent: &str, count: u32) {
    let sql = format!(
        "INSERT INTO delegations (id, tenant_id, state, delegator_id, delegate_id, actions, \
             parent_id, root_id, depth, created_by) \
         SELECT 'svc:del:acme:' || n, '{TENANT}', 'active', '{BOT}', '{CAT}', '{{payment.x}}', \
             '{parent}', '{parent}', 1, 'test' FROM generate_series(1, {count}) AS n"
    );
    acme.app.database.run(&format!("BEGIN; {}; COMMIT", Acme::service(&sql))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_live_ones_are_below_one() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let (key, _) = acme.key(&[BOT]).await;
    children(&acme, &root, 998).await;
    // The limit leaves room for two delegations: two of the simultaneous calls succeed.
    let give = |_| key.post(PATH, part(&root, CAT));
    let given = futures_util::future::join_all((0..6).map(give)).await;
    let made = given.iter().filter(|(status, _)| *status == 201).count();
    assert_eq!(made, 2, "{given:?}");
    for (status, refused) in given.iter().filter(|(status, _)| *status != 201) {
        assert_eq!((*status, refused["error"].text()), (409, "limit_exceeded"), "{refused:#}");
    }
    // The limit applies to every caller.
    let by_owner = with(part(&root, CAT), only("tenant_id", TENANT));
    assert_eq!(acme.app.owner().create_delegation(by_owner).await.0, 409);
    let revoke = async |key: &Client| {
        key.post(&format!("{PATH}/svc:del:acme:1/revoke"), nothing()).await.assert_status(200);
    };
    revoke(&key).await;
    assert_eq!(key.post(PATH, part(&root, CAT)).await.0, 201);
    assert_eq!(key.post(PATH, part(&root, CAT)).await.0, 409);
    let over = "UPDATE delegations SET expires_at = now() - interval '1 s' \
                WHERE id = 'svc:del:acme:2'";
    acme.app.database.run(&format!("BEGIN; {}; COMMIT", Acme::service(over))).await;
    assert_eq!(key.post(PATH, part(&root, CAT)).await.0, 201);
}
