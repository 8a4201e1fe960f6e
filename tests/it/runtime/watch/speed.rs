//! The time from the commit of a stop to its message.

use authority_process::clock::Clock;
use chrono::{DateTime, Utc};
use diesel::{QueryableByName, sql_types::Timestamptz};
use diesel_async::RunQueryDsl;

use super::{Lines, demo, permitted};
use crate::support::{Client, Plain, TestApp, Wishes, nothing};

const ROUNDS: usize = 25;

#[derive(QueryableByName)]
struct Change {
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
}

/// Returns when the last change was logged. That is just before its commit: the measured time is
/// slightly too long.
pub(super) async fn committed(app: &TestApp) -> DateTime<Utc> {
    let query = "SELECT at FROM authority_changes ORDER BY seq DESC LIMIT 1";
    let mut db = app.database.owner().await;
    diesel::sql_query(query).get_result::<Change>(&mut db).await.unwrap().at
}

/// Returns the milliseconds of each round, sorted. Each round suspends the delegation on one node
/// while a stream watches, on the same node or on another one.
async fn measured(app: &TestApp, watcher: &Client, delegation: &str) -> Vec<i64> {
    let (owner, path) = (app.owner(), format!("/api/v1/delegations/{delegation}"));
    let mut taken = Vec::new();
    for _ in 0..ROUNDS {
        let id = permitted(watcher).await;
        let (mut lines, _) = Lines::stops(watcher, &id).await;
        let suspend = format!("{path}/suspend");
        let told = async {
            let event = lines.next().await.unwrap();
            (Clock::default().now(), event)
        };
        let ((at, event), (status, _)) = tokio::join!(told, owner.post(&suspend, nothing()));
        assert_eq!((status, event["kind"].text()), (200, "stopped"), "{event:#}");
        taken.push((at - committed(app).await).num_milliseconds());
        let (status, _) = owner.post(&format!("{path}/reinstate"), nothing()).await;
        assert_eq!(status, 200);
        // Waits until the watcher's node also has the reinstated delegation.
        while watcher.evaluate(super::asking(1.0, "DE")).await.1["decision"] != "allow" {}
    }
    taken.sort_unstable();
    taken
}

fn told(title: &str, taken: &[i64]) -> i64 {
    let (median, most) = (taken[taken.len() / 2], taken[taken.len() - 1]);
    println!("{title}: commit to message {median} ms (median), {most} ms at most, of {ROUNDS}");
    median
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_comes_within_a_tenth_of_a_second_on_one_node_and_a_second_across_two() {
    let (app, client, delegation) = demo().await;
    let one = told("one node", &measured(&app, &client, &delegation).await);
    let beside = app.beside(Wishes::default()).await;
    let there = beside.client(&client.token);
    let two = told("two nodes", &measured(&app, &there, &delegation).await);
    // The median is compared, because a busy machine may delay any single round.
    assert!(one < 100, "{one} ms");
    assert!(two < 1000, "{two} ms");
}
