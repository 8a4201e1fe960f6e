//! The data that a tenant's retention deletes, and the exceptions.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{
    Endpoint, Receiver, World, endpoint_is, log, old_deliveries, old_events, one, run, set,
};
use crate::support::{Plain, only};

/// Users see that a legal hold exists, but not its reason, because the matter may concern them.
#[tokio::test]
async fn a_tenants_people_see_how_long_events_are_kept() {
    let world = World::start().await;
    for (role, expected) in [("admin", 200), ("auditor", 200), ("approver", 403), ("member", 403)] {
        let person = world.app.person(&world.tenant_id, role, "ann@acme.example");
        assert_eq!(person.get_event_retention().await.0, expected, "{role}");
    }
    let admin = world.app.person(&world.tenant_id, "admin", "ann@acme.example");
    let shown = json!({"ok": true, "event_retention_days": 30, "legal_hold": false});
    assert_eq!(admin.get_event_retention().await.1, shown);
    let held = json!({"event_retention_days": 90, "legal_hold": {"reason": "case 7"}});
    set(&world, &world.tenant_id, held).await;
    let shown = json!({"ok": true, "event_retention_days": 90, "legal_hold": true});
    assert_eq!(admin.get_event_retention().await.1, shown);
}

#[tokio::test]
async fn a_tenant_keeps_events_for_14_to_400_days_as_the_owner_says() {
    let world = World::start().await;
    let (owner, path) = (world.app.owner(), format!("/api/v1/tenants/{}", world.tenant_id));
    assert_eq!(owner.get(&path).await.1["tenant"]["event_retention_days"], 30);
    assert_eq!(owner.get(&path).await.1["tenant"]["legal_hold"], Value::Null);
    for days in [14, 400] {
        let (status, changed) = owner.patch(&path, only("event_retention_days", days)).await;
        assert_eq!((status, &changed["tenant"]["event_retention_days"]), (200, &json!(days)));
    }
    for (body, field) in [
        (only("event_retention_days", 13), "event_retention_days"),
        (only("event_retention_days", 401), "event_retention_days"),
        (json!({"legal_hold": {}}), "legal_hold.reason"),
        (json!({"legal_hold": {"reason": ""}}), "legal_hold.reason"),
    ] {
        let (status, refused) = owner.patch(&path, body).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
        let new = json!({"name": "n", "event_retention_days": 13});
        let (status, refused) = owner.create_tenant(new).await;
        let field = &refused["details"][0]["field"];
        assert_eq!((status, field), (400, &json!("event_retention_days")), "{refused:#}");
    }
    for days in [13, 401] {
        let update = format!("UPDATE tenants SET event_retention_days = {days}");
        let mut db = world.app.database.owner().await;
        assert!(db.batch_execute(&update).await.is_err(), "{days}");
    }
    let admin = world.app.client(&world.app.member_token(&world.tenant_id, "admin"));
    assert_eq!(admin.patch(&path, only("event_retention_days", 14)).await.0, 403);
    let hold = json!({"legal_hold": {"reason": "case 7"}});
    let (status, held) = owner.patch(&path, hold.clone()).await;
    assert_eq!((status, &held["tenant"]["legal_hold"]), (200, &hold["legal_hold"]));
    let cleared = json!({"legal_hold": null, "event_retention_days": null});
    let (status, cleared) = owner.patch(&path, cleared).await;
    let tenant = &cleared["tenant"];
    assert_eq!(
        (status, &tenant["legal_hold"], tenant["event_retention_days"].number()),
        (200, &Value::Null, 30)
    );
    let kept = world
        .rows(&format!(
            "SELECT body ->> 'event_retention_days' AS days, body -> 'legal_hold' ->> 'reason' AS hold, \
                 actor FROM record_versions WHERE entity_id = '{}' ORDER BY version",
            world.tenant_id
        ))
        .await;
    let kept: Vec<_> =
        kept.iter().map(|row| (row["days"].as_str(), row["hold"].as_str())).collect();
    let versions =
        [("30", None), ("14", None), ("400", None), ("400", Some("case 7")), ("30", None)];
    assert_eq!(kept, versions.map(|(days, hold)| (Some(days), hold)));
}

#[tokio::test]
async fn old_events_go_and_whoever_is_behind_is_told() {
    let world = World::start().await;
    let (acme, held) = (&world.tenant_id, World::tenant(&world.app, "held").await);
    let long = World::tenant(&world.app, "long").await;
    let still = World::tenant(&world.app, "still").await;
    set(&world, &held, json!({"legal_hold": {"reason": "case 7"}})).await;
    set(&world, &long, only("event_retention_days", 400)).await;
    for tenant_id in [acme, &held, &long, &still] {
        world.events_of(tenant_id, 2600, "svc.authority.suspended").await;
    }
    set(&world, &still, only("state", "suspended")).await;
    world.run(&old_events(32, "last_sequence <= 2500")).await;
    // Events are deleted in the order of their numbers: a younger event keeps all later ones.
    world.run(&old_events(1, "last_sequence = 2400")).await;
    run(&world).await;
    for (tenant_id, kept) in [(acme, 2400), (&held, 1), (&long, 1), (&still, 2400)] {
        assert_eq!(log(&world, tenant_id).await, (kept, 2601 - kept), "{tenant_id}");
    }
    world.run(&old_events(30, "last_sequence = 2400")).await;
    run(&world).await;
    assert_eq!(log(&world, acme).await, (2400, 201), "30 whole days are kept");
    world.run(&old_events(31, "last_sequence = 2400")).await;
    run(&world).await;
    assert_eq!(log(&world, acme).await, (2501, 100));

    let key = world.app.client(&world.app.api_key(acme, &["events:read"]).await);
    for path in ["/v1/events?after=0", "/v1/events?after=2499", "/v1/events:stream?after=2499"] {
        let (status, expired) = key.get(path).await;
        assert_eq!((status, expired["error"].text()), (409, "sequence_expired"), "{expired:#}");
    }
    let (status, page) = key.list_events("after=2500&limit=2").await;
    assert_eq!((status, page["oldest"].number(), page["head"].number()), (200, 2501, 2600));
    assert_eq!(page["events"][0]["sequence"], 2501);
    let (_, page) = key.list_events("limit=1").await;
    assert_eq!(
        page["events"][0]["sequence"], 2501,
        "without a position the page begins with the oldest event"
    );

    set(&world, &held, only("legal_hold", Value::Null)).await;
    run(&world).await;
    assert_eq!(log(&world, &held).await, (2501, 100));
    world.events(1).await;
    run(&world).await;
    assert_eq!(log(&world, acme).await, (2501, 101));
}

#[tokio::test]
async fn old_deliveries_go_with_their_attempts_unless_they_are_held() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let held = World::tenant(&world.app, "held").await;
    let (ours, theirs) = (
        world.endpoint(Endpoint::at(&receiver.base)).await,
        world.endpoint_of(&held, Endpoint::at(&receiver.base)).await,
    );
    set(&world, &held, json!({"legal_hold": {"reason": "case 7"}})).await;
    for tenant_id in [&world.tenant_id, &held] {
        world.events_of(tenant_id, 5, "svc.authority.suspended").await;
    }
    for endpoint in [&ours, &theirs] {
        world.wait_until_ended(endpoint, 5).await;
    }
    world.run(&(old_events(32, "last_sequence <= 3") + &old_deliveries(32, "sequence <= 3"))).await;
    run(&world).await;
    let left = world.deliveries(&ours).await;
    let sequences: Vec<_> = left.iter().map(|one| one["sequence"].as_i64().unwrap()).collect();
    assert_eq!(sequences, [4, 5]);
    assert_eq!(world.deliveries(&theirs).await.len(), 5);
    let attempts = "SELECT count(*) FROM webhook_attempts WHERE tenant_id = ";
    assert_eq!(one(&world, &format!("{attempts}'{}'", world.tenant_id)).await, 2);
    assert_eq!(one(&world, &format!("{attempts}'{held}'")).await, 5);
    assert!(world.cursor(&ours).await["lost_to"].is_null(), "delivered events are not lost");
    // Deliveries of a deleted endpoint are also deleted.
    endpoint_is(&world, &ours, "deleted").await;
    world.run(&(old_events(32, "last_sequence <= 5") + &old_deliveries(32, "sequence > 3"))).await;
    run(&world).await;
    assert!(world.deliveries(&ours).await.is_empty());
    assert_eq!(world.deliveries(&theirs).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_deleted_while_they_are_read_are_missed_by_nobody() {
    let world = World::start().await;
    world.events(5).await;
    let mut db = world.app.database.owner().await;
    db.batch_execute("BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let admin = world.app.client(&world.app.member_token(&world.tenant_id, "admin"));
    // The request has read where the log begins, and waits.
    let page = tokio::spawn(async move { admin.list_events("after=0").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let delete =
        "DELETE FROM events WHERE last_sequence <= 3; UPDATE event_heads SET oldest = 4; COMMIT";
    db.batch_execute(delete).await.unwrap();
    let (status, expired) = page.await.unwrap();
    assert_eq!((status, expired["error"].text()), (409, "sequence_expired"), "{expired:#}");
}
