//! The hook of a coding agent, with each fault of the service at each step of a call. The tool runs
//! only after a good answer: the file that it would create is absent.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, sync::Semaphore, task::JoinSet};

use super::figures::{figure, times};
use crate::support::coder::{AGENT, PURPOSE, call, denial};

/// How many hooks run at once. Hooks that wait for a silent service use no processor.
const AT_ONCE: usize = 24;
/// Asks, waits for people, asks with their approval.
const STEPS: [&str; 3] = ["ask", "wait", "ask again"];
/// The fault without a response.
const SILENCE: &str = "silence";

fn http(status: u16, body: &str) -> String {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n");
    format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn refused(status: u16, code: &str) -> String {
    let body = json!({"ok": false, "error": code, "message": "no", "request_id": "7f"});
    http(status, &body.to_string())
}

fn good(step: &str) -> String {
    let answer = match step {
        "ask" => {
            json!({"decision": "require_approval", "reason_code": "approval_threshold_breach",
            "decision_id": "svc:decision:1", "approval_id": "svc:approval:1",
            "verify_url": "https://authority.example/receipts/1"})
        }
        "wait" => json!({"approval_state": "approved"}),
        _ => json!({"decision": "allow", "reason_code": "permission_granted",
            "decision_id": "svc:decision:2"}),
    };
    http(200, &format!("{answer}\n"))
}

/// The faults, each with the bytes of the response.
fn faults() -> Vec<(&'static str, String)> {
    let decided = |decision: &str| {
        let body = json!({"decision": decision, "reason_code": "x", "decision_id": "d"});
        http(200, &body.to_string())
    };
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"decision\": \"allow\"".to_owned();
    vec![
        ("503", refused(503, "unavailable")),
        ("429", refused(429, "rate_limited")),
        ("500", refused(500, "internal")),
        ("401", refused(401, "unauthorized")),
        ("403", refused(403, "forbidden")),
        ("404", refused(404, "not_found")),
        ("409", refused(409, "decision_stopped")),
        ("page of a proxy", http(200, "<html>it works</html>")),
        ("502 page", http(502, "<html>bad gateway</html>")),
        ("empty", http(200, "")),
        ("null", http(200, "null")),
        ("a list", http(200, "[]")),
        ("half", http(200, "{\"decision\": \"allow\"")),
        ("cut", cut),
        ("no HTTP", "rubbish\r\n\r\n".to_owned()),
        ("closed", String::new()),
        (SILENCE, String::new()),
        ("no decision", http(200, "{}")),
        ("unknown decision", decided("permit")),
        ("denied", decided("deny")),
        ("held without an approval", decided("require_approval")),
        ("declined", http(200, "{\"approval_state\": \"declined\"}\n")),
        ("unknown state", http(200, "{\"approval_state\": \"fine\"}\n")),
    ]
}

/// Reads a whole request.
fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut part) = (String::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(part.get(..read).unwrap()));
        if read == 0 {
            return text;
        }
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

/// Starts a service with a fault at one step. Returns its address.
fn service(faulty: &'static str, name: &'static str, fault: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), fault) = (stream, fault.clone()) else { return };
            thread::spawn(move || {
                let request = request(&mut stream);
                let step = match request.as_str() {
                    watch if watch.contains(":watch ") => "wait",
                    cited if cited.contains("\"approval_id\"") => "ask again",
                    _ => "ask",
                };
                if step == faulty && name == SILENCE {
                    thread::sleep(Duration::from_secs(30));
                }
                let reply = if step == faulty { fault } else { good(step) };
                let _ = stream.write_all(reply.as_bytes());
            });
        }
    });
    url
}

/// A coding agent: asks the hook, and runs the tool unless the hook blocks or denies it. Returns what
/// the hook answered.
async fn agent(url: &str, folder: &TempDir, file: PathBuf) -> String {
    let mut hook = Command::new(env!("CARGO_BIN_EXE_agent-authority"));
    hook.args(["hook", "claude-code", "--url", url, "--key-file", "key", "--timeout", "10"]);
    hook.args(["--agent", AGENT, "--purpose", PURPOSE]).current_dir(folder.path());
    hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = hook.env("no_proxy", "127.0.0.1").spawn().unwrap();
    let asked = call("Bash", &json!({"command": "touch file"})).to_string();
    hook.stdin.take().unwrap().write_all(asked.as_bytes()).await.unwrap();
    let ended = hook.wait_with_output().await.unwrap();
    if ended.status.code() == Some(2) {
        return "blocked: exit code 2".to_owned();
    }
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap_or(json!({}));
    if let Some(reason) = denial(&answer) {
        return format!("denied: {reason}");
    }
    fs::write(file, "").unwrap();
    "the tool ran".to_owned()
}

/// Makes calls, each with a file of its own. Returns how often the hook gave each answer, and the
/// number of files.
async fn calls(
    url: String,
    repeat: usize,
    turns: Arc<Semaphore>,
) -> (BTreeMap<String, usize>, usize) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    fs::write(folder.path().join("key"), "svc_sandbox_1_2_3\n").unwrap();
    let files = Arc::new(tempfile::tempdir().unwrap());
    let mut running = JoinSet::new();
    for place in 0..repeat {
        let (url, turns) = (url.clone(), Arc::clone(&turns));
        let (folder, file) = (Arc::clone(&folder), files.path().join(place.to_string()));
        running.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            agent(&url, &folder, file).await
        });
    }
    let mut counts = BTreeMap::new();
    for answer in running.join_all().await {
        *counts.entry(answer).or_default() += 1;
    }
    let ran = fs::read_dir(files.path()).unwrap().count();
    (counts, ran)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_runs_after_a_fault_of_the_hooks_service() {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let (counts, ran) = calls(service("none", "", String::new()), 1, Arc::clone(&turns)).await;
    assert_eq!((ran, counts.len()), (1, 1), "a good answer permits: {counts:?}");
    let mut running = JoinSet::new();
    let mut add = |name: String, url: String| {
        let turns = Arc::clone(&turns);
        running.spawn(async move { (name, calls(url, times(), turns).await) });
    };
    add("ask: nobody listens".to_owned(), "http://127.0.0.1:9".to_owned());
    for step in STEPS {
        for (name, fault) in faults() {
            add(format!("{step}: {name}"), service(step, name, fault));
        }
    }
    let mut all: Vec<_> = running.join_all().await;
    all.sort();
    for (name, (counts, ran)) in all {
        let counts = counts.iter().map(|(answer, count)| format!("{count} {answer}"));
        let counts = counts.collect::<Vec<_>>().join("; ");
        figure(&format!("hook, {name}: {counts}"), &format!("{ran} tools ran"));
        assert_eq!(ran, 0, "{name}");
    }
}
