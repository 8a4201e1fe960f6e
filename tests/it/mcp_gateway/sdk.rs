//! A client of MCP version 2026-07-28: the official SDK for TypeScript, in a process of its own.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::feature;

/// How long an answer may take. A held call waits 50 s at most.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) struct SdkClient {
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    /// The server's tools, as the client lists them when it starts.
    pub(super) listed: Value,
    /// Ends with this value.
    _process: Child,
}

impl SdkClient {
    /// Starts a client of the server that the command starts.
    pub(super) async fn start(server: &Command, elicitation: Value) -> Self {
        let server = server.as_std();
        let mut command = Command::new("node");
        command.arg(feature("mcp_client.mjs")).arg(elicitation.to_string());
        command.arg(server.get_program()).args(server.get_args());
        let set = server.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let from = BufReader::new(from).lines();
        let mut client = Self { to, from, listed: Value::Null, _process: process };
        let hello = client.outcome().await;
        assert_eq!(hello["era"], "modern");
        client.listed = hello["listed"].clone();
        client
    }

    /// Begins a call of a tool. The client answers forms with `content`.
    pub(super) async fn begin(&mut self, tool: &str, arguments: Value, content: Value) {
        let call = json!({"tool": tool, "arguments": arguments, "content": content});
        self.to.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }

    /// The outcome of the last call: its `result`, and the elicitations that were `asked`.
    pub(super) async fn outcome(&mut self) -> Value {
        let line = timeout(LIMIT, self.from.next_line()).await.expect("no answer in time");
        serde_json::from_str(&line.unwrap().expect("the client has ended")).unwrap()
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value, content: Value) -> Value {
        self.begin(tool, arguments, content).await;
        self.outcome().await
    }
}
