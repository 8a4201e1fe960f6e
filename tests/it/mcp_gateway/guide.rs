//! Following `docs/guides/mcp.md` leads to a held call that runs once after its approval.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use super::{PROGRAM, approved, client::McpClient, everything, told};
use crate::support::TestApp;

const PAGE: &str = include_str!("../../../docs/guides/mcp.md");

/// Returns the page's commands: the first block, and the others.
fn blocks() -> (&'static str, String) {
    let mut blocks = PAGE.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    (blocks.next().unwrap(), blocks.collect())
}

fn script(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Creates programs for the page's commands: `agent-authority` calls the test's service instead of the
/// local one, and `npx` starts the installed package.
#[expect(clippy::disallowed_methods, reason = "the path of programs, which is not a setting")]
fn programs(app: &TestApp, folder: &Path) -> String {
    let url = app.base_url();
    let text = format!(
        "first=$1 second=$2; shift 2; exec {PROGRAM} \"$first\" \"$second\" --url {url} \"$@\""
    );
    script(folder, "agent-authority", &text);
    script(folder, "npx", &format!("exec node {}", everything()));
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Runs commands in a shell that answers each question with yes. Returns their output.
fn printed(app: &TestApp, path: &str, commands: &str) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -eu\nyes | {{\n{commands}\n}}")]);
    shell.env("PATH", path).env("AGENT_AUTHORITY_TOKEN", app.owner_token());
    shell.env("no_proxy", "127.0.0.1");
    let Output { status, stdout, stderr } = shell.output().unwrap();
    let printed = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{printed}\n{}", String::from_utf8_lossy(&stderr));
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_follows_the_page_has_a_held_call_that_runs_once() {
    let app = TestApp::seeded().await;
    let folder = tempfile::tempdir().unwrap();
    let path = programs(&app, folder.path());
    let (add, others) = blocks();
    let configuration = tokio::task::block_in_place(|| printed(&app, &path, add));
    let configuration: Value = serde_json::from_str(&configuration).unwrap();
    let entry = &configuration["mcpServers"]["everything"];
    let arguments = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut command = tokio::process::Command::new(entry["command"].as_str().unwrap());
    command.args(arguments).env("PATH", &path).env("no_proxy", "127.0.0.1");
    command.env("HOME", folder.path());
    command.env("AGENT_AUTHORITY_TOKEN", entry["env"]["AGENT_AUTHORITY_TOKEN"].as_str().unwrap());
    let mut agent = McpClient::start(command).await;
    assert!(agent.tools().await.contains(&"echo".to_owned()));
    let echo = json!({"message": "hello"});
    let (held, is_error) = told(&agent.call("echo", echo.clone()).await);
    let expected = PAGE.lines().find(|line| line.contains("Held for approval.")).unwrap();
    let expected = expected.trim().split("https").next().unwrap();
    assert!(is_error && held.starts_with(expected), "{held}");
    approved(&app).await;
    assert_eq!(told(&agent.call("echo", echo.clone()).await), ("Echo: hello".to_owned(), false));
    let (again, _) = told(&agent.call("echo", echo).await);
    assert!(again.starts_with(expected), "{again}");
    let shown = tokio::task::block_in_place(|| printed(&app, &path, &others));
    assert!(shown.contains("every tool is pinned"), "{shown}");
    assert!(shown.contains("no problem was found"), "{shown}");
}
