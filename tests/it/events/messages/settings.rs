//! The settings of channels, and refused settings.

use serde_json::json;

use super::{LIST, World, channels};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_and_amounts_choose_the_messages() {
    let world = World::start().await;
    let bob = world.bob();
    let least = |amount: &str, currency: &str| json!({"least_amount": amount, "currency": currency, "actions": ["payment.*"]});
    world.chat(&bob, "slack", "all", json!({})).await;
    world.chat(&bob, "slack", "refunds", json!({"actions": ["refund.*"]})).await;
    world.chat(&bob, "slack", "equal", least("25000.00", "EUR")).await;
    world.chat(&bob, "slack", "more", least("25000.01", "EUR")).await;
    world.chat(&bob, "slack", "dollars", least("1000000", "USD")).await;
    world.ask(25_000.0).await;
    assert_eq!(world.told(3).await, ["all", "dollars", "equal"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_replaces_all_settings() {
    let world = World::start().await;
    let bob = world.bob();
    let id = world.chat(&bob, "slack", "bob", json!({"label": "One", "actions": ["a.*"]})).await;
    let path = format!("{LIST}/{id}");
    let (status, changed) = bob.call("PUT", &path, Some(json!({"label": "Two"})), &[]).await;
    assert_eq!(status, 200, "{changed:#}");
    let settings = &changed["message_channel"]["settings"];
    assert_eq!((&settings["label"], &settings["actions"]), (&json!("Two"), &json!([])));
    assert_eq!(channels(&bob).await[0], changed["message_channel"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_inside_networks_and_wrong_settings_are_refused() {
    let world = World::start().await;
    let bob = world.bob();
    for url in [
        "https://10.0.0.1/hooks/x",
        "https://169.254.169.254/latest",
        "https://[fd00::1]/x",
        "https://user@chat.example.com/x",
        "https://chat.example.com:8065/x",
        "ftp://chat.example.com/x",
        "chat",
    ] {
        let (status, refused) = bob.post(LIST, json!({"kind": "slack", "url": url})).await;
        assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("url")), "{url}");
    }
    let quiet = json!({"from": "22:00", "to": "07:00", "time_zone": "Berlin"});
    for (settings, field) in [
        (json!({"actions": ["Pay all"]}), "settings.actions[0]"),
        (json!({"least_amount": "5"}), "settings.currency"),
        (json!({"least_amount": "-5", "currency": "EUR"}), "settings.least_amount"),
        (json!({"quiet_hours": quiet}), "settings.quiet_hours.time_zone"),
        (json!({"away_until": "2030-01-01T00:00:00Z"}), "settings.substitute"),
    ] {
        let body = json!({"kind": "slack", "url": world.url("x"), "settings": settings});
        let (status, refused) = bob.post(LIST, body).await;
        let found = (status, &refused["details"][0]["field"]);
        assert_eq!(found, (400, &json!(field)), "{refused:#}");
    }
    let (status, refused) = bob.post(LIST, json!({"kind": "slack"})).await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("url")), "{refused:#}");
    // The address is checked again before each message: the settings may have changed.
    assert!(channels(&bob).await.is_empty());
}
