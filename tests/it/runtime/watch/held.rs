//! Held decisions, from the request to the outcome.

use serde_json::{Value, json};

use super::{Lines, TENANT, asking, decided, demo};
use crate::support::{Answered, Client, Members, Plain, TestApp, Wishes, nothing, only};

async fn watch(client: &Client, id: &str) -> (Lines, Value) {
    let mut lines = Lines::open(client, &format!("/v1/decisions/{id}:watch")).await;
    let first = lines.next().await.unwrap();
    (lines, first)
}

async fn act(app: &TestApp, first: &Value, verb: &str, body: Value) {
    let approval = first["approval_id"].as_str().unwrap();
    let ann = app.person(TENANT, "approver", "ann@example.org");
    ann.act_on_approval(approval, verb, body).await.assert_status(200);
}

async fn report(client: &Client, id: &str) {
    client.report_decision(id, only("outcome", "executed")).await.assert_status(200);
}

/// The streams run on the node that handles the approval and on another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_streams_the_approval_the_allow_and_the_outcome() {
    let (app, client, _) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let (near, first) = watch(&client, &held).await;
    let (far, same) = watch(&beside.client(&client.token), &held).await;
    assert_eq!(first, same);
    assert_eq!(first["decision"], "require_approval");
    assert_eq!((first["approval_state"].text(), &first["outcome"]), ("pending", &Value::Null));
    let mut streams = [near, far];
    let mut told = async |what: [&str; 2], wanted: [Value; 2]| {
        for lines in &mut streams {
            let update = lines.next().await.unwrap();
            assert_eq!([&update[what[0]], &update[what[1]]], wanted.each_ref(), "{update:#}");
        }
    };
    act(&app, &first, "approve", nothing()).await;
    told(["approval_state", "used_by"], [json!("approved"), Value::Null]).await;
    let citing = asking(25_000.0, "DE").with("approval_id", &first["approval_id"]);
    let allowed = decided(&client, citing, "allow").await;
    told(["approval_state", "used_by"], [json!("used"), json!(allowed)]).await;
    // A new watcher first gets the current state.
    let (_, late) = watch(&client, &held).await;
    assert_eq!((late["approval_state"].text(), late["used_by"].text()), ("used", allowed.as_str()));
    report(&client, &allowed).await;
    told(["used_by", "outcome"], [json!(allowed), json!("executed")]).await;
    for mut lines in streams {
        assert_eq!(lines.next().await, None);
    }
    let (mut over, last) = watch(&client, &held).await;
    assert_eq!(last["outcome"], "executed");
    assert_eq!(over.next().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_no_is_the_end_of_it() {
    let (app, client, _) = demo().await;
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    // Two identical requests wait for the same approval.
    let again = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let (mut one, first) = watch(&client, &held).await;
    let (mut other, _) = watch(&client, &again).await;
    act(&app, &first, "decline", only("reason", "too much")).await;
    for lines in [&mut one, &mut other] {
        assert_eq!(lines.next().await.unwrap()["approval_state"], "declined");
        assert_eq!(lines.next().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_final_state_is_sent_once() {
    let (_app, client, _) = demo().await;
    let allowed = decided(&client, asking(10.0, "DE"), "allow").await;
    let denied = decided(&client, asking(10.0, "US"), "deny").await;
    for (id, decision) in [(&allowed, "allow_with_constraints"), (&denied, "deny")] {
        let (mut lines, first) = watch(&client, id).await;
        assert_eq!(first["decision"], decision);
        assert_eq!([&first["approval_state"], &first["outcome"]], [&Value::Null; 2]);
        assert_eq!(lines.next().await, None);
    }
    report(&client, &allowed).await;
    let (_, first) = watch(&client, &allowed).await;
    assert_eq!(first["outcome"], "executed");
}

/// If a notification is lost, polling finds the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_sent_even_if_the_listener_was_disconnected() {
    let (app, client, _) = demo().await;
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let (mut lines, first) = watch(&client, &held).await;
    let approval = first["approval_id"].as_str().unwrap();
    // One statement disconnects the listener and decides. The notification is therefore lost.
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'agent-authority listener' AND datname = current_database();
         UPDATE approvals SET state = 'expired' WHERE id = '{approval}'"
    );
    app.database.run(&sql).await;
    assert_eq!(lines.next().await.unwrap()["approval_state"], "expired");
    assert_eq!(lines.next().await, None);
}
