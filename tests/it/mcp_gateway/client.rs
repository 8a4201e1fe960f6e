//! An MCP client of a process, over the standard input and output of the process.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// How long an answer may take. A server starts first.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) struct McpClient {
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    next: i64,
    /// Ends with this value.
    process: Child,
}

impl McpClient {
    /// Starts the process, and a session with it.
    pub(super) async fn start(mut command: Command) -> Self {
        use std::process::Stdio;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let from = BufReader::new(from).lines();
        let mut client = Self { to, from, next: 0, process };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.ask("initialize", hello).await;
        assert!(answer["result"]["serverInfo"].is_object(), "{answer:#}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    /// The process's memory of a kind of Linux, in KiB.
    #[cfg(target_os = "linux")]
    pub(super) fn memory(&self, kind: &str) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.process.id().unwrap());
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, size) = lines.find(|(name, _)| *name == kind).unwrap();
        size.trim().trim_end_matches(" kB").parse().unwrap()
    }

    async fn send(&mut self, message: &Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request without waiting for its answer.
    pub(super) async fn begin(&mut self, method: &str, params: Value) {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))
            .await;
    }

    /// The answer to the last request. Other messages are left out.
    pub(super) async fn answer(&mut self) -> Value {
        loop {
            let line = timeout(LIMIT, self.from.next_line()).await.expect("no answer in time");
            let line = line.unwrap().expect("the process has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.begin(method, params).await;
        self.answer().await
    }

    /// Calls a tool.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The names of the listed tools.
    pub(super) async fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}
