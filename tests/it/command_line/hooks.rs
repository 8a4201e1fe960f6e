//! `hook` and `hooks`: decides calls of coding agents, installs the hook and tests it.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Answered, Client, Plain, TestApp,
    coder::{AGENT, PURPOSE, TENANT, call, coder, denial, policy},
    nothing, only,
};

const SHELL: &str = include_str!("../../../crates/console/src/policies/starts/code_shell.cedar");

/// A service with a coding agent, and a folder with its key and its settings.
struct World {
    app: TestApp,
    folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let app = TestApp::start().await;
        let key = coder(&app).await;
        policy(&app, SHELL).await;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("key"), key + "\n").unwrap();
        Self { app, folder }
    }

    fn flags(&self) -> Vec<String> {
        flags(self.app.base_url())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the command in the folder.
    async fn run(&self, words: &[&str], flags: &[String], input: &str) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-authority"));
        command.args(words).args(flags).current_dir(self.folder.path());
        let input = input.to_owned();
        tokio::task::spawn_blocking(move || fed(command, &input)).await.unwrap()
    }

    async fn hook(&self, flags: &[String], input: &Value) -> (i32, String, String) {
        self.run(&["hook", "claude-code"], flags, &input.to_string()).await
    }

    fn approver(&self) -> Client {
        self.app.person(TENANT, "approver", "approver@example.org")
    }

    /// Decides the next approval request.
    async fn decide(&self, act: &str, body: Value) {
        let approver = self.approver();
        for _ in 0..200 {
            let (_, listed) = approver.list_approvals("state=pending").await;
            if let Some(id) = listed["approvals"][0]["id"].as_str() {
                approver.act_on_approval(id, act, body).await.assert_status(200);
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no approval request");
    }
}

fn flags(url: &str) -> Vec<String> {
    let flags = ["--url", url, "--key-file", "key", "--agent", AGENT, "--purpose", PURPOSE];
    flags.map(str::to_owned).to_vec()
}

fn fed(mut command: Command, input: &str) -> (i32, String, String) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.env("no_proxy", "127.0.0.1").spawn().unwrap();
    // A command that does not read its input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn bash(command: &str) -> Value {
    call("Bash", &only("command", command))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_call_waits_for_people() {
    let world = World::start().await;
    let flags = world.flags();
    assert_eq!(world.hook(&flags, &bash("ls")).await, (0, "{}\n".to_owned(), String::new()));
    let rm = bash("rm -rf build");
    let (answer, ()) = tokio::join!(world.hook(&flags, &rm), world.decide("approve", nothing()));
    let (code, printed, told) = &answer;
    assert_eq!((*code, printed.as_str()), (0, "{}\n"), "{told}");
    let receipt = format!(": {}/receipts/svc:decision:", world.app.base_url());
    assert!(told.starts_with("waiting for approval svc:approval:"), "{told}");
    assert!(told.contains(&receipt) && told.lines().count() == 1, "{told}");
    let declined = only("reason", "keep it");
    let (answer, ()) = tokio::join!(world.hook(&flags, &rm), world.decide("decline", declined));
    let (code, printed, _) = &answer;
    let reason = denial(&serde_json::from_str(printed).unwrap()).unwrap();
    assert_eq!((*code, reason.as_str()), (0, "Denied: the approval request is declined."));
    // The wait ends before the hook's timeout.
    let short = [&flags[..], &["--timeout".to_owned(), "10".to_owned()]].concat();
    let since = Instant::now();
    let (code, printed, _) = world.hook(&short, &bash("rm -rf src")).await;
    let reason = denial(&serde_json::from_str(&printed).unwrap()).unwrap();
    assert!(code == 0 && reason.starts_with("Held for approval: x_code_delete"), "{reason}");
    assert!((4..9).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
}

/// The operation and the command ask the same question. It does not contain the description.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_approval_is_for_the_command_with_any_description() {
    let world = World::start().await;
    let described =
        |text: &str| call("Bash", &json!({"command": "rm -rf build", "description": text}));
    let key = fs::read_to_string(world.path("key")).unwrap();
    let path = format!("/v1/hooks/claude-code?purpose={PURPOSE}");
    let (_, answer) = world.app.client(key.trim()).post(&path, described("Remove it")).await;
    assert!(denial(&answer).is_some_and(|reason| reason.starts_with("Held")), "{answer:#}");
    world.decide("approve", json!({})).await;
    let answer = world.hook(&world.flags(), &described("Clean up")).await;
    assert_eq!(answer, (0, "{}\n".to_owned(), String::new()));
}

/// A server that accepts connections, and answers with these bytes. Without bytes it stays silent.
fn server(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer);
                if answer.is_empty() {
                    thread::sleep(Duration::from_secs(60));
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_fails_exits_with_2() {
    let world = World::start().await;
    let good = bash("ls").to_string();
    let (good, other) = (good.as_str(), good.replace("PreToolUse", "Stop"));
    let own = world.flags();
    let with = |flag: &str, value: &str| {
        let mut flags = own.clone();
        let place = flags.iter().position(|own| own == flag).unwrap();
        flags[place + 1] = value.to_owned();
        flags
    };
    fs::write(world.path("empty"), "").unwrap();
    fs::write(world.path("rubbish"), "rubbish\n").unwrap();
    let html = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<ok>";
    let empty = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"decision\": \"allow\"";
    let gone =
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let mut silent = flags(&server(b""));
    silent.extend(["--timeout".to_owned(), "10".to_owned()]);
    for (name, flags, input) in [
        ("nobody listens", flags("http://127.0.0.1:9"), good),
        ("a page", flags(&server(html)), good),
        ("an empty answer", flags(&server(empty)), good),
        ("half an answer", flags(&server(half)), good),
        ("no HTTP", flags(&server(b"rubbish\r\n\r\n")), good),
        ("unavailable", flags(&server(gone)), good),
        ("silence", silent, good),
        ("no key file", with("--key-file", "none"), good),
        ("an empty key", with("--key-file", "empty"), good),
        ("a wrong key", with("--key-file", "rubbish"), good),
        ("another agent", with("--agent", "svc:agent:example:other"), good),
        ("no agent", with("--agent", "x"), good),
        ("no flags", Vec::new(), good),
        ("an unknown flag", [&own[..], &["--no-such".to_owned()]].concat(), good),
        ("no call", own.clone(), ""),
        ("half a call", own.clone(), "{"),
        ("a list", own.clone(), "[]"),
        ("no tool", own.clone(), "{}"),
        ("another event", own.clone(), other.as_str()),
    ] {
        let (code, printed, told) = world.run(&["hook", "claude-code"], &flags, input).await;
        assert_eq!((code, printed.as_str()), (2, ""), "{name}: {told}");
        assert!(!told.is_empty(), "{name}");
    }
    // An unknown decision is a denial.
    let odd = b"HTTP/1.1 200 OK\r\ncontent-length: 21\r\nconnection: close\r\n\r\n{\"decision\":\"permit\"}";
    let (code, printed, told) = world.hook(&flags(&server(odd)), &bash("ls")).await;
    let reason = denial(&serde_json::from_str(&printed).unwrap());
    assert!(code == 0 && reason.is_some_and(|reason| reason.starts_with("Denied")), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hook_is_installed_once_and_its_failures_are_tried() {
    let world = World::start().await;
    let file = world.path(".claude/settings.json");
    fs::create_dir(world.path(".claude")).unwrap();
    let other = json!({"matcher": "Edit", "hooks": [{"type": "command", "command": "lint"}]});
    let before = json!({"model": "m", "hooks": {"PreToolUse": [other]}}).to_string();
    fs::write(&file, &before).unwrap();
    let flags = world.flags();
    let install = ["hooks", "install", "claude-code"];
    let (code, _, told) = world.run(&install, &flags, "n\n").await;
    assert!(code == 1 && told.contains("\"onFailure\": \"block\""), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let (code, printed, told) = world.run(&install, &flags, "y\n").await;
    assert_eq!(code, 0, "{told}");
    let copy = printed.split("the old file is ").nth(1).unwrap().trim();
    assert_eq!(fs::read_to_string(world.path(copy)).unwrap(), before);
    let installed: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let groups = installed["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0], installed["model"].text()), (2, &other, "m"));
    let own = &groups[1]["hooks"][0];
    assert!(groups[1].get("matcher").is_none(), "{installed:#}");
    assert_eq!((own["onFailure"].text(), own["timeout"].number()), ("block", 600));
    let (code, printed, _) = world.run(&install, &flags, "").await;
    assert!(code == 0 && printed.contains("has this hook already"), "{printed}");
    // The installed command decides.
    let mut shell = Command::new("sh");
    shell.args(["-c", own["command"].as_str().unwrap()]).current_dir("/");
    let input = bash("ls").to_string();
    let answer = tokio::task::spawn_blocking(move || fed(shell, &input)).await.unwrap();
    assert_eq!(answer, (0, "{}\n".to_owned(), String::new()));

    let test = ["hooks", "test", "claude-code"];
    let (code, printed, told) = world.run(&test, &flags, "").await;
    assert_eq!(code, 0, "{printed}{told}");
    assert!(
        printed.lines().count() > 10 && printed.lines().all(|line| line.starts_with("shut")),
        "{printed}"
    );
    for changed in [
        fs::read_to_string(&file).unwrap().replace("\"onFailure\": \"block\"", "\"x\": 1"),
        fs::read_to_string(&file).unwrap().replacen('{', "{\"disableAllHooks\": true,", 1),
    ] {
        let kept = fs::read_to_string(&file).unwrap();
        fs::write(&file, changed).unwrap();
        let (code, printed, _) = world.run(&test, &flags, "").await;
        assert!(code == 1 && printed.contains("OPEN  the settings"), "{printed}");
        fs::write(&file, kept).unwrap();
    }
    // Another form replaces the first one.
    let http = [&flags[..], &["--http".to_owned(), "--yes".to_owned()]].concat();
    assert_eq!(world.run(&install, &http, "").await.0, 0);
    let installed: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let own = &installed["hooks"]["PreToolUse"][1]["hooks"];
    assert_eq!(own.as_array().unwrap().len(), 1, "{installed:#}");
    let url = format!("{}/v1/hooks/claude-code?purpose={PURPOSE}", world.app.base_url());
    assert_eq!((own[0]["url"].text(), own[0]["onFailure"].text()), (url.as_str(), "block"));
    cursor(&world, &flags).await;
}

async fn cursor(world: &World, flags: &[String]) {
    let yes = [flags, &["--yes".to_owned()]].concat();
    assert_eq!(world.run(&["hooks", "install", "cursor"], &yes, "").await.0, 0);
    let text = fs::read_to_string(world.path(".cursor/hooks.json")).unwrap();
    let installed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            installed["version"].number(),
            installed["hooks"]["preToolUse"][0]["failClosed"].as_bool()
        ),
        (1, Some(true))
    );
    let (code, printed, told) = world.run(&["hooks", "test", "cursor"], flags, "").await;
    assert_eq!(code, 0, "{printed}{told}");
}
