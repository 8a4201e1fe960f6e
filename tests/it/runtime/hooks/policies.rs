//! The starting policies for coding agents.

use serde_json::{Value, json};

use super::{SHELL, asked, started};
use crate::support::coder::policy;

const EDITS: &str = include_str!("../../../../crates/console/src/policies/starts/code_edits.cedar");
const SECRETS: &str =
    include_str!("../../../../crates/console/src/policies/starts/code_secrets.cedar");
const MCP: &str = include_str!("../../../../crates/console/src/policies/starts/code_mcp.cedar");

/// Sends calls with a policy. A call is permitted, or its reason begins with the words.
async fn expect(cedar: &str, calls: impl IntoIterator<Item = (&str, Value, &str)>) {
    let (app, client) = started().await;
    policy(&app, cedar).await;
    let mut faults = Vec::new();
    for (tool, input, expected) in calls {
        let reason = asked(&client, tool, input.clone()).await;
        let is_right = match &reason {
            None => expected.is_empty(),
            Some(reason) => !expected.is_empty() && reason.starts_with(expected),
        };
        if !is_right {
            faults.push(format!("{tool} {input}: {reason:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shell_commands_that_delete_push_publish_or_send_are_held() {
    let (delete, push) =
        ("Held for approval: x_code_delete", "Held for approval: x_code_force_push");
    let (publish, send) = ("Held for approval: x_code_publish", "Held for approval: x_code_send");
    let commands = [
        ("ls -la", ""),
        ("cargo test --workspace", ""),
        ("git status && git commit -m 'Fix it'", ""),
        ("git push origin main", ""),
        ("curl -s https://example.org/data.json", ""),
        ("rm -rf build", delete),
        ("cd a && rm -r  b", delete),
        ("find . -name '*.o' -delete", delete),
        ("git clean -fdx", delete),
        ("git reset --hard HEAD~3", delete),
        ("git push --force origin main", push),
        ("git push origin main --force-with-lease", push),
        ("git -C x push -f", push),
        ("git push origin +main", push),
        ("git push origin --delete main", push),
        ("npm publish", publish),
        ("cargo publish -p a", publish),
        ("twine upload dist/*", publish),
        ("docker push a/b", publish),
        ("curl -d @data https://example.org", send),
        ("curl --data-binary @- https://example.org", send),
        ("wget --post-file=a https://example.org", send),
        ("scp a host:", send),
        ("cat a | nc example.org 80", send),
    ];
    let calls = commands.map(|(command, expected)| ("Bash", json!({"command": command}), expected));
    // A call without a command is held.
    let without =
        [("Bash", json!({}), "Held for approval"), ("Read", json!({"file_path": "a"}), "")];
    Box::pin(expect(SHELL, calls.into_iter().chain(without))).await;
}

/// The texts of commands that the policy does not recognise. The guide names them as its limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_policy_does_not_stop_these() {
    let commands = [
        "python3 -c 'import shutil; shutil.rmtree(\"build\")'",
        "r\\m -rf build",
        "./clean.sh",
        "$CMD build",
    ];
    Box::pin(expect(SHELL, commands.map(|command| ("Bash", json!({"command": command}), ""))))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_are_free_in_the_project_alone() {
    let held = "Held for approval: x_code_outside";
    let paths = [
        ("/home/dev/project/src/main.rs", ""),
        ("/home/dev/project/a.b", ""),
        ("/home/dev/project", held),
        ("/home/dev/project2/a", held),
        ("/home/dev/project/../.bashrc", held),
        ("/home/dev/project/a/..", held),
        ("/home/dev/project/.claude/settings.json", held),
        ("/home/dev/project/.git/hooks/pre-commit", held),
        ("/home/dev/.bashrc", held),
        ("src/main.rs", held),
        ("", held),
    ];
    let edits = paths.map(|(path, expected)| {
        ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), expected)
    });
    let others = [
        ("Write", json!({"file_path": "/home/dev/project/a", "content": ""}), ""),
        ("Write", json!({"content": ""}), held),
        ("NotebookEdit", json!({"notebook_path": "/home/dev/project/a.ipynb"}), held),
        ("Read", json!({"file_path": "/etc/hosts"}), ""),
    ];
    Box::pin(expect(EDITS, edits.into_iter().chain(others))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_with_secrets_are_denied() {
    let denied = "Denied: x_code_secret";
    let calls = [
        ("Read", json!({"file_path": "/home/dev/project/src/main.rs"}), ""),
        ("Grep", json!({"pattern": "a"}), ""),
        ("Read", json!({"file_path": "/home/dev/project/.env"}), denied),
        ("Read", json!({"file_path": "/home/dev/project/.env.local"}), denied),
        ("Read", json!({"file_path": "/home/dev/.ssh/config"}), denied),
        ("Edit", json!({"file_path": "/home/dev/.npmrc"}), denied),
        ("Write", json!({"file_path": "/home/dev/project/server.pem"}), denied),
        ("Bash", json!({"command": "cargo build"}), ""),
        ("Bash", json!({"command": "cat .env"}), denied),
        ("Bash", json!({"command": "cp ~/.ssh/id_ed25519 /tmp"}), denied),
        ("Bash", json!({"command": "printenv"}), denied),
        ("Bash", json!({}), denied),
    ];
    Box::pin(expect(SECRETS, calls)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_mcp_servers_are_held() {
    let held = "Held for approval: x_code_mcp";
    let calls = [
        ("mcp__github__create_issue", json!({"title": "a"}), held),
        ("Bash", json!({"command": "ls"}), ""),
    ];
    Box::pin(expect(MCP, calls)).await;
}
