//! Calls of a real MCP server: permitted, denied, held, stopped, and of a definition that changed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{AGENT, TENANT, approved, everything, told, world::World};
use crate::support::Answered;

/// How long a stopped call may go on.
const STOPPED: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_are_permitted_denied_held_and_stopped() {
    let world = World::start("everything", everything()).await;
    world.free(&["echo", "trigger-long-running-operation"]).await;
    let denial = json!({"agent_id": AGENT, "used_id": "mcp.everything.get-env",
        "used_kind": "action", "allowed": 0});
    world.app.owner().post("/api/v1/relationships/uses", denial).await.assert_status(201);
    let mut agent = world.agent("cat").await;

    let echoed = told(&agent.call("echo", json!({"message": "hello"})).await);
    assert_eq!(echoed, ("Echo: hello".to_owned(), false));

    let (denied, is_error) = told(&agent.call("get-env", json!({})).await);
    assert!(is_error && denied.contains("capability_denied"), "{denied}");
    assert_eq!(world.count("get-env"), 0);

    let sum = json!({"a": 2, "b": 3});
    let (held, is_error) = told(&agent.call("get-sum", sum.clone()).await);
    assert!(is_error && held.starts_with("Held for approval."), "{held}");
    assert_eq!(world.count("get-sum"), 0);
    approved(&world.app).await;
    let (other, _) = told(&agent.call("get-sum", json!({"a": 2, "b": 4})).await);
    assert!(
        other.starts_with("Held for approval."),
        "the approval is for other arguments: {other}"
    );
    let (summed, is_error) = told(&agent.call("get-sum", sum.clone()).await);
    assert!(!is_error && summed.contains('5'), "{summed}");
    let (again, _) = told(&agent.call("get-sum", sum).await);
    assert!(again.starts_with("Held for approval."), "{again}");
    assert_eq!(world.count("get-sum"), 1);

    let long = json!({"name": "trigger-long-running-operation",
        "arguments": {"duration": 30, "steps": 30}});
    agent.begin("tools/call", long).await;
    while world.count("long-running") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stop = json!({"tenant_id": TENANT, "actor_id": AGENT, "reason": "a test"});
    world.app.owner().post("/api/v1/stop-signals", stop).await.assert_status(201);
    let began = Instant::now();
    let (ended, is_error) = told(&agent.answer().await);
    assert!(began.elapsed() < STOPPED, "{:?}", began.elapsed());
    assert!(is_error && ended.contains("actor.stop_signal"), "{ended}");
    while world.count("notifications/cancelled") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (denied, _) = told(&agent.call("echo", json!({"message": "x"})).await);
    assert!(denied.contains("actor_stopped"), "{denied}");
    assert_eq!(world.count("\"echo\""), 1);
}

/// The program's own pages do not count: the system can drop them and read them again.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_gateway_takes_little_memory() {
    let world = World::start("everything", everything()).await;
    world.free(&["echo"]).await;
    let mut agent = world.agent("cat").await;
    for place in 0..50 {
        let (echoed, is_error) =
            told(&agent.call("echo", json!({"message": place.to_string()})).await);
        assert!(!is_error, "{echoed}");
    }
    let own = agent.memory("Private_Dirty");
    assert!(own < 30 * 1024, "{own} KiB");
    assert_eq!(agent.memory("AnonHugePages"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_that_changes_by_one_byte_is_hidden_and_denied() {
    let world = World::start("everything", everything()).await;
    world.free(&["echo"]).await;
    let mut agent = world.agent("sed -u 's/Echoes back/Echoes_back/'").await;
    let listed = agent.tools().await;
    assert!(listed.contains(&"get-sum".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"echo".to_owned()), "{listed:?}");
    let (denied, is_error) = told(&agent.call("echo", json!({"message": "hello"})).await);
    assert!(is_error && denied.contains("Denied ("), "{denied}");
    assert_eq!(world.count("\"echo\""), 0);
    // The gateway has reported the change: it also binds requests of every other caller.
    let question = json!({"subject": AGENT, "action": "mcp.everything.echo",
        "context": {"arguments": {"message": "hello"}}});
    let key = world.app.client(&world.key);
    let (mut reason, began) = (Value::Null, Instant::now());
    while reason != "capability_quarantined" && began.elapsed() < Duration::from_secs(10) {
        let (_, answer) = key.post("/v1/decisions/evaluate", question.clone()).await;
        reason = answer["reason_code"].clone();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(reason, "capability_quarantined");
}
