//! Subscriptions: their owners, access to them, and the notifications that they receive.

use std::time::Duration;

use authority_crypto::KeyRing;
use authority_keys::Keys;
use authority_model::schema::push_subscriptions;
use authority_process::clock::Clock;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::json;

use super::{
    super::endpoints::{ANN, OTHER, TENANT},
    CAPABILITY, KEY, LIST, World,
};
use crate::support::{Answered, Plain, TestApp, Wishes, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_is_off_until_it_is_configured() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let admin = app.person(TENANT, "admin", ANN);
    let body = only("endpoint", "https://push.example.com/send/x");
    for (status, answer) in [admin.get(KEY).await, admin.post(LIST, body).await] {
        assert_eq!((status, answer["error"].text()), (409, "push_not_configured"), "{answer:#}");
        assert!(answer["message"].as_str().unwrap().contains("`push.subject`"), "{answer:#}");
    }
    // Without push, subscriptions can still be listed and deleted.
    assert_eq!(admin.get(LIST).await.1["push_subscriptions"], json!([]));
    assert_eq!(admin.call("DELETE", &format!("{LIST}/x"), None, &[]).await.0, 404);
}

/// The URL must stay secret, because anyone with it could push to the browser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_url_of_a_subscription_is_in_no_answer_and_not_in_the_clear_in_the_database() {
    let world = World::start().await;
    let admin = world.person("admin", ANN);
    let body = json!({"endpoint": world.url("ann"), "label": "Firefox at work",
                      "expiration_time": "2100-01-01T00:00:00Z"});
    let key = [("idempotency-key", "k")];
    let made = admin.call("POST", LIST, Some(body.clone()), &key).await.assert_status(201);
    let shown = &made["push_subscription"];
    assert_eq!(shown["origin"], json!(world.service.base));
    assert_eq!((shown["label"].text(), shown["role"].text()), ("Firefox at work", "admin"));
    assert_eq!(shown["expiration_time"], "2100-01-01T00:00:00Z");
    assert_eq!(admin.call("POST", LIST, Some(body), &key).await.1, made);
    let (_, list) = admin.get(LIST).await;
    assert_eq!(list["push_subscriptions"], json!([shown]));
    world.tell("webhook_endpoint.lost", "admin").await;
    world.service.wait_for(1).await;
    for answer in [&made, &list] {
        assert!(!answer.to_string().contains(CAPABILITY), "{answer:#}");
    }
    let found = format!(
        "DO $$ DECLARE found bigint; name regclass; BEGIN
             FOR name IN SELECT oid::regclass FROM pg_class
                         WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') LOOP
                 EXECUTE format('SELECT count(*) FROM %s AS t WHERE t::text LIKE %L OR t::text LIKE %L',
                                name, '%{CAPABILITY}%', '%' || encode('{CAPABILITY}', 'hex') || '%')
                     INTO found;
                 ASSERT found = 0, name::text;
             END LOOP;
             ASSERT (SELECT count(*) = 0 FROM record_versions WHERE table_name LIKE 'push%');
         END $$"
    );
    world.app.database.run(&found).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_told_of_its_kinds_and_a_renewal_brings_the_new_role() {
    let world = World::start().await;
    let approver = world.person("approver", ANN);
    let id = world.subscribed(&approver, "ann").await;
    world.subscribed(&world.app.person(OTHER, "approver", ANN), "stranger").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    assert!(world.pushed(0).await.is_empty());
    world.tell("approval.opened", "approver,legal").await;
    assert_eq!(world.pushed(1).await, ["ann"]);
    // The same person now has a token for another role.
    let auditor = world.person("auditor", ANN);
    world.tell("reality.drift_detected", "auditor").await;
    assert_eq!(world.pushed(1).await.len(), 1, "the role changes with the next renewal");
    assert_eq!(world.subscribed(&auditor, "ann").await, id);
    assert_eq!(auditor.get(LIST).await.1["push_subscriptions"][0]["role"], "auditor");
    world.tell("approval.opened", "approver").await;
    assert_eq!(world.pushed(1).await.len(), 1);
    world.tell("reality.drift_detected", "auditor").await;
    assert_eq!(world.pushed(2).await, ["ann", "ann"]);
    for role in ["member", "viewer"] {
        let client = world.person(role, ANN);
        assert_eq!((client.get(KEY).await.0, client.get(LIST).await.0), (403, 403), "{role}");
    }
    // Several notifications of one kind result in one push.
    let several = format!(
        "SELECT notify_people('approval.opened', '{TENANT}', '{{auditor}}', 'svc:approval:' || n) \
         FROM generate_series(1, 50) AS n"
    );
    world.app.database.run(&several).await;
    assert_eq!(world.pushed(3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_are_each_persons_own_and_ten() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let id = world.subscribed(&ann, "0").await;
    let path = format!("{LIST}/{id}");
    let bob = world.person("admin", "bob@acme.example");
    for other in [&bob, &world.app.person(OTHER, "admin", ANN)] {
        assert_eq!(other.get(LIST).await.1["push_subscriptions"], json!([]));
        assert_eq!(other.call("DELETE", &path, None, &[]).await.0, 404);
    }
    // Another person in the same browser gets a separate subscription.
    assert_ne!(world.subscribed(&bob, "0").await, id);
    for n in 1..10 {
        world.subscribed(&ann, &n.to_string()).await;
    }
    let (status, answer) = ann.post(LIST, only("endpoint", world.url("10"))).await;
    assert_eq!((status, answer["error"].text()), (409, "limit_reached"), "{answer:#}");
    assert_eq!(world.subscribed(&ann, "0").await, id, "a renewal must not create a subscription");
    assert_eq!(ann.call("DELETE", &path, None, &[]).await.0, 200);
    assert_eq!(ann.call("DELETE", &path, None, &[]).await.0, 404);
    assert_ne!(world.subscribed(&ann, "0").await, id);
    let (_, list) = ann.get(LIST).await;
    assert_eq!(list["push_subscriptions"].as_array().unwrap().len(), 10);
    assert_eq!(world.app.owner().get(LIST).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_inside_networks_and_past_times_are_refused() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let long = format!("https://push.example.com/{}", "x".repeat(2048));
    for url in [
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://[fd00::1]/x",
        "https://user@push.example.com/x",
        "https://push.example.com/x#y",
        "https://push.example.com:9443/x",
        "ftp://push.example.com/x",
        "push",
        long.as_str(),
    ] {
        let (status, answer) = ann.post(LIST, only("endpoint", url)).await;
        assert_eq!(
            (status, answer["details"][0]["field"].text()),
            (400, "endpoint"),
            "{url}: {answer:#}"
        );
    }
    let past = json!({"endpoint": world.url("x"), "expiration_time": "2020-01-01T00:00:00Z"});
    let (status, answer) = ann.post(LIST, past).await;
    assert_eq!((status, answer["details"][0]["field"].text()), (400, "expiration_time"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_suspended_is_not_told_and_who_is_deleted_loses_it() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    world.subscribed(&ann, "ann").await;
    world.subscribed(&world.person("admin", "bob@acme.example"), "bob").await;
    world.subscribed(&world.app.person(OTHER, "admin", ANN), "other").await;
    let person = world.principal("suspended").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(1).await, ["bob"]);
    world.set(&person, "active").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    let mut pushed = world.pushed(3).await;
    pushed.sort();
    assert_eq!(pushed, ["ann", "bob", "bob"], "earlier notifications must not be pushed later");
    assert_eq!(world.app.owner().call("DELETE", &person, None, &[]).await.0, 200);
    world
        .until(&format!("SELECT count(*) = 1 FROM push_subscriptions WHERE tenant_id = '{TENANT}'"))
        .await;

    let tenant = format!("/api/v1/tenants/{OTHER}");
    world.set(&tenant, "suspended").await;
    world.tell_in(OTHER, "webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(3).await.len(), 3);
    world.set(&tenant, "active").await;
    world.tell_in(OTHER, "webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(4).await.last().unwrap(), "other");
    assert_eq!(world.app.owner().call("DELETE", &tenant, None, &[]).await.0, 200);
    world
        .until(&format!("SELECT count(*) = 0 FROM push_subscriptions WHERE tenant_id = '{OTHER}'"))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_ring_takes_over_the_urls() {
    let world = World::start().await;
    let id = world.subscribed(&world.person("admin", ANN), "ann").await;
    let (store, new) = (world.app.database.store(), KeyRing::generate().unwrap());
    let ring = async |text: &str| {
        let ring = KeyRing::parse(text).unwrap();
        Keys::start(store.clone(), ring, Clock::default(), true).await.unwrap()
    };
    let both = ring(&format!("{new}{}", world.app.ring())).await;
    assert!(both.rewrap().await.unwrap() > 0);
    assert_eq!(both.rewrap().await.unwrap(), 0);
    let sealed: Vec<u8> = push_subscriptions::table
        .find(&id)
        .select(push_subscriptions::sealed_endpoint)
        .first(&mut world.app.database.owner().await)
        .await
        .unwrap();
    let alone = ring(&new).await;
    assert_eq!(alone.open_push_endpoint(&id, &sealed).unwrap(), world.url("ann"));
    assert!(alone.open_push_endpoint("svc:push_subscription:0", &sealed).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_that_ended_or_were_not_renewed_for_long_are_deleted() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    for name in ["kept", "ended", "old"] {
        let body = json!({"endpoint": world.url(name), "label": name});
        assert_eq!(ann.post(LIST, body).await.0, 201);
    }
    let change = "UPDATE push_subscriptions SET expires_at = now() - interval '1 s' WHERE label = 'ended'; \
         UPDATE push_subscriptions SET renewed_at = now() - interval '89 days' WHERE label = 'kept'; \
         UPDATE push_subscriptions SET renewed_at = now() - interval '91 days' WHERE label = 'old'";
    world.app.database.run(change).await;
    // The other node's push worker runs when the node starts.
    let _other = world.app.beside(Wishes::default()).await;
    world.until("SELECT array_agg(label) = '{kept}' FROM push_subscriptions").await;
}

/// An expired subscription is deleted when its person subscribes again. It can't be renewed if the
/// person already has ten others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_subscription_is_not_renewed_beyond_ten() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let soon = (Clock::default().now() + chrono::TimeDelta::seconds(2)).to_rfc3339();
    for n in 0..10 {
        let body = json!({"endpoint": world.url(&n.to_string()), "expiration_time": soon});
        assert_eq!(ann.post(LIST, body).await.0, 201);
    }
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    for n in 10..20 {
        world.subscribed(&ann, &n.to_string()).await;
    }
    let (status, answer) = ann.post(LIST, only("endpoint", world.url("0"))).await;
    assert_eq!((status, answer["error"].text()), (409, "limit_reached"), "{answer:#}");
    let (_, list) = ann.get(LIST).await;
    assert_eq!(list["push_subscriptions"].as_array().unwrap().len(), 10);
}
