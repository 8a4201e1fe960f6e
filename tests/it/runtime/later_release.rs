//! A record with a member that this release does not know, as after a rollback.

use serde_json::json;

use super::demo;
use crate::{
    command_line::run,
    support::{
        Answered, Client, Members, Plain, TENANT, TestApp, Wishes, asking, new_tenant, only,
    },
};

async fn reason(client: &Client) -> String {
    let answer = client.evaluate(asking(1200.0, "DE")).await.assert_status(200);
    answer["reason_code"].text().to_owned()
}

/// Returns SQL that stores a limit of a delegation, with further members.
fn stored(delegation: &str, more: &str) -> String {
    format!(
        "UPDATE delegations SET max_uses = '{{\"count\": 9, \"window_seconds\": 60{more}}}' \
         WHERE id = '{delegation}'"
    )
}

/// Runs a command that reads all authority, and returns its errors and warnings.
async fn start_of_a_command(app: &TestApp) -> String {
    let (login, _) = app.database.names();
    // A copied database has no roles of its own, which commands require. The running services lose
    // their rights.
    authority_store::migrate(&app.database.owner_address(), login).await.unwrap();
    let (url, ring) = (app.database.url(), app.ring().to_owned());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = folder.path().display().to_string();
    let command = move || {
        let settings = [
            ("DATABASE_URL", url.as_str()),
            ("AGENT_AUTHORITY__KEYS__RING", ring.as_str()),
            ("AGENT_AUTHORITY__DATA_DIR", data.as_str()),
            ("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0"),
        ];
        run(&["keys", "rewrap"], &settings)
    };
    let (code, _, told) = tokio::task::spawn_blocking(command).await.unwrap();
    assert_eq!(code, 0, "{told}");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_member_of_a_record_denies_the_requests_of_its_tenant_alone() {
    let (app, client, delegation) = demo().await;
    let body = json!({"name": "Other", "slug": "other"});
    let (status, made) = app.owner().post("/api/v1/tenants", body).await;
    assert_eq!(status, 201, "{made:#}");
    let key = app.api_key("svc:tenant:other", &["runtime:write"]).await;
    let other = app.client(&key);
    assert_eq!(reason(&client).await, "permission_granted");
    app.database.run(&stored(&delegation, ", \"per\": \"agent\"")).await;
    app.app.graph.catch_up().await;
    assert_eq!(reason(&client).await, "tenant_inactive");
    assert_eq!(reason(&other).await, "subject_unknown");

    // A node also starts with such a record.
    let node = app.beside(Wishes::default()).await;
    let acme = node.client(&app.demo().await.api_key);
    assert_eq!(reason(&acme).await, "tenant_inactive");
    assert_eq!(reason(&node.client(&key)).await, "subject_unknown");
    let (status, listed) = node.owner().get("/api/v1/principals?tenant_id=svc:tenant:acme").await;
    assert_eq!(status, 200, "{listed:#}");
    app.database.run(&stored(&delegation, "")).await;
    for (app, client) in [(&app, &client), (&node, &acme)] {
        app.app.graph.catch_up().await;
        assert_eq!(reason(client).await, "permission_granted");
    }

    app.database.run(&stored(&delegation, ", \"per\": \"agent\"")).await;
    let told = start_of_a_command(&app).await;
    for part in
        ["unknown field `per`", &delegation, "svc:tenant:acme", "start the release that wrote"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_unreadable_record_is_found_among_the_readable_ones() {
    let (app, client, first) = demo().await;
    let lent = app.owner().get_delegation(&first).await.assert_shown("delegation");
    let mut all = vec![first];
    for _ in 0..4 {
        let body = json!({"tenant_id": TENANT, "actions": ["payment.*"], "currency": "EUR",
            "delegator_id": lent["delegator_id"], "delegate_id": lent["delegate_id"]});
        all.push(app.owner().create_delegation(body).await.assert_made("delegation"));
    }
    all.sort();
    let damaged = [(&all[1], "per"), (&all[3], "of")];
    let change = damaged.map(|(id, member)| stored(id, &format!(", \"{member}\": 1"))).join(";");
    app.database.run(&change).await;
    app.app.graph.catch_up().await;
    let node = app.beside(Wishes::default()).await;
    for (id, expected) in [(&all[1], "tenant_inactive"), (&all[3], "permission_granted")] {
        app.database.run(&stored(id, "")).await;
        for (app, client) in [(&app, &client), (&node, &node.client(&client.token))] {
            app.app.graph.catch_up().await;
            assert_eq!(reason(client).await, expected);
        }
    }
    app.database.run(&change).await;
    let told = start_of_a_command(&app).await;
    let lines = || told.lines().filter(|line| line.contains("failed to read a record"));
    assert_eq!(lines().count(), 2, "{told}");
    for (id, member) in damaged {
        let member = format!("unknown field `{member}`");
        let mut own = lines().filter(|line| line.contains(id.as_str()));
        assert!(own.next().is_some_and(|line| line.contains(&member)), "{id}: {told}");
    }
}

/// A quarantine names the newest delegation of a line, and applies to the whole line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_applies_after_the_repair_of_its_delegation() {
    let (app, client, first) = demo().await;
    let body = only("expires_at", "2100-01-01T00:00:00Z");
    let renewed = app.owner().renew_delegation(&first, body).await.assert_shown("delegation");
    let second = renewed["id"].text();
    let reason = async |client: &Client| -> String {
        let ask = asking(1200.0, "DE").with("delegation_id", second);
        client.evaluate(ask).await.assert_status(200)["reason_code"].text().to_owned()
    };
    assert_eq!(reason(&client).await, "permission_granted");
    app.database.run(&stored(second, ", \"per\": \"agent\"")).await;
    let body = json!({"tenant_id": TENANT, "delegation_id": second, "reason": "test"});
    app.owner().create_quarantine(body).await.assert_status(201);
    app.app.graph.catch_up().await;
    let node = app.beside(Wishes::default()).await;
    let there = node.client(&client.token);
    for client in [&client, &there] {
        assert_eq!(reason(client).await, "tenant_inactive");
    }
    app.database.run(&stored(second, "")).await;
    for (app, client) in [(&app, &client), (&node, &there)] {
        app.app.graph.catch_up().await;
        assert_eq!(reason(client).await, "capability_quarantined");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_people_of_an_unreadable_tenant_belong_to_no_other() {
    let (app, client, _) = demo().await;
    app.owner().update_tenant("acme", only("idp_org_id", "org_acme")).await.assert_status(200);
    app.owner().create_tenant(new_tenant("Other", "other")).await.assert_status(201);
    let token = app.token(&json!({
        "sub": "user_1", "email": "ann@example.org", "org_id": "org_acme",
        "public_metadata": {"role": "approver", "tenant_id": "svc:tenant:other"},
    }));
    let stored = |more: &str| {
        format!("UPDATE tenants SET gate = '{{\"tightenings\": []{more}}}' WHERE slug = 'acme'")
    };
    app.database.run(&stored(", \"per\": \"agent\"")).await;
    app.app.graph.catch_up().await;
    let node = app.beside(Wishes::default()).await;
    for node in [&app, &node] {
        for answer in [
            node.client(&token).list_approvals("").await,
            node.client(&client.token).evaluate(asking(1200.0, "DE")).await,
        ] {
            let answer = answer.assert_status(403);
            assert!(answer["message"].text().contains("suspended"), "{answer:#}");
        }
        assert_eq!(reason(&node.owner()).await, "tenant_inactive");
    }
    app.database.run(&stored("")).await;
    for node in [&app, &node] {
        node.app.graph.catch_up().await;
        node.client(&token).list_approvals("").await.assert_status(200);
        assert_eq!(reason(&node.client(&client.token)).await, "permission_granted");
    }
}
