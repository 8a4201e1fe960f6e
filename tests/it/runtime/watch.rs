//! Streams that report the end of a permission and the progress of a held decision.

mod chain;
mod credentials;
mod held;
mod load;
mod reality;
mod rows;
mod speed;
mod stops;
mod transports;

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{asking, demo};
use crate::support::{AGENT, Client, TENANT, TestApp};

/// Longer than any operation here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of JSON lines.
pub(super) struct Lines {
    answer: reqwest::Response,
    rest: Vec<u8>,
}

impl Lines {
    async fn open(client: &Client, path: &str) -> Self {
        let request = client.http.get(format!("{}{path}", client.base));
        let answer = request.bearer_auth(&client.token).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
        Self { answer, rest: Vec::new() }
    }

    /// Watches the stop conditions of a decision. The first event confirms the permission.
    pub(super) async fn stops(client: &Client, decision_id: &str) -> (Self, Value) {
        let path = format!("/v1/decisions/{decision_id}:watch-stop-conditions");
        let mut lines = Self::open(client, &path).await;
        let first = lines.next().await.unwrap();
        assert_eq!(first["kind"], "heartbeat", "{first:#}");
        (lines, first)
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = tokio::time::timeout(PATIENCE, self.answer.chunk()).await;
            self.rest.extend(chunk.expect("nothing came").unwrap()?);
        }
    }

    /// Returns the event after the heartbeats, and checks that the stream then ends.
    pub(super) async fn last(&mut self) -> Value {
        let begun = Instant::now();
        loop {
            let event = self.next().await.expect("the stream ended without a word");
            assert!(begun.elapsed() < PATIENCE, "the stream goes on: {event:#}");
            if event["kind"] != "heartbeat" {
                assert_eq!(self.next().await, None);
                return event;
            }
        }
    }
}

/// Requests a small payment, which is permitted, and returns the decision's id.
async fn permitted(client: &Client) -> String {
    decided(client, asking(10.0, "DE"), "allow").await
}

async fn decided(client: &Client, ask: Value, decision: &str) -> String {
    let (status, answer) = client.evaluate(ask).await;
    assert_eq!((status, &answer["decision"]), (200, &decision.into()), "{answer:#}");
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// Waits until the tenant's authority has no watchers.
async fn nobody_watches(app: &TestApp) {
    let gone = async {
        while app.app.graph.watchers(&TENANT.parse().unwrap()) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("a watcher remains");
}
