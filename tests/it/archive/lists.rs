//! Lists, exports, impact reports and idempotent calls while decisions are being removed.

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{TENANT, World};
use crate::support::{Answered, Plain, SEAL_DECISION, asking, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_go_on_behind_rows_that_went() {
    let world = World::start().await;
    let old = world.decided(6).await;
    world.counted().await;
    let key = world.app.api_key(TENANT, &["runtime:read", "runtime:write"]).await;
    let today = world.app.client(&key);
    let mut new = Vec::new();
    for _ in 0..3 {
        let (_, answer) = today.evaluate(asking(5.0, "DE")).await;
        new.push(answer["decision_id"].as_str().unwrap().to_owned());
    }
    let auditor = world.app.person(TENANT, "auditor", "eve@example.org");
    let (status, first) = auditor.list_decisions("limit=4").await;
    assert_eq!((status, first["decisions"].as_array().unwrap().len()), (200, 4));
    let export = auditor.text("GET", "/api/v1/app/decisions:export", None).await.1;
    let export: Vec<Value> =
        export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(export.len(), 9 + 1);
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;

    // The last decision on the page has been removed from the tables since.
    let last = first["decisions"][3]["decision_id"].as_str().unwrap();
    assert!(old.iter().any(|id| id == last), "{first:#}");
    let token = first["next_page_token"].as_str().unwrap();
    let (status, rest) = auditor.list_decisions(&format!("page_token={token}")).await;
    assert_eq!((status, &rest["decisions"]), (200, &json!([])), "{rest:#}");
    let (_, listed) = auditor.list_decisions("").await;
    assert_eq!(listed["decisions"].as_array().unwrap().len(), 3, "today's: {listed:#}");
    for line in &export[..9] {
        let after = line["decision"]["decision_id"].as_str().unwrap();
        let path = format!("/api/v1/app/decisions:export?after={after}");
        let (status, text) = auditor.text("GET", &path, None).await;
        assert_eq!(status, 200, "{text}");
        let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(end["end"], true, "{text}");
        assert!(old.iter().all(|id| !text.contains(id)), "{text}");
    }
    // An impact report evaluates only the decisions that are still in the tables.
    let forbid =
        json!({"candidate_policies": [{"cedar": "forbid (principal, action, resource);"}]});
    let admin = world.app.person(TENANT, "admin", "ann@example.org");
    let (status, impact) = admin.impact_policies(forbid).await;
    assert_eq!((status, impact["considered"].number()), (200, 3), "{impact:#}");
}

/// A key of an archived decision makes a new decision: keys are kept for a day, decisions for at
/// least thirty days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_then_makes_a_new_decision() {
    let world = World::start().await;
    let key = world.past.api_key(TENANT, &["runtime:write", "evidence:write"]).await;
    let idempotent = [("idempotency-key", "once")];
    let evaluate = async |client: crate::support::Client| {
        let answer = client.evaluate_with(asking(7.0, "DE"), &idempotent).await.assert_status(200);
        answer["decision_id"].as_str().unwrap().to_owned()
    };
    let old = evaluate(world.past.client(&key)).await;
    assert_eq!(evaluate(world.past.client(&key)).await, old);
    let seal = only("decision_id", &old);
    let path = SEAL_DECISION;
    let idempotent = [("idempotency-key", "sealed once")];
    let first = world.past.client(&key).call("POST", path, Some(seal.clone()), &idempotent).await;
    assert_eq!(first.0, 200, "{first:?}");
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_ne!(evaluate(world.app.client(&key)).await, old);
    let again = world.app.client(&key).call("POST", path, Some(seal), &idempotent).await;
    assert_eq!(again, first, "sealing again returns the same pack");
}

/// An approval is kept longer than the row of the decision that was held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_then_is_still_shown() {
    let world = World::start().await;
    let key = world.past.api_key(TENANT, &["runtime:write"]).await;
    let (_, held) = world.past.client(&key).evaluate(asking(25_000.0, "DE")).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let id = held["approval_id"].as_str().unwrap();
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let state = |word: &str| format!("UPDATE approvals SET state = '{word}'");
    world.app.database.run(&state("pending")).await;
    assert_eq!(
        world.run().await,
        [super::StepResult::Dropped(0)],
        "an open approval must keep its month"
    );
    world.app.database.run(&state("expired")).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    let (status, shown) = world.owner().get_approval(id).await;
    assert_eq!(
        (status, &shown["approval"]["decision_id"]),
        (200, &held["decision_id"]),
        "{shown:#}"
    );
    let (status, listed) = world.owner().list_approvals("state=expired").await;
    assert_eq!((status, listed["approvals"][0]["id"].text()), (200, id), "{listed:#}");
    let decision = held["decision_id"].as_str().unwrap();
    let (status, shown) = world.reader(TENANT).await.get_decision(decision).await;
    assert_eq!((status, shown["approval_state"].text()), (200, "expired"), "{shown:#}");
}

/// Counts of usage stay when the counted decisions are removed, and are then not counted again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_decisions_stay_counted() {
    let world = World::start().await;
    world.decided(6).await;
    // The worker had passed this month before its decisions were stored.
    let earlier = "UPDATE usage_cursor SET counted_until = time_bound('svc:decision:', now() - interval '1 year')";
    world.app.database.run(earlier).await;
    world.app.count_usage().await;
    world.counted().await;
    let usage = async || {
        let found =
            world.owner().list_usage("tenant_id=acme&group_by=subject").await.assert_status(200);
        found["usage"].clone()
    };
    let before = usage().await;
    let counts =
        ["allow", "require_approval", "deny"].map(|count| before[0][count].as_i64().unwrap());
    assert_eq!((counts.iter().sum::<i64>(), &before[1]), (6, &Value::Null), "{before:#}");
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(usage().await, before);
    let again = format!("SELECT recount_usage('{}-01')", world.month());
    let refused = world.app.database.owner().await.batch_execute(&again).await.unwrap_err();
    assert!(refused.to_string().contains("were removed"), "{refused}");
    assert_eq!(usage().await, before);
}
