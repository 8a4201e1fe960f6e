//! A server as a child process, and its introduction: its instructions and its tools.

use std::{io, process::Stdio, sync::Arc, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{
    mcp::{
        definition::{Definition, page},
        lines,
        message::Id,
        reply,
    },
    runtime::with_huge_pages,
};

/// How long a server may take for one answer. It may have to be downloaded first.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
const ANSWER: Duration = Duration::from_secs(10);
/// How long a server of the newest era may take to introduce itself.
const PROBE: Duration = Duration::from_secs(5);
/// The most pages of tools.
const MOST_PAGES: usize = 100;
const SESSION_VERSION: &str = "2025-11-25";
const STATELESS_VERSION: &str = "2026-07-28";

/// A running server.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Server {
    /// Starts a server. It gets the environment of this process, except the credential.
    ///
    /// # Errors
    /// The command can't be started.
    pub(crate) fn start(command: &[String], without: &[&str]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut start = Command::new(program);
        start.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // A package runner starts the server itself as another process.
        start.process_group(0);
        for name in without {
            start.env_remove(name);
        }
        let mut child = with_huge_pages(true, || start.spawn())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, stdin, stdout })
    }
}

/// Ends a server and the processes that it started.
///
/// # Errors
/// The system refuses it.
pub(crate) fn kill(child: &Child) -> io::Result<()> {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    // Without an id, the process has already ended.
    let Some(group) = group else { return Ok(()) };
    Ok(killpg(Pid::from_raw(group), Signal::SIGKILL)?)
}

/// The introduction of a server: its instructions and its tools.
#[derive(Debug, Default)]
pub(crate) struct Introduction {
    pub(crate) instructions: Option<String>,
    pub(crate) definitions: Vec<Arc<Definition>>,
    /// The tools that cannot be pinned, each with the reason.
    pub(crate) unreadable: Vec<String>,
}

/// Asks a server for its instructions and its tools, in the era that it speaks.
///
/// # Errors
/// The server does not answer as MCP requires.
pub(crate) async fn introduce(server: Server) -> Result<Introduction, String> {
    let Server { child, stdin, stdout } = server;
    let mut asking = Asking { stdin, stdout: BufReader::new(stdout), next: 0, _child: child };
    // A server may have tools only for clients with these.
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let info = json!({"protocolVersion": SESSION_VERSION, "capabilities": capabilities,
        "clientInfo": client_info()});
    // Servers of a session era may ignore messages before `initialize`.
    let first = asking.ask("initialize", info, FIRST_ANSWER).await?;
    let (meta, first) = if let Ok(first) = first {
        let ready = reply::notification("notifications/initialized", &json!({}));
        asking.send(ready).await?;
        (None, first)
    } else {
        let first = asking.ask("server/discover", json!({ "_meta": meta }), PROBE).await?;
        let first =
            first.map_err(|why| format!("the server refuses to introduce itself: {why}"))?;
        (Some(meta), first)
    };
    let first: Value = serde_json::from_str(&first).map_err(|error| error.to_string())?;
    let instructions = first["instructions"].as_str().map(str::to_owned);
    let mut introduction = Introduction { instructions, ..Introduction::default() };
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let mut params = Map::new();
        params.extend(meta.clone().map(|meta| ("_meta".to_owned(), meta)));
        params.extend(cursor.map(|cursor: String| ("cursor".to_owned(), json!(cursor))));
        let answer = asking.ask("tools/list", Value::Object(params), ANSWER).await?;
        let read = page(&answer.map_err(|why| format!("the server lists no tools: {why}"))?)?;
        introduction.definitions.extend(read.definitions);
        introduction.unreadable.extend(read.unreadable);
        cursor = read.next;
        if cursor.is_none() {
            return Ok(introduction);
        }
    }
    Err("the list of tools does not end".to_owned())
}

fn client_info() -> Value {
    json!({"name": "agent-authority", "version": env!("CARGO_PKG_VERSION")})
}

struct Asking {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: i64,
    /// Ends with this value.
    _child: Child,
}

impl Asking {
    async fn send(&mut self, mut line: Vec<u8>) -> Result<(), String> {
        line.push(b'\n');
        let sent = self.stdin.write_all(&line).await;
        sent.map_err(|error| format!("the server does not read: {error}"))
    }

    /// Sends a request and returns the result, or the server's error.
    async fn ask(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Result<String, String>, String> {
        #[derive(serde::Deserialize)]
        struct Head<'a> {
            id: Option<Value>,
            #[serde(borrow)]
            result: Option<&'a serde_json::value::RawValue>,
            #[serde(borrow)]
            error: Option<&'a serde_json::value::RawValue>,
        }
        self.next += 1;
        let id = Id::Number(self.next);
        let Value::Object(params) = params else { return Err("no parameters".to_owned()) };
        self.send(reply::request(&id, method, &params)).await?;
        let answer = async {
            while let Some(line) = lines::next(&mut self.stdout).await {
                let Ok(text) = str::from_utf8(&line) else { continue };
                let Ok(head) = serde_json::from_str::<Head<'_>>(text) else { continue };
                if head.id.as_ref().and_then(Id::of) != Some(id.clone()) {
                    continue;
                }
                return match (head.result, head.error) {
                    (Some(result), None) => Ok(Ok(result.get().to_owned())),
                    (_, Some(error)) => Ok(Err(error.get().to_owned())),
                    (None, None) => continue,
                };
            }
            Err("the server ended".to_owned())
        };
        let answer = timeout(limit, answer).await;
        answer.map_err(|_| format!("the server does not answer `{method}` in {limit:?}"))?
    }
}
