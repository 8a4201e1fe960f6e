//! Messages about requests for approval, by chat and e-mail.

mod chats;
mod formats;
mod mail;
mod people;
mod settings;
mod told;

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{
    delivery::{Received, Receiver},
    endpoints::TENANT,
};
use crate::support::{Answered, Client, TestApp, Wishes, asking};

const LIST: &str = "/api/v1/app/message-channels";
const BOB: &str = "bob@acme.example";
const LEA: &str = "lea@acme.example";
/// Longer than the interval of the worker's rounds.
const ROUNDS: Duration = Duration::from_millis(4500);
/// A part of the URL of every webhook in these tests.
const CAPABILITY: &str = "c4p4b1l1ty";

/// The demonstration tenant, and a receiver for its chats.
struct World {
    app: TestApp,
    chat: Receiver,
    runtime: Client,
}

impl World {
    async fn start() -> Self {
        Self::of(TestApp::seeded().await).await
    }

    async fn wished(wishes: Wishes) -> Self {
        Self::of(TestApp::wished(wishes).await).await
    }

    async fn of(app: TestApp) -> Self {
        let demo = app.demo().await;
        let (runtime, chat) = (app.client(&demo.api_key), Receiver::start().await);
        chat.always(super::delivery::Answer::status(200));
        Self { app, chat, runtime }
    }

    fn bob(&self) -> Client {
        self.app.person(TENANT, "approver", BOB)
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{CAPABILITY}/{name}", self.chat.base)
    }

    /// Adds a chat; returns its id. The receiver gets its messages at the path `name`.
    async fn chat(&self, person: &Client, kind: &str, name: &str, settings: Value) -> String {
        let body = json!({"kind": kind, "url": self.url(name), "settings": settings});
        added(person.create_message_channel(body).await)
    }

    /// Requests a payment that is held; returns the id of the request for approval.
    async fn ask(&self, amount: f64) -> String {
        let (_, held) = self.runtime.evaluate(asking(amount, "DE")).await;
        held["approval_id"].as_str().unwrap_or_else(|| panic!("{held:#}")).to_owned()
    }

    /// The requests at the receiver, after `count` of them and enough time for more.
    async fn received(&self, count: usize) -> Vec<Received> {
        self.chat.wait_for(count).await;
        tokio::time::sleep(ROUNDS).await;
        self.chat.received()
    }

    /// The names of the chats that got messages, in order.
    async fn told(&self, count: usize) -> Vec<String> {
        let all = self.received(count).await;
        let mut names: Vec<String> =
            all.iter().map(|one| one.path.rsplit('/').next().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    async fn run(&self, sql: &str) {
        self.app.database.run(sql).await;
    }

    /// Waits until the query is true.
    async fn until(&self, query: &str) {
        let check = format!("DO $$ BEGIN ASSERT ({query}); END $$");
        for _ in 0..600 {
            let mut db = self.app.database.owner().await;
            if db.batch_execute(&check).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not after 30 s: {query}");
    }
}

fn added((status, made): (u16, Value)) -> String {
    assert_eq!(status, 201, "{made:#}");
    made["message_channel"]["id"].as_str().unwrap().to_owned()
}

async fn channels(person: &Client) -> Vec<Value> {
    let listed = person.list_message_channels("").await.assert_status(200);
    listed["message_channels"].as_array().unwrap().clone()
}
