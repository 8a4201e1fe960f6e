//! Following `docs/guides/coding-agent.md` from an empty installation leads to a held command that
//! runs after its approval.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Plain, TestApp, nothing};

const PAGE: &str = include_str!("../../../docs/guides/coding-agent.md");
const SERVICE: &str = "http://127.0.0.1:8080";
/// The page's call of the hook.
const CALL: &str = "    echo '{\"hook_event_name\"";

/// Returns the commands of the page's blocks, then the call.
fn commands() -> (String, String) {
    let blocks = PAGE.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let (_, call) = PAGE.split_once(CALL).unwrap();
    let call = call.split_once("\n\n").unwrap().0;
    (blocks.collect(), format!("{}{call}", CALL.trim_start()))
}

#[expect(clippy::disallowed_methods, reason = "the path of programs, which is not a setting")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_the_page_approves_a_held_command() {
    let app = TestApp::start().await;
    let (blocks, call) = commands();
    assert!(blocks.contains(SERVICE) && call.contains("rm -rf build"), "{blocks}{call}");
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_agent-authority")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let blocks = blocks.replace(SERVICE, app.base_url());
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -euo pipefail\n{blocks}\n{call}")]);
    shell.current_dir(folder.path()).env("HOME", folder.path()).env("PATH", path);
    shell.env("TOKEN", app.owner_token()).env("no_proxy", "127.0.0.1");
    shell.env("STARTS", concat!(env!("CARGO_MANIFEST_DIR"), "/crates/console/src/policies/starts"));
    let followed = tokio::task::spawn_blocking(move || shell.output().unwrap());
    let approver = app.person("svc:tenant:example", "approver", "approver@example.example");
    let mut id = None;
    for _ in 0..600 {
        let (_, listed) = approver.list_approvals("state=pending").await;
        id = listed["approvals"][0]["id"].as_str().map(str::to_owned);
        if id.is_some() || followed.is_finished() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    if let Some(id) = &id {
        let (_, read) = approver.get_approval(id).await;
        let fact = &read["approval"]["presentation"]["facts"][0];
        assert_eq!(
            (fact["value"].text(), fact["block"].as_bool()),
            ("rm -rf build", Some(true)),
            "{read:#}"
        );
        let (status, answer) = approver.approve_approval(id).await;
        assert_eq!((status, answer["approval"]["state"].text()), (200, "approved"), "{answer:#}");
    }
    let Output { status, stdout, stderr } = followed.await.unwrap();
    let (printed, told) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && id.is_some(), "{printed}\n{told}");
    assert!(printed.ends_with("\n{}\n") && !printed.contains("OPEN"), "{printed}");
    let settings = fs::read_to_string(folder.path().join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let hook = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(hook["onFailure"], "block", "{settings:#}");
    // The agent cannot change the settings with the hook by an edit.
    let key = fs::read_to_string(folder.path().join(".config/agent-authority/coder.key")).unwrap();
    let file = folder.path().canonicalize().unwrap();
    for (name, is_free) in [("src/main.rs", true), (".claude/settings.json", false)] {
        let edit = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": file.join(name).display().to_string()}});
        let path = "/v1/hooks/claude-code?purpose=software-development";
        let (_, answer) = app.client(key.trim()).post(path, edit).await;
        assert_eq!(answer == nothing(), is_free, "{name}: {answer:#}");
    }
}
