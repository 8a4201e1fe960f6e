//! Calls of a real MCP server: permitted, denied, held, stopped, and of a definition that changed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{AGENT, PROGRAM, TENANT, client::McpClient, everything, told};
use crate::support::TestApp;

/// How long a stopped call may go on.
const STOPPED: Duration = Duration::from_secs(1);

/// A service that knows the server, with all tools pinned and granted to the agent.
struct World {
    app: TestApp,
    folder: TempDir,
    /// The agent's key, as `mcp add` created it.
    key: String,
    /// The arguments of `mcp wrap` before the server's command.
    wrap: Vec<String>,
}

impl World {
    async fn start() -> Self {
        let app = TestApp::seeded().await;
        let folder = tempfile::tempdir().unwrap();
        let mut add = Command::new(PROGRAM);
        add.args(["mcp", "add", "everything", "--url", app.base_url(), "--agent", AGENT]);
        add.args(["--accept-all", "--", "node", &everything()]);
        add.env("AGENT_AUTHORITY_TOKEN", app.owner_token()).env("no_proxy", "127.0.0.1");
        let added = add.output().await.unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let printed: Value = serde_json::from_slice(&added.stdout).unwrap();
        let entry = &printed["mcpServers"]["everything"];
        let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let wrap = words.take_while(|word| *word != "--").map(str::to_owned).collect();
        let key = entry["env"]["AGENT_AUTHORITY_TOKEN"].as_str().unwrap().to_owned();
        Self { app, folder, key, wrap }
    }

    /// Declares that calls of these tools only read. They then need no approval.
    async fn free(&self, names: &[&str]) {
        let owner = self.app.owner();
        let path = format!("/api/v1/tools?tenant_id={TENANT}&limit=500");
        let (_, listed) = owner.get(&path).await;
        for name in names {
            let mut tools = listed["tools"].as_array().unwrap().iter();
            let tool = tools.find(|tool| tool["mcp"]["name"] == **name);
            let id =
                tool.unwrap_or_else(|| panic!("no {name}: {listed:#}"))["id"].as_str().unwrap();
            let body = json!({
                "action_declaration": {"effect_class": "informational", "reversibility": "reversible"},
                "action_risk_classification": {"risk_tier": "minimal"}});
            let (status, changed) = owner.patch(&format!("/api/v1/tools/{id}"), body).await;
            assert_eq!(status, 200, "{changed:#}");
        }
    }

    /// The calls that the server has received.
    fn received(&self) -> PathBuf {
        self.folder.path().join("received")
    }

    /// Starts the gateway with the server. `filter` is a shell command that the server's messages pass.
    async fn agent(&self, filter: &str) -> McpClient {
        let server = format!("tee -a \"$0\" | node \"$1\" | {filter}");
        let mut command = Command::new(PROGRAM);
        command.args(&self.wrap).args(["--", "bash", "-c", &server]);
        command.arg(self.received()).arg(everything());
        command.env("AGENT_AUTHORITY_TOKEN", &self.key).env("no_proxy", "127.0.0.1");
        command.env("HOME", self.folder.path());
        McpClient::start(command).await
    }
}

/// How often the server has received a message with this text.
fn count(received: &Path, text: &str) -> usize {
    let received = fs::read_to_string(received).unwrap_or_default();
    received.lines().filter(|line| line.contains(text)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_are_permitted_denied_held_and_stopped() {
    let world = World::start().await;
    world.free(&["echo", "trigger-long-running-operation"]).await;
    let denial = json!({"agent_id": AGENT, "used_id": "mcp.everything.get-env",
        "used_kind": "action", "allowed": 0});
    let (status, made) = world.app.owner().post("/api/v1/relationships/uses", denial).await;
    assert_eq!(status, 201, "{made:#}");
    let mut agent = world.agent("cat").await;
    let received = world.received();

    let echoed = told(&agent.call("echo", json!({"message": "hello"})).await);
    assert_eq!(echoed, ("Echo: hello".to_owned(), false));

    let (denied, is_error) = told(&agent.call("get-env", json!({})).await);
    assert!(is_error && denied.contains("capability_denied"), "{denied}");
    assert_eq!(count(&received, "get-env"), 0);

    let sum = json!({"a": 2, "b": 3});
    let (held, is_error) = told(&agent.call("get-sum", sum.clone()).await);
    assert!(is_error && held.starts_with("Held for approval."), "{held}");
    assert_eq!(count(&received, "get-sum"), 0);
    let approver = world.app.person(TENANT, "approver", "approver@acme.example");
    let (_, listed) = approver.get("/api/v1/app/approvals?state=pending").await;
    let id = listed["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed:#}"));
    let path = format!("/api/v1/app/approvals/{id}/approve");
    assert_eq!(approver.post(&path, json!({})).await.0, 200);
    let (other, _) = told(&agent.call("get-sum", json!({"a": 2, "b": 4})).await);
    assert!(
        other.starts_with("Held for approval."),
        "the approval is for other arguments: {other}"
    );
    let (summed, is_error) = told(&agent.call("get-sum", sum.clone()).await);
    assert!(!is_error && summed.contains('5'), "{summed}");
    let (again, _) = told(&agent.call("get-sum", sum).await);
    assert!(again.starts_with("Held for approval."), "{again}");
    assert_eq!(count(&received, "get-sum"), 1);

    let long = json!({"name": "trigger-long-running-operation",
        "arguments": {"duration": 30, "steps": 30}});
    agent.begin("tools/call", long).await;
    while count(&received, "long-running") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stop = json!({"tenant_id": TENANT, "actor_id": AGENT, "reason": "a test"});
    let (status, stopped) = world.app.owner().post("/api/v1/stop-signals", stop).await;
    assert_eq!(status, 201, "{stopped:#}");
    let began = Instant::now();
    let (ended, is_error) = told(&agent.answer().await);
    assert!(began.elapsed() < STOPPED, "{:?}", began.elapsed());
    assert!(is_error && ended.contains("actor.stop_signal"), "{ended}");
    while count(&received, "notifications/cancelled") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (denied, _) = told(&agent.call("echo", json!({"message": "x"})).await);
    assert!(denied.contains("actor_stopped"), "{denied}");
    assert_eq!(count(&received, "\"echo\""), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_that_changes_by_one_byte_is_hidden_and_denied() {
    let world = World::start().await;
    world.free(&["echo"]).await;
    let mut agent = world.agent("sed -u 's/Echoes back/Echoes_back/'").await;
    let listed = agent.tools().await;
    assert!(listed.contains(&"get-sum".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"echo".to_owned()), "{listed:?}");
    let (denied, is_error) = told(&agent.call("echo", json!({"message": "hello"})).await);
    assert!(is_error && denied.contains("Denied ("), "{denied}");
    assert_eq!(count(&world.received(), "\"echo\""), 0);
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
