//! Changes that commit before an act apply to it: a suspension, a new requester.

use std::time::Duration;

use authority_graph as graph;
use diesel_async::{AsyncConnection, RunQueryDsl};

use super::*;
use crate::support::{Members, Plain, Wishes, new_policy, nothing, only};

/// Begins an approval that waits for the approval's row while `meanwhile` runs. Returns its
/// response.
async fn overtaken(
    app: &TestApp,
    person: &Client,
    id: &str,
    meanwhile: impl AsyncFnOnce(),
) -> (u16, Value) {
    let mut other = app.database.owner().await;
    let (path, person) = (format!("/api/v1/app/approvals/{id}/approve"), person.clone());
    other.begin_test_transaction().await.unwrap();
    let lock = format!("SELECT FROM approvals WHERE id = '{id}' FOR UPDATE");
    diesel::sql_query(lock).execute(&mut other).await.unwrap();
    let act = tokio::spawn(async move { person.post(&path, nothing()).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!act.is_finished(), "the call did not wait");
    meanwhile().await;
    drop(other);
    act.await.unwrap()
}

/// A person who is suspended before the act checks them can't approve, although their token was
/// valid at the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspension_that_commits_first_binds() {
    let (app, agent, _) = demo().await;
    let id = held(&agent).await;
    // This node gets the change notification late, but the database's state applies.
    let graph = graph::Settings { delay: Duration::from_secs(2), ..graph::Settings::default() };
    let late = app.beside(Wishes { graph, ..Wishes::default() }).await;
    let nora = person(&late, "approver", "nora");
    let nora_id = principal(&app, only("external_subject", "dev|nora@acme.example")).await;
    late.app.graph.catch_up().await;
    let (status, answer) = overtaken(&app, &nora, &id, async || {
        let sql = format!("UPDATE principals SET state = 'suspended' WHERE id = '{nora_id}'");
        app.database.run(&sql).await;
    })
    .await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("not active"), "{answer:#}");
    assert_eq!(shown(&app, &id).await["given"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asker_who_commits_first_is_bound() {
    let (app, agent, _) = demo().await;
    let ann = person(&app, "admin", "ann");
    let id = held(&agent).await;
    let (key, _) = key_of(&app, &ann).await;
    let mut other = app.database.owner().await;
    other.begin_test_transaction().await.unwrap();
    let lock = format!(
        "UPDATE approvals SET requested_by = requested_by || \
         jsonb_build_object('kind', 'api_key', 'id', '{key}') WHERE id = '{id}'"
    );
    diesel::sql_query(lock).execute(&mut other).await.unwrap();
    let act = {
        let ann = ann.clone();
        tokio::spawn(async move { ann.approve_approval(&id).await })
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!act.is_finished(), "the call did not wait");
    diesel::sql_query("COMMIT").execute(&mut other).await.unwrap();
    let (status, answer) = act.await.unwrap();
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("you made this request"), "{answer:#}");
}

/// A person who approves first and then repeats the request
/// is a requester. Their approval no longer counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_who_asks_later_does_not_count() {
    let (app, agent, _) = demo().await;
    let four_eyes = new_policy(
        "internal",
        "@id(\"four-eyes\")\n@reason(\"approval_threshold_breach\")\n\
                  @decision(\"require_approval\")\n@approvals(\"2\")\n\
                  forbid (principal, action, resource);\n",
    )
    .with("name", "Two people");
    assert_eq!(app.owner().create_policy(four_eyes).await.0, 201);
    let [ann, bob, cy] = ["ann", "bob", "cy"].map(|name| person(&app, "admin", name));
    let id = held(&agent).await;
    assert_eq!(approve(&ann, &id).await.0, 200);
    let (_, anns) = key_of(&app, &ann).await;
    assert_eq!(held(&anns).await, id);
    let (_, given) = approve(&bob, &id).await;
    assert_eq!(given["approval"]["state"], "pending", "{given:#}");
    approved(&cy, &id).await;
}
