//! The requests that a receiver gets, and the stored attempts.

use authority_process::clock::Clock;
use authority_verify_webhook::{Options, Suite, verify_webhook};
use serde_json::Value;

use super::{Answer, Endpoint, Receiver, World};

#[tokio::test]
async fn events_are_delivered_signed_in_every_suite() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(format!("{}/hooks?key=1", receiver.base))).await;
    world.events(3).await;

    let received = receiver.wait_for(3).await;
    let jwks: Value = serde_json::from_str(&world.app.app.keys.jwks()).unwrap();
    let secrets: Vec<&str> = made.secrets.iter().map(String::as_str).collect();
    let now = u64::try_from(Clock::default().now().timestamp()).unwrap();
    for one in &received {
        assert_eq!(one.path, "/hooks?key=1");
        assert_eq!(one.headers["x-environment"], "test");
        assert_eq!(one.headers["content-type"], "application/json");
        assert!(!one.headers.contains_key("accept-encoding"));
        for suite in Suite::ALL {
            let options = Options {
                jwks: Some(&jwks),
                secrets: &secrets,
                accept: &[suite],
                ..Options::new(&made.url, &world.tenant_id)
            };
            let event = verify_webhook(&one.body, &one.pairs(), &options, now);
            assert_eq!(event.unwrap()["event_id"], one.headers["webhook-id"].as_str());
        }
    }
    let deliveries = world.wait_until_ended(&made, 3).await;
    for one in &deliveries {
        assert_eq!((&one["state"], &one["attempts"]), (&"delivered".into(), &1.into()), "{one:#}");
        assert_eq!((&one["lease"], &one["last_status"]), (&Value::Null, &204.into()));
    }
    let attempts = world.attempts(&made).await;
    assert_eq!(attempts.len(), 3);
    assert!(attempts.iter().all(|a| a["status"] == 204 && a["error_class"].is_null()));
    assert_eq!(world.cursor(&made).await["sequence"], 3);
}

#[tokio::test]
async fn a_failed_delivery_comes_again_by_its_schedule_and_dies_after_the_last() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer { body: "no".to_owned(), ..Answer::status(500) });
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    let ended = world.wait_until_ended(&made, 1).await.remove(0);
    assert_eq!((&ended["state"], &ended["attempts"]), (&"dead".into(), &3.into()), "{ended:#}");
    assert_eq!((&ended["last_status"], &ended["last_error"]), (&500.into(), &"http".into()));
    let received = receiver.received();
    assert_eq!(received.len(), 3);
    assert!((received[1].at - received[0].at).as_millis() >= 1000);
    // Each attempt has its own signature, over the same body and id.
    assert_ne!(received[0].headers["signature"], received[1].headers["signature"]);
    assert_eq!(received[0].body, received[2].body);
    assert_eq!(received[0].headers["webhook-id"], received[2].headers["webhook-id"]);
    // The receiver's address is not public: its response body is not stored.
    let attempts = world.attempts(&made).await;
    assert!(attempts.iter().all(|a| a["body_start"].is_null() && a["error_class"] == "http"));
    assert_eq!(world.cursor(&made).await["breaker_count"], 3);
}
