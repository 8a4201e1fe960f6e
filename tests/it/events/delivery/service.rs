//! The operations on deliveries, called by users and with API keys.

use authority_process::clock::Clock;
use authority_verify_webhook::{Options, verify_webhook};
use serde_json::{Value, json};

use super::{Answer, Endpoint, Made, Receiver, World};
use crate::support::{Answered, Client, Plain, nothing, only};

fn admin(world: &World) -> Client {
    world.app.person(&world.tenant_id, "admin", "alice@example.org")
}

fn at(endpoint: &Made, rest: &str) -> String {
    format!("/api/v1/app/webhook-endpoints/{}{rest}", endpoint.id)
}

#[tokio::test]
async fn a_test_event_is_signed_and_in_no_log_and_fails_with_200() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    let (status, answer) = admin.post(&at(&made, ":test"), nothing()).await;
    assert_eq!(status, 200, "{answer:#}");
    assert_eq!((answer["delivered"].as_bool(), answer["status"].number()), (Some(true), 204));
    assert!(answer["latency_ms"].is_number() && answer["error_class"].is_null());
    let received = receiver.wait_for(1).await.remove(0);
    let secrets: Vec<&str> = made.secrets.iter().map(String::as_str).collect();
    let jwks: Value = serde_json::from_str(&world.app.app.keys.jwks()).unwrap();
    let url = format!("{}/", receiver.base);
    let options =
        Options { jwks: Some(&jwks), secrets: &secrets, ..Options::new(&url, &world.tenant_id) };
    let now = u64::try_from(Clock::default().now().timestamp()).unwrap();
    let event = verify_webhook(&received.body, &received.pairs(), &options, now).unwrap();
    assert_eq!(event["event_type"], "svc.test");
    assert_eq!(event["data"], only("endpoint_id", &made.id));
    assert!(!event.contains_key("sequence"));
    assert!(world.deliveries(&made).await.is_empty());

    receiver.always(Answer::status(500));
    let (status, answer) = admin.post(&at(&made, ":test"), nothing()).await;
    assert_eq!(
        (status, answer["delivered"].as_bool(), answer["status"].number()),
        (200, Some(false), 500)
    );
    assert_eq!(answer["error_class"], "http");
    // A repeated call with the same key sends no other event.
    let key = [("idempotency-key", "one")];
    let path = at(&made, ":test");
    let first = admin.call("POST", &path, Some(nothing()), &key).await;
    let count = receiver.received().len();
    assert_eq!(
        admin.call("POST", &path, Some(nothing()), &key).await.1["status"],
        first.1["status"]
    );
    assert_eq!(receiver.received().len(), count);

    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(admin.post(&path, nothing()).await.0);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 429], "ten in a minute");
    world.app.owner().update_tenant(&world.tenant_id, only("state", "suspended")).await;
    assert_eq!(world.app.owner().test_webhook_endpoint(&made.id).await.0, 409);
}

#[tokio::test]
async fn deliveries_are_listed_with_their_attempts_page_by_page() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.answers(|received| {
        Answer::status(if received.event()["sequence"].as_i64() > Some(3) { 500 } else { 200 })
    });
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    world.events(3).await;
    world.events_of(&world.tenant_id, 2, "svc.authority.revoked").await;
    world.wait_until_ended(&made, 5).await;
    let (mut token, mut sequences) = (String::new(), Vec::new());
    loop {
        let path = at(&made, &format!("/deliveries?limit=2&page_token={token}"));
        let page = admin.get(&path).await.assert_status(200);
        for one in page["deliveries"].as_array().unwrap() {
            sequences.push(one["sequence"].clone());
            let is_dead = one["state"] == "dead";
            assert_eq!(one["attempts"].as_array().unwrap().len(), if is_dead { 3 } else { 1 });
            assert!(one["due_at"].is_null() && !one["ended_at"].is_null());
        }
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    let numbers = |all: &[Value]| -> Vec<i64> {
        let number = |one: &Value| one.as_i64().or_else(|| one.as_str()?.parse().ok()).unwrap();
        let mut all: Vec<i64> = all.iter().map(number).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(numbers(&sequences), [1, 2, 3, 4, 5]);
    let count = async |path: &str, list: &str| {
        admin.get(&at(&made, path)).await.1[list].as_array().unwrap().len()
    };
    assert_eq!(count("/deliveries?state=delivered", "deliveries").await, 3);
    assert_eq!(count("/deliveries?event_type=svc.authority.revoked", "deliveries").await, 2);
    assert_eq!(count("/dead-letters", "dead_letters").await, 2);
    let dead = admin.get(&at(&made, "/dead-letters?limit=1")).await.1["dead_letters"][0].clone();
    assert_eq!(dead["attempts"][2]["attempt"], 3);
    assert_eq!(
        (dead["attempts"][0]["status"].number(), dead["attempts"][0]["error_class"].text()),
        (500, "http")
    );

    // A redriven delivery starts its schedule again, but its count of attempts continues.
    let redrive = |id: &Value| format!("/api/v1/app/deliveries/{}:redrive", id.as_str().unwrap());
    world
        .run("UPDATE webhook_cursors SET breaker = 'closed', breaker_count = 0, breaker_until = NULL")
        .await;
    let (status, redriven) = admin.post(&redrive(&dead["id"]), nothing()).await;
    assert_eq!((status, redriven["delivery"]["state"].text()), (200, "open"), "{redriven:#}");
    let id = dead["id"].as_str().unwrap();
    let row =
        format!("SELECT attempts FROM webhook_deliveries WHERE id = '{id}' AND state = 'dead'");
    assert_eq!(world.wait_for(row).await["attempts"], 6);
    receiver.always(Answer::status(200));
    assert_eq!(admin.post(&redrive(&dead["id"]), nothing()).await.0, 200);
    let row = format!(
        "SELECT attempts FROM webhook_deliveries WHERE id = '{id}' AND state = 'delivered'"
    );
    assert_eq!(world.wait_for(row).await["attempts"], 7);
    let (status, refused) = admin.post(&redrive(&dead["id"]), nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
}

#[tokio::test]
async fn an_event_type_that_does_not_exist_is_refused_with_the_nearest() {
    let world = World::start().await;
    let (made, admin) = (world.endpoint(Endpoint::at("http://127.0.0.1:9/")).await, admin(&world));
    for (list, unknown, told) in [
        ("deliveries", "svc.authority.revokd", "did you mean `svc.authority.revoked`?"),
        ("dead-letters", "svc.authority.*", "is not an event type"),
        ("deliveries", "revocations", "is not an event type"),
    ] {
        let path = at(&made, &format!("/{list}?event_type={unknown}"));
        let (status, refused) = admin.get(&path).await;
        assert_eq!((status, refused["error"].text()), (400, "invalid_request"), "{refused:#}");
        assert!(refused.to_string().contains(told), "{refused:#}");
    }
}

#[tokio::test]
async fn only_who_manages_the_tenants_endpoints_sees_deliveries() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    let delivery = world.wait_until_ended(&made, 1).await.remove(0);
    let other = World::tenant(&world.app, "other").await;
    let (id, delivery_id) = (&made.id, delivery["id"].as_str().unwrap());
    let event_id = delivery["event_id"].as_str().unwrap();
    let since = json!({"since": "2020-01-01T00:00:00Z", "only": "all"});
    let operations = |base: &str| {
        vec![
            ("POST", format!("{base}/webhook-endpoints/{id}:test"), Some(nothing()), 200),
            ("GET", format!("{base}/webhook-endpoints/{id}/deliveries"), None, 200),
            ("GET", format!("{base}/webhook-endpoints/{id}/dead-letters"), None, 200),
            ("POST", format!("{base}/deliveries/{delivery_id}:redrive"), Some(nothing()), 409),
            (
                "POST",
                format!("{base}/events/{event_id}:replay"),
                Some(only("endpoint_id", id)),
                202,
            ),
            ("GET", format!("{base}/webhook-endpoints/{id}/replays"), None, 200),
            ("GET", format!("{base}/webhook-endpoints/{id}/replays/svc:replay:0"), None, 404),
            ("DELETE", format!("{base}/webhook-endpoints/{id}/replays/svc:replay:0"), None, 404),
            ("POST", format!("{base}/webhook-endpoints/{id}:replay"), Some(since.clone()), 202),
        ]
    };
    let key = world.app.client(&world.app.api_key(&world.tenant_id, &["webhooks:write"]).await);
    let foreign_key = world.app.client(&world.app.api_key(&other, &["webhooks:write"]).await);
    let foreign = world.app.person(&other, "admin", "eve@example.org");
    let auditor = world.app.person(&world.tenant_id, "auditor", "bob@example.org");
    let unscoped = world.app.client(&world.app.api_key(&world.tenant_id, &["runtime:read"]).await);
    for (client, base, refused) in [
        (&foreign, "/api/v1/app", Some(404)),
        (&foreign_key, "/v1", Some(404)),
        (&auditor, "/api/v1/app", Some(403)),
        (&unscoped, "/v1", Some(403)),
        (&key, "/v1", None),
        (&admin(&world), "/api/v1/app", None),
        (&world.app.owner(), "/api/v1", None),
    ] {
        world.run("DELETE FROM webhook_replays").await;
        for (method, path, body, expected) in operations(base) {
            let (status, answer) = client.call(method, &path, body, &[]).await;
            assert_eq!(status, refused.unwrap_or(expected), "{method} {path}: {answer:#}");
        }
    }
}

#[tokio::test]
async fn a_replay_sends_the_same_bytes_again_marked_and_shows_its_progress() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = Endpoint { filter: Some("sequence != 2"), ..Endpoint::at(&receiver.base) };
    let (made, admin) = (world.endpoint(made).await, admin(&world));
    world.events(4).await;
    world.wait_until_ended(&made, 3).await;
    let first = receiver.received();
    let since = json!({"since": "2020-01-01T00:00:00Z", "only": "all"});
    let key = [("idempotency-key", "replay")];
    let answer = admin
        .call("POST", &at(&made, ":replay"), Some(since.clone()), &key)
        .await
        .assert_status(202);
    let (_, again) = admin.call("POST", &at(&made, ":replay"), Some(since.clone()), &key).await;
    assert_eq!(answer["replay_id"], again["replay_id"]);
    let replay_id = answer["replay_id"].as_str().unwrap().to_owned();
    world.wait_until_ended(&made, 6).await;
    let received = receiver.received();
    assert_eq!(received.len(), 6);
    for one in &received[3..] {
        assert_eq!(one.headers["svc-replay"], replay_id);
        let before = first.iter().find(|b| b.headers["webhook-id"] == one.headers["webhook-id"]);
        assert_eq!(before.unwrap().body, one.body);
        assert!(!before.unwrap().headers.contains_key("svc-replay"));
    }
    let shown = admin.get(&at(&made, &format!("/replays/{replay_id}"))).await.assert_status(200);
    let shown = &shown["replay"];
    let number = |name: &str| shown[name].as_i64().or_else(|| shown[name].as_str()?.parse().ok());
    assert_eq!((shown["state"].text(), shown["only"].text()), ("done", "all"));
    let names =
        ["first_sequence", "last_sequence", "judged_sequence", "deliveries", "delivered", "open"];
    assert_eq!(names.map(number), [1, 4, 4, 3, 3, 0].map(Some));
}

#[tokio::test]
async fn a_replay_takes_what_is_dead_or_undelivered_and_is_alone_and_cancelled() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.answers(|received| {
        Answer::status(if received.event()["sequence"] == 2 { 500 } else { 200 })
    });
    let once = json!({"schedule_seconds": [1], "jitter": 0.0});
    let made = Endpoint { retry_policy: once, ..Endpoint::at(&receiver.base) };
    let (made, admin) = (world.endpoint(made).await, admin(&world));
    world.events(3).await;
    world.wait_until_ended(&made, 3).await;
    // Without its delivery, the event counts as never matched with the endpoint.
    world.run("DELETE FROM webhook_deliveries WHERE sequence = 3").await;
    receiver.always(Answer::status(200));
    let replay = |only: &str| json!({"since": "2020-01-01T00:00:00Z", "only": only});
    for (only, expected) in [("dead", vec![2]), ("undelivered", vec![3])] {
        let before = receiver.received().len();
        assert_eq!(admin.post(&at(&made, ":replay"), replay(only)).await.0, 202);
        world
            .wait_for(
                "SELECT 1 AS one WHERE NOT EXISTS (SELECT FROM webhook_replays \
                        WHERE state = 'running')"
                    .to_owned(),
            )
            .await;
        world
            .wait_for(
                "SELECT 1 AS one WHERE NOT EXISTS (SELECT FROM webhook_deliveries \
                        WHERE state = 'open')"
                    .to_owned(),
            )
            .await;
        let received = receiver.received();
        let new: Vec<i64> = received[before..]
            .iter()
            .map(|one| one.event()["sequence"].as_i64().unwrap())
            .collect();
        assert_eq!(new, expected, "{only}");
    }
    // A replay waits while its endpoint is paused. Until it is cancelled, another replay is
    // refused.
    let set = |state: &str| {
        format!("UPDATE webhook_endpoints SET state = '{state}' WHERE id = '{}'", made.id)
    };
    world.run(&set("paused")).await;
    let (_, running) = admin.post(&at(&made, ":replay"), replay("all")).await;
    let (status, refused) = admin.post(&at(&made, ":replay"), replay("all")).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{refused:#}");
    let path = at(&made, &format!("/replays/{}", running["replay_id"].as_str().unwrap()));
    let (status, cancelled) = admin.call("DELETE", &path, None, &[]).await;
    assert_eq!((status, cancelled["replay"]["state"].text()), (200, "cancelled"), "{cancelled:#}");
    assert_eq!(admin.post(&at(&made, ":replay"), replay("all")).await.0, 202);
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_by_name() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    world.events(3).await;
    for (body, field) in [
        (only("only", "all"), "since"),
        (only("since", "2020-01-01T00:00:00Z"), "only"),
        (
            json!({"since": "2020-01-01T00:00:00Z", "only": "all", "event_types": ["svc.nothing"]}),
            "event_types",
        ),
        (
            json!({"since": "2020-01-01T00:00:00Z", "only": "all", "until": "2019-01-01T00:00:00Z"}),
            "until",
        ),
    ] {
        let (status, refused) = admin.post(&at(&made, ":replay"), body).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
    world.run("UPDATE events SET last_sequence = 1000001 WHERE last_sequence = 3").await;
    let (status, refused) = admin
        .post(&at(&made, ":replay"), json!({"since": "2020-01-01T00:00:00Z", "only": "all"}))
        .await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "since"), "{refused:#}");
    world.run("UPDATE events SET last_sequence = 3 WHERE last_sequence = 1000001").await;
}

/// An event can be replayed to an endpoint even if the endpoint's event types or filter exclude it.
#[tokio::test]
async fn one_event_is_replayed() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    world.events(1).await;
    world.wait_until_ended(&made, 1).await;
    let event = world.rows("SELECT id FROM events WHERE last_sequence = 1").await.remove(0);
    let event_id = event["id"].as_str().unwrap();
    let made_one =
        admin.replay_event(event_id, only("endpoint_id", &made.id)).await.assert_status(202);
    let delivery = made_one["delivery_id"].as_str().unwrap();
    let row =
        format!("SELECT * FROM webhook_deliveries WHERE id = '{delivery}' AND state = 'delivered'");
    assert_eq!(world.wait_for(row).await["event_id"], event_id);
}

/// A successful test event closes the breaker: a repaired receiver need not wait for a probe.
#[tokio::test]
async fn a_test_that_arrives_closes_the_breaker() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    world
        .run(
            "UPDATE webhook_cursors SET breaker = 'open', breaker_count = 9, \
                 breaker_until = now() + interval '10 min', waits_until = now() + interval '1 h'",
        )
        .await;
    // The first event announces the open breaker. The endpoint does not receive it.
    world.wait_for("SELECT 1 AS one FROM events WHERE last_sequence = 1".to_owned()).await;
    world.events(1).await;
    receiver.always(Answer::status(500));
    assert_eq!(admin.post(&at(&made, ":test"), nothing()).await.0, 200);
    assert_eq!(world.cursor(&made).await["breaker"], "open");
    receiver.always(Answer::status(200));
    assert_eq!(admin.post(&at(&made, ":test"), nothing()).await.0, 200);
    receiver.wait_for(3).await;
    assert_eq!(receiver.received()[2].event()["sequence"], 2);
}

#[tokio::test]
async fn a_replay_ends_where_its_endpoint_goes_on_from_now() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (made, admin) = (world.endpoint(Endpoint::at(&receiver.base)).await, admin(&world));
    world.events(3).await;
    world.wait_until_ended(&made, 3).await;
    let paused = format!("UPDATE webhook_endpoints SET state = 'paused' WHERE id = '{}'", made.id);
    world.run(&paused).await;
    let replay = json!({"since": "2020-01-01T00:00:00Z", "only": "all"});
    let (_, running) = admin.post(&at(&made, ":replay"), replay).await;
    assert_eq!(admin.post(&at(&made, ":enable"), only("from", "now")).await.0, 200);
    let path = at(&made, &format!("/replays/{}", running["replay_id"].as_str().unwrap()));
    assert_eq!(admin.get(&path).await.1["replay"]["state"], "cancelled");
    world.events(1).await;
    receiver.wait_for(4).await;
    let sequences: Vec<Value> =
        receiver.received().iter().map(|one| one.event()["sequence"].clone()).collect();
    assert_eq!(sequences.last(), Some(&json!(4)), "{sequences:?}");
}
