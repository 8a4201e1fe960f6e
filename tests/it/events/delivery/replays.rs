//! The progress of replays, their list, and refused replays.

use serde_json::{Value, json};

use super::{Endpoint, Made, Receiver, World};
use crate::support::{Answered, Client, Members, Plain, nothing, only};

const HOLD: &str = "UPDATE webhook_cursors SET waits_until = now() + interval '1 h'";
const RELEASE: &str = "UPDATE webhook_cursors SET waits_until = NULL";

struct Replays {
    world: World,
    made: Made,
    admin: Client,
}

impl Replays {
    /// The fixture has an endpoint that has received three events.
    async fn start(receiver: &Receiver) -> Self {
        let world = World::start().await;
        let made = Endpoint {
            event_types: vec!["svc.authority.*", "svc.decision.denied"],
            ..Endpoint::at(&receiver.base)
        };
        let made = world.endpoint(made).await;
        world.events(3).await;
        world.wait_until_ended(&made, 3).await;
        let admin = world.app.person(&world.tenant_id, "admin", "alice@example.org");
        Self { world, made, admin }
    }

    fn at(&self, rest: &str) -> String {
        format!("/api/v1/app/webhook-endpoints/{}{rest}", self.made.id)
    }

    async fn ask(&self, more: Value) -> (u16, Value) {
        let body = json!({"since": "2020-01-01T00:00:00Z", "only": "all"}).and(&more);
        self.admin.post(&self.at(":replay"), body).await
    }

    /// Starts a replay and waits until it has chosen its events.
    async fn chosen(&self) -> String {
        let asked = self.ask(nothing()).await.assert_status(202);
        let id = asked["replay_id"].as_str().unwrap().to_owned();
        let done = format!("SELECT id FROM webhook_replays WHERE id = '{id}' AND state = 'done'");
        self.world.wait_for(done).await;
        id
    }

    async fn shown(&self, id: &str) -> Value {
        self.admin.get(&self.at(&format!("/replays/{id}"))).await.1["replay"].clone()
    }
}

/// Returns the replay's state, and the numbers of delivered, open and cancelled deliveries.
fn progress(replay: &Value) -> Value {
    json!(["state", "delivered", "open", "cancelled"].map(|member| &replay[member]))
}

#[tokio::test]
async fn a_replay_is_sending_until_its_deliveries_have_ended_and_all_are_listed() {
    let receiver = Receiver::start().await;
    let replays = Replays::start(&receiver).await;
    replays.world.run(HOLD).await;
    let first = replays.chosen().await;
    assert_eq!(progress(&replays.shown(&first).await), json!(["sending", 0, 3, 0]));
    replays.world.run(RELEASE).await;
    receiver.wait_for(6).await;
    let ended = "SELECT 1 AS one WHERE NOT EXISTS (SELECT FROM webhook_deliveries \
                     WHERE state = 'open')";
    replays.world.wait_for(ended.to_owned()).await;
    assert_eq!(progress(&replays.shown(&first).await), json!(["done", 3, 0, 0]));

    // A replay that is cancelled while it sends does not become `done`.
    replays.world.run(HOLD).await;
    let second = replays.chosen().await;
    let path = replays.at(&format!("/replays/{second}"));
    let (status, cancelled) = replays.admin.call("DELETE", &path, None, &[]).await;
    assert_eq!(
        (status, progress(&cancelled["replay"])),
        (200, json!(["cancelled", 0, 0, 3])),
        "{cancelled:#}"
    );
    // A replay that has ended keeps its state.
    let path = replays.at(&format!("/replays/{first}"));
    let (_, ended) = replays.admin.call("DELETE", &path, None, &[]).await;
    assert_eq!(progress(&ended["replay"]), json!(["done", 3, 0, 0]));

    let third = replays.chosen().await;
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let path = replays.at(&format!("/replays?limit=2&page_token={token}"));
        let page = replays.admin.get(&path).await.assert_status(200);
        for one in page["replays"].as_array().unwrap() {
            found.push((one["id"].clone(), one["state"].clone()));
            assert_eq!((&one["open"], &one["delivered"]), (&Value::Null, &Value::Null));
        }
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    let expected = [(third, "sending"), (second, "cancelled"), (first, "done")];
    assert_eq!(found, expected.map(|(id, state)| (json!(id), json!(state))));
    let other = World::tenant(&replays.world.app, "other").await;
    let foreign = replays.world.app.person(&other, "admin", "eve@example.org");
    assert_eq!(foreign.get(&replays.at("/replays")).await.0, 404);
    for (client, base) in [
        (replays.world.app.owner(), "/api/v1"),
        (
            replays.world.app.client(
                &replays.world.app.api_key(&replays.world.tenant_id, &["webhooks:write"]).await,
            ),
            "/v1",
        ),
    ] {
        let path = format!("{base}/webhook-endpoints/{}/replays", replays.made.id);
        assert_eq!(client.get(&path).await.1["replays"].as_array().unwrap().len(), 3, "{base}");
    }
}

#[tokio::test]
async fn a_second_replay_is_refused_with_the_running_ones_id() {
    let receiver = Receiver::start().await;
    let replays = Replays::start(&receiver).await;
    replays.world.run("UPDATE webhook_endpoints SET state = 'paused'").await;
    let running = replays.ask(nothing()).await.assert_status(202);
    let (status, refused) = replays.ask(nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
    let detail = &refused["details"][0];
    assert_eq!(
        (detail["field"].text(), &detail["value"]),
        ("replay_id", &running["replay_id"]),
        "{refused:#}"
    );
}

#[tokio::test]
async fn a_replay_of_what_cannot_come_is_refused() {
    let receiver = Receiver::start().await;
    let replays = Replays::start(&receiver).await;
    for (more, field) in [
        (only("since", "9999-01-01T00:00:00Z"), "since"),
        (only("event_types", ["svc.authority.*", "svc.reality.*"]), "event_types[1]"),
        (only("event_types", ["svc.decision.allowed"]), "event_types[0]"),
    ] {
        let (status, refused) = replays.ask(more).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
    replays.ask(only("event_types", ["*", "svc.decision.*"])).await.assert_status(202);
}
