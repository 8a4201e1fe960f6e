//! Web Push: recipients, messages, and how a push service's responses are handled.

mod people;
mod sent;

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::json;

use super::{
    delivery::Receiver,
    endpoints::{ANN, TENANT},
};
use crate::support::{Answered, Client, Members, TestApp, Wishes, new_principal, only};

const KEY: &str = "/api/v1/app/notifications/push-key";
const LIST: &str = "/api/v1/app/notifications/push-subscriptions";
/// A part of the URL of every subscription in these tests.
const CAPABILITY: &str = "c4p4b1l1ty";
/// Longer than the interval at which the worker polls.
const ROUNDS: Duration = Duration::from_millis(2500);

/// A service with push, with two tenants, and a push service.
struct World {
    app: TestApp,
    service: Receiver,
}

impl World {
    async fn start() -> Self {
        let wishes = Wishes { push: true, ..Wishes::default() };
        let app = TestApp::wished(wishes).await;
        for slug in ["acme", "other"] {
            assert_eq!(app.owner().create_tenant(json!({"name": slug, "slug": slug})).await.0, 201);
        }
        let world = Self { app, service: Receiver::start().await };
        // Notifications that are created from now on are pushed.
        world.until("SELECT count(*) = 1 FROM push_cursor").await;
        world
    }

    fn person(&self, role: &str, email: &str) -> Client {
        self.app.person(TENANT, role, email)
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{CAPABILITY}/{name}", self.service.base)
    }

    /// Creates a subscription; returns its id.
    async fn subscribed(&self, client: &Client, name: &str) -> String {
        let made = client
            .create_push_subscription(only("endpoint", self.url(name)))
            .await
            .assert_status(201);
        made["push_subscription"]["id"].as_str().unwrap().to_owned()
    }

    async fn tell(&self, kind: &str, role: &str) {
        self.tell_in(TENANT, kind, role).await;
    }

    async fn tell_in(&self, tenant: &str, kind: &str, role: &str) {
        let call =
            format!("SELECT notify_people('{kind}', '{tenant}', '{{{role}}}', 'svc:endpoint:0')");
        self.app.database.run(&call).await;
    }

    /// Waits until the query is true.
    async fn until(&self, query: &str) {
        let check = format!("DO $$ BEGIN ASSERT ({query}); END $$");
        for _ in 0..400 {
            let mut db = self.app.database.owner().await;
            if db.batch_execute(&check).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not after 20 s: {query}");
    }

    /// Returns the names of the pushed subscriptions, after `count` pushes and enough time for
    /// more.
    async fn pushed(&self, count: usize) -> Vec<String> {
        self.service.wait_for(count).await;
        tokio::time::sleep(ROUNDS).await;
        let pushes = self.service.received().into_iter();
        pushes.map(|push| push.path.rsplit('/').next().unwrap().to_owned()).collect()
    }

    async fn principal(&self, state: &str) -> String {
        let body = new_principal("human", "Ann").with("email", ANN).with("state", state);
        let made = self.app.owner().create_principal(body).await.assert_status(201);
        format!("/api/v1/principals/{}", made["principal"]["id"].as_str().unwrap())
    }

    async fn set(&self, path: &str, state: &str) {
        self.app.owner().patch(path, only("state", state)).await.assert_status(200);
    }
}
