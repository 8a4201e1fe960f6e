//! A stopped agent can't delegate, because the delegation would be active once the stop is lifted.

use serde_json::{Value, json};

use super::{Acme, BOT, CAT, DOG, PATH, TENANT, id, part, with};
use crate::support::{Answered, Plain, nothing, only};

impl Acme {
    /// Creates the stop or quarantine, and returns the path that lifts it.
    async fn put(&self, path: &str, body: Value) -> String {
        let verb = if path == "stop-signals" { "lift" } else { "release" };
        let body = with(body, json!({"tenant_id": TENANT, "reason": "a test"}));
        let made = self.made(path, body).await;
        format!("/api/v1/{path}/{}/{verb}", made["id"].as_str().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_who_is_stopped_or_quarantined_delegates() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let ((bot, _), (cat, _)) = (acme.key(&[BOT]).await, acme.key(&[CAT]).await);
    let (_, child) = bot.post(PATH, with(part(&root, CAT), only("can_delegate", true))).await;
    let child = id(&child);
    let give = || cat.post(PATH, part(&child, DOG));
    for (path, body) in [
        ("stop-signals", only("actor_id", CAT)),
        ("stop-signals", only("actor_id", BOT)),
        ("stop-signals", only("actor_id", &acme.boss)),
        ("stop-signals", only("actor_id", DOG)),
        ("quarantines", only("subject_id", CAT)),
        ("quarantines", json!({"subject_id": acme.boss, "action": "payment.*"})),
        ("quarantines", only("subject_id", DOG)),
        ("quarantines", only("delegation_id", &root)),
        ("quarantines", json!({"delegation_id": child, "action": "payment.execute"})),
        ("quarantines", only("action", "payment.execute")),
        ("quarantines", only("action", "*")),
    ] {
        let lift = acme.put(path, body.clone()).await;
        let (status, refused) = give().await;
        assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{body}");
        let message = refused["message"].as_str().unwrap();
        let why = if path == "quarantines" { "covered by the quarantine" } else { "is in force" };
        assert!(message.contains(why), "{body}: {message}");
        assert_eq!(acme.app.owner().post(&lift, nothing()).await.0, 200);
        let (status, given) = give().await;
        assert_eq!(status, 201, "{body}: {given:#}");
    }
    // Quarantines of other agents or actions are ignored.
    for body in [
        only("action", "ticket.*"),
        json!({"subject_id": CAT, "action": "ticket.reply"}),
        json!({"subject_id": CAT, "delegation_id": acme.root(DOG, nothing()).await}),
    ] {
        acme.put("quarantines", body.clone()).await;
        let (status, given) = give().await;
        assert_eq!(status, 201, "{body}: {given:#}");
    }
}

/// A stopped agent can't revoke either, because it may not act until the stop signal is lifted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_who_is_stopped_revokes() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let (bot, _) = acme.key(&[BOT]).await;
    let (_, child) = bot.post(PATH, part(&root, CAT)).await;
    let revoke = format!("{PATH}/{}/revoke", id(&child));
    let lift = acme.put("stop-signals", only("actor_id", BOT)).await;
    let (status, refused) = bot.post(&revoke, nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{refused:#}");
    assert_eq!(acme.app.owner().post(&lift, nothing()).await.0, 200);
    assert_eq!(bot.post(&revoke, nothing()).await.0, 200);
}

/// A chain with an inactive principal can't be extended, and delegates must be active.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_in_the_chain_is_active() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let (bot, _) = acme.key(&[BOT]).await;
    let state = async |id: &str, state: &str| {
        acme.app.owner().update_principal(id, only("state", state)).await.assert_status(200);
    };
    for (id, expected) in [(acme.boss.as_str(), 409), (CAT, 409), (BOT, 403)] {
        state(id, "suspended").await;
        let (status, refused) = bot.post(PATH, part(&root, CAT)).await;
        assert_eq!(status, expected, "{id}: {refused:#}");
        assert!(refused["message"].as_str().unwrap().contains(id), "{refused:#}");
        state(id, "active").await;
        assert_eq!(bot.post(PATH, part(&root, CAT)).await.0, 201);
    }
}
