//! The messages to a push service, their timing, and how its responses are handled.

use std::{sync::Arc, time::Duration};

use authority_crypto::{Algorithm, jwk, verify};
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{
    super::{
        delivery::{Answer, Receiver},
        endpoints::{ANN, TENANT},
    },
    CAPABILITY, KEY, World,
};
use crate::support::{Answered, Plain, TestApp, Wishes, database::Database};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_names_its_sender_and_has_no_content() {
    let world = World::start().await;
    let admin = world.person("admin", ANN);
    let key = admin.get(KEY).await.assert_status(200);
    world.subscribed(&admin, "ann").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    let first = world.service.wait_for(1).await.remove(0);
    world.tell("approval.opened", "admin").await;
    let second = world.service.wait_for(2).await.remove(1);
    for push in [&first, &second] {
        assert!(push.body.is_empty());
        assert_eq!((&*push.headers["content-length"], &*push.headers["ttl"]), ("0", "14400"));
        assert_eq!(push.path, format!("/{CAPABILITY}/ann"));
        let topic = &push.headers["topic"];
        assert!(topic.len() == 32 && URL_SAFE_NO_PAD.decode(topic).is_ok(), "{topic}");
        let names = ["content-type", "content-encoding", "transfer-encoding", "cookie"];
        assert!(names.iter().all(|name| !push.headers.contains_key(*name)), "{push:?}");
    }
    assert_eq!([&first, &second].map(|push| &*push.headers["urgency"]), ["normal", "high"]);
    assert_ne!(first.headers["topic"], second.headers["topic"]);

    let authorization = &first.headers["authorization"];
    assert_eq!(authorization, &second.headers["authorization"], "a token must be reused");
    let (token, public) =
        authorization.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
    assert_eq!(key["public_key"], public);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let public = jwk::elliptic("P-256", &bytes(public)).unwrap();
    verify(&public, Algorithm::Es256, signed.as_bytes(), &bytes(signature)).unwrap();
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |text| serde_json::from_slice::<Value>(&bytes(text)).unwrap();
    assert_eq!(read(head), json!({"typ": "JWT", "alg": "ES256"}));
    let claims = read(claims);
    assert_eq!(
        (&claims["aud"], claims["sub"].text()),
        (&json!(world.service.base), "mailto:ops@example.org")
    );
    let left = claims["exp"].as_i64().unwrap() - Clock::default().now().timestamp();
    assert!((11 * 3600..=12 * 3600).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_decides_whether_a_subscription_stays() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let is_there = |id: &str, there: bool| {
        format!("SELECT count(*) = {} FROM push_subscriptions WHERE id = '{id}'", u8::from(there))
    };
    for status in [410, 404] {
        world.service.always(Answer::status(status));
        let id = world.subscribed(&ann, "gone").await;
        world.tell("webhook_endpoint.lost", "admin").await;
        world.until(&is_there(&id, false)).await;
    }
    world.service.always(Answer::status(400));
    let id = world.subscribed(&ann, "failing").await;
    let failures =
        |count: u8| format!("SELECT failures = {count} FROM push_subscriptions WHERE id = '{id}'");
    world.tell("webhook_endpoint.lost", "admin").await;
    world.until(&failures(1)).await;
    world.service.always(Answer::status(201));
    world.tell("webhook_endpoint.lost", "admin").await;
    world.until(&failures(0)).await;
    world.service.always(Answer::status(403));
    world.app.database.run("UPDATE push_subscriptions SET failures = 18").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    world.until(&failures(19)).await;
    world.tell("webhook_endpoint.lost", "admin").await;
    world.until(&is_there(&id, false)).await;
    // An expired subscription receives no push.
    world.service.always(Answer::status(201));
    world.subscribed(&ann, "expired").await;
    world.app.database.run("UPDATE push_subscriptions SET expires_at = now()").await;
    let before = world.service.received().len();
    world.tell("webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(before).await.len(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_service_that_is_busy_is_asked_again_when_it_says() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    world.subscribed(&ann, "ann").await;
    let mut answers = 0;
    world.service.answers(move |_| {
        answers += 1;
        match answers {
            1 => Answer::status(429).with("retry-after", "4"),
            _ => Answer::status(201),
        }
    });
    world.tell("webhook_endpoint.lost", "admin").await;
    let pushes = world.service.wait_for(2).await;
    let waited = pushes[1].at - pushes[0].at;
    assert!(waited >= Duration::from_secs(4) && waited < Duration::from_secs(10), "{waited:?}");
    assert_eq!(world.pushed(2).await.len(), 2);
    // A subscription that is deleted while a push waits receives no further push.
    world.service.always(Answer::status(503));
    world.tell("webhook_endpoint.lost", "admin").await;
    world.service.wait_for(3).await;
    world.app.database.run("DELETE FROM push_subscriptions").await;
    assert_eq!(world.pushed(3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_push_once_also_what_commits_late() {
    let world = World::start().await;
    let other = world.app.beside(Wishes { push: true, ..Wishes::default() }).await;
    let ann = other.person(TENANT, "admin", ANN);
    assert_eq!(ann.get(KEY).await, world.person("admin", ANN).get(KEY).await);
    world.subscribed(&ann, "ann").await;
    // One transaction takes its id first, but another one commits before it.
    let mut late = world.app.database.owner().await;
    let call = format!(
        "BEGIN; SELECT notify_people('webhook_endpoint.paused', '{TENANT}', '{{admin}}', 'svc:endpoint:1')"
    );
    late.batch_execute(&call).await.unwrap();
    world.tell("webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(1).await.len(), 1);
    late.batch_execute("COMMIT").await.unwrap();
    assert_eq!(world.pushed(2).await.len(), 2);
    assert_eq!(world.pushed(2).await.len(), 2);
    // After a restore, the database's transaction numbers no longer match the cursor.
    let foreign = "UPDATE push_cursor SET snapshot = '900000000:900000000:'";
    world.app.database.run(foreign).await;
    world.until("SELECT snapshot <> '900000000:900000000:' FROM push_cursor").await;
    world.tell("webhook_endpoint.lost", "admin").await;
    assert_eq!(world.pushed(3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_pushed_of_what_was_before() {
    let database = Arc::new(Database::fresh().await);
    let off = TestApp::on(Arc::clone(&database), Wishes::default()).await;
    off.demo().await;
    let tell = format!(
        "SELECT notify_people('webhook_endpoint.lost', '{TENANT}', '{{admin}}', 'svc:endpoint:0')"
    );
    database.run(&tell).await;
    let app = off.beside(Wishes { push: true, ..Wishes::default() }).await;
    let world = World { app, service: Receiver::start().await };
    world.subscribed(&world.person("admin", ANN), "ann").await;
    assert!(world.pushed(0).await.is_empty());
    database.run(&tell).await;
    assert_eq!(world.pushed(1).await, ["ann"]);
}
