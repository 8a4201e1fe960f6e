//! The settings of channels, and refused settings.

use serde_json::{Value, json};

use super::{LIST, TENANT, World, added, channels};
use crate::support::{Answered, Members, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_and_amounts_choose_the_messages() {
    let world = World::start().await;
    let bob = world.bob();
    let least = |amount: &str, currency: &str| json!({"least_amount": amount, "currency": currency, "actions": ["payment.*"]});
    world.chat(&bob, "slack", "all", nothing()).await;
    world.chat(&bob, "slack", "refunds", only("actions", ["refund.*"])).await;
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
    let changed = bob.call("PUT", &path, Some(only("label", "Two")), &[]).await.assert_status(200);
    let settings = &changed["message_channel"]["settings"];
    assert_eq!((settings["label"].text(), &settings["actions"]), ("Two", &json!([])));
    assert_eq!(channels(&bob).await[0], changed["message_channel"]);
}

/// A person's channel that is added without settings gets the tenant's. Only the owner sets them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_without_settings_gets_those_of_the_tenant() {
    let world = World::start().await;
    let (bob, tenant) = (world.bob(), format!("/api/v1/tenants/{TENANT}"));
    let set = async |defaults: Value| {
        let body = only("message_defaults", &defaults);
        world.app.owner().patch(&tenant, body).await
    };
    let before = world.chat(&bob, "slack", "before", nothing()).await;
    let quiet = json!({"from": "22:00", "to": "07:00", "time_zone": "Europe/Berlin"});
    let defaults = json!({"actions": ["refund.*"], "least_amount": "100", "currency": "EUR", "quiet_hours": quiet});
    let (status, saved) = set(defaults.clone()).await;
    assert_eq!((status, &saved["tenant"]["message_defaults"]), (200, &defaults), "{saved:#}");
    let add = async |more: Value| {
        let body = json!({"kind": "slack", "url": world.url("x")}).and(&more);
        added(bob.post(LIST, body).await)
    };
    let (without, own) = (add(nothing()).await, add(json!({"settings": {}})).await);
    let (_, listed) = bob.get(LIST).await;
    let settings = |id: &str| {
        let all = listed["message_channels"].as_array().unwrap();
        all.iter().find(|one| one["id"] == id).unwrap()["settings"].clone()
    };
    assert_eq!(settings(&without), listed["default_settings"], "{listed:#}");
    for (name, value) in defaults.as_object().unwrap() {
        assert_eq!(&settings(&without)[name], value, "{name}");
    }
    for id in [&before, &own] {
        assert_eq!(
            (&settings(id)["actions"], &settings(id)["quiet_hours"]),
            (&json!([]), &Value::Null)
        );
    }
    for (wrong, field) in [
        (only("currency", "EUR"), "message_defaults.currency"),
        (only("actions", ["Pay all"]), "message_defaults.actions[0]"),
        (
            json!({"quiet_hours": {"from": "22:00", "to": "07:00", "time_zone": "Berlin"}}),
            "message_defaults.quiet_hours.time_zone",
        ),
    ] {
        let (status, refused) = set(wrong).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
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
        assert_eq!((status, refused["details"][0]["field"].text()), (400, "url"), "{url}");
    }
    let quiet = json!({"from": "22:00", "to": "07:00", "time_zone": "Berlin"});
    for (settings, field) in [
        (only("actions", ["Pay all"]), "settings.actions[0]"),
        (only("least_amount", "5"), "settings.currency"),
        (json!({"least_amount": "-5", "currency": "EUR"}), "settings.least_amount"),
        (only("quiet_hours", &quiet), "settings.quiet_hours.time_zone"),
        (only("away_until", "2030-01-01T00:00:00Z"), "settings.substitute"),
    ] {
        let body = json!({"kind": "slack", "url": world.url("x"), "settings": settings});
        let (status, refused) = bob.post(LIST, body).await;
        let found = (status, &refused["details"][0]["field"]);
        assert_eq!(found, (400, &json!(field)), "{refused:#}");
    }
    let (status, refused) = bob.post(LIST, only("kind", "slack")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "url"), "{refused:#}");
    // The address is checked again before each message: the settings may have changed.
    assert!(channels(&bob).await.is_empty());
}
