//! An endpoint's record shows why its deliveries are held. An endpoint can be paused.

use serde_json::{Value, json};

use super::{Answer, Endpoint, Made, Receiver, World};
use crate::support::{Client, Plain, nothing, only};

fn admin(world: &World) -> Client {
    world.app.person(&world.tenant_id, "admin", "alice@example.org")
}

async fn key(world: &World) -> Client {
    world.app.client(&world.app.api_key(&world.tenant_id, &["webhooks:write"]).await)
}

/// Returns the endpoint as each API surface returns it, on its own and in a list.
async fn shown(world: &World, made: &Made) -> Vec<Value> {
    let mut all = Vec::new();
    for (client, base) in
        [(key(world).await, "/v1"), (admin(world), "/api/v1/app"), (world.app.owner(), "/api/v1")]
    {
        let list = format!("{base}/webhook-endpoints");
        let (_, one) = client.get(&format!("{list}/{}", made.id)).await;
        all.push(one["webhook_endpoint"].clone());
        all.push(client.get(&list).await.1["webhook_endpoints"][0].clone());
    }
    all
}

#[tokio::test]
async fn an_endpoint_shows_what_holds_its_deliveries_and_until_when() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(429).with("retry-after", "600"));
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    for one in shown(&world, &made).await {
        assert_eq!((&one["held_by"], &one["held_until"]), (&Value::Null, &Value::Null), "{one:#}");
    }
    world.events(1).await;
    let held = "SELECT waits_until FROM webhook_cursors WHERE waits_until > now()".to_owned();
    world.wait_for(held).await;
    for one in shown(&world, &made).await {
        assert_eq!(one["held_by"], "retry_after", "{one:#}");
        assert!(one["held_until"].is_string(), "{one:#}");
    }
    for (breaker, seconds, expected) in [
        ("open", 3600, Some("breaker")),
        ("probing", 3600, Some("breaker")),
        ("open", 60, Some("retry_after")),
    ] {
        world
            .run(&format!(
                "UPDATE webhook_cursors SET breaker = '{breaker}', breaker_count = 5, \
                     breaker_until = now() + interval '{seconds} s'"
            ))
            .await;
        for one in shown(&world, &made).await {
            assert_eq!(one["held_by"].as_str(), expected, "{one:#}");
        }
    }
    // Times that have passed do not hold deliveries.
    world
        .run(
            "UPDATE webhook_cursors SET breaker_until = now() - interval '1 s', \
                 waits_until = now() - interval '1 s'; \
             UPDATE webhook_endpoints SET state = 'paused'",
        )
        .await;
    for one in shown(&world, &made).await {
        assert_eq!((&one["held_by"], &one["held_until"]), (&Value::Null, &Value::Null), "{one:#}");
    }
}

#[tokio::test]
async fn a_paused_endpoint_receives_nothing_until_it_is_enabled() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let (admin, key, owner) = (admin(&world), key(&world).await, world.app.owner());
    let at = |base: &str, verb: &str| format!("{base}/webhook-endpoints/{}:{verb}", made.id);
    let because = only("reason", "the receiver moves");
    let (status, paused) = admin.post(&at("/api/v1/app", "pause"), because).await;
    let paused = &paused["webhook_endpoint"];
    let members = ["state", "state_reason", "pause_reason"].map(|member| paused[member].clone());
    assert_eq!((status, json!(members)), (200, json!(["paused", "asked", "the receiver moves"])));
    // Pausing again does not change the endpoint.
    for (client, base) in [(&key, "/v1"), (&owner, "/api/v1"), (&admin, "/api/v1/app")] {
        let (status, again) = client.post(&at(base, "pause"), only("reason", "other")).await;
        assert_eq!((status, &again["webhook_endpoint"]), (200, paused), "{base}");
    }
    world.events(2).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(receiver.received().is_empty());
    let notices = "SELECT data FROM notifications WHERE kind = 'webhook_endpoint.paused'";
    let told = world.rows(notices).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["state_reason"], "asked");
    assert!(
        !told[0].to_string().contains("moves"),
        "the notification must not contain a caller's text"
    );
    let (status, refused) = key.post(&at("/v1", "enable"), nothing()).await;
    assert_eq!((status, refused["error"].text()), (403, "forbidden"), "{refused:#}");
    let (status, enabled) = admin.post(&at("/api/v1/app", "enable"), nothing()).await;
    assert_eq!(
        (status, &enabled["webhook_endpoint"]["pause_reason"]),
        (200, &Value::Null),
        "{enabled:#}"
    );
    receiver.wait_for(2).await;
    // A key may also pause an endpoint. A disabled endpoint stays disabled.
    let (status, paused) = key.post(&at("/v1", "pause"), nothing()).await;
    assert_eq!((status, paused["webhook_endpoint"]["state"].text()), (200, "paused"));
    world.run("UPDATE webhook_endpoints SET state = 'disabled', state_reason = 'gone'").await;
    let (status, refused) = owner.post(&at("/api/v1", "pause"), nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{refused:#}");
}

#[tokio::test]
async fn an_unknown_verb_is_not_found_by_its_name() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let (admin, owner) = (admin(&world), world.app.owner());
    for (client, path) in [
        (&admin, format!("/api/v1/app/webhook-endpoints/{}:suspend", made.id)),
        (&admin, "/api/v1/app/webhook-endpoints:suspend".to_owned()),
        (&admin, "/api/v1/app/events/svc:event:0:suspend".to_owned()),
        (&owner, format!("/api/v1/tenants/{}:suspend", world.tenant_id)),
        (&owner, "/api/v1/tenants/acme:suspend".to_owned()),
    ] {
        let (status, refused) = client.post(&path, nothing()).await;
        assert_eq!((status, refused["error"].text()), (404, "not_found"), "{path}");
        assert!(refused["message"].as_str().unwrap().contains("`:suspend`"), "{refused:#}");
        assert_eq!(world.app.client("").post(&path, nothing()).await.0, 401, "{path}");
    }
    // Ids that contain no verb are found.
    for (client, path) in [
        (&owner, format!("/api/v1/tenants/{}", world.tenant_id)),
        (&owner, "/api/v1/principals/svc:agent:acme:bot".to_owned()),
        (&admin, format!("/api/v1/app/webhook-endpoints/{}", made.id)),
    ] {
        let (status, refused) = client.post(&path, nothing()).await;
        assert_eq!((status, refused["error"].text()), (405, "method_not_allowed"), "{path}");
    }
    let enable = format!("/api/v1/app/webhook-endpoints/{}:enable", made.id);
    let (status, _) = admin.call("PUT", &enable, Some(nothing()), &[]).await;
    assert_eq!(status, 405);
}
