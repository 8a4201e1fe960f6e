//! A service that knows an MCP server, and the gateway in front of the server.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{AGENT, PROGRAM, TENANT, client::McpClient};
use crate::support::TestApp;

/// A service that knows the server, with all tools pinned and granted to the agent.
pub(super) struct World {
    pub(super) app: TestApp,
    folder: TempDir,
    /// The agent's key, as `mcp add` created it.
    pub(super) key: String,
    /// The arguments of `mcp wrap` before the server's command.
    wrap: Vec<String>,
    /// The program of the server, for Node.js.
    server: String,
}

impl World {
    pub(super) async fn start(slug: &str, server: String) -> Self {
        let app = TestApp::seeded().await;
        let folder = tempfile::tempdir().unwrap();
        let mut add = Command::new(PROGRAM);
        add.args(["mcp", "add", slug, "--url", app.base_url(), "--agent", AGENT]);
        add.args(["--accept-all", "--", "node", &server]);
        add.env("AGENT_AUTHORITY_TOKEN", app.owner_token()).env("no_proxy", "127.0.0.1");
        let added = add.output().await.unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let printed: Value = serde_json::from_slice(&added.stdout).unwrap();
        let entry = &printed["mcpServers"][slug];
        let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let wrap = words.take_while(|word| *word != "--").map(str::to_owned).collect();
        let key = entry["env"]["AGENT_AUTHORITY_TOKEN"].as_str().unwrap().to_owned();
        Self { app, folder, key, wrap, server }
    }

    /// Declares that calls of these tools only read. They then need no approval.
    pub(super) async fn free(&self, names: &[&str]) {
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
    pub(super) fn received(&self) -> PathBuf {
        self.folder.path().join("received")
    }

    /// How often the server has received a message with this text.
    pub(super) fn count(&self, text: &str) -> usize {
        let received = fs::read_to_string(self.received()).unwrap_or_default();
        received.lines().filter(|line| line.contains(text)).count()
    }

    /// Returns the command of the gateway with the server. `filter` is a shell command that the
    /// server's messages pass.
    pub(super) fn command(&self, filter: &str) -> Command {
        let server = format!("tee -a \"$0\" | node \"$1\" | {filter}");
        let mut command = Command::new(PROGRAM);
        command.args(&self.wrap).args(["--", "bash", "-c", &server]);
        command.arg(self.received()).arg(&self.server);
        command.env("AGENT_AUTHORITY_TOKEN", &self.key).env("no_proxy", "127.0.0.1");
        command.env("HOME", self.folder.path());
        command
    }

    /// Starts the gateway with the server, and a session with it.
    pub(super) async fn agent(&self, filter: &str) -> McpClient {
        McpClient::start(self.command(filter)).await
    }
}
