//! The hooks of coding agents: decisions and failures, in the form of each coding agent.

mod failures;
mod policies;

use serde_json::{Value, json};

use crate::support::{
    Answered, Client, Members, Plain, TestApp,
    coder::{TENANT, call, coder, denial, policy},
    nothing, only,
};

const CLAUDE: &str = "/v1/hooks/claude-code?purpose=software-development";
const CURSOR: &str = "/v1/hooks/cursor?purpose=software-development";
const SHELL: &str = include_str!("../../../../crates/console/src/policies/starts/code_shell.cedar");

async fn started() -> (TestApp, Client) {
    let app = TestApp::start().await;
    let key = coder(&app).await;
    let client = app.client(&key);
    (app, client)
}

/// Sends a call of a tool. Returns the reason of a denial.
async fn asked(client: &Client, tool: &str, input: Value) -> Option<String> {
    let answer = client.post(CLAUDE, call(tool, &input)).await.assert_status(200);
    denial(&answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_call_is_denied_with_a_link_and_passes_once_after_its_approval() {
    let (app, client) = started().await;
    policy(&app, SHELL).await;
    assert_eq!(asked(&client, "Bash", only("command", "cargo test")).await, None);
    let command = json!({"command": "rm -rf build", "description": "Remove the build folder"});
    let reason = asked(&client, "Bash", command.clone()).await.unwrap();
    assert!(reason.starts_with("Held for approval: x_code_delete."), "{reason}");
    assert!(reason.contains("A person must approve commands that delete"), "{reason}");
    assert!(reason.contains(&format!("{}/receipts/svc:decision:", app.base_url())), "{reason}");
    // The same call again opens no other request.
    assert!(asked(&client, "Bash", command.clone()).await.is_some());
    let approver = app.person(TENANT, "approver", "approver@example.org");
    let (_, listed) = approver.list_approvals("state=pending").await;
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 1, "{listed:#}");
    let id = listed["approvals"][0]["id"].as_str().unwrap();
    let (_, approval) = approver.get_approval(id).await;
    let facts = &approval["approval"]["presentation"]["facts"][0];
    assert_eq!((facts["label"].text(), facts["value"].text()), ("Command", "rm -rf build"));
    assert_eq!(facts["block"], true, "{approval:#}");
    assert_eq!(approval["approval"]["justification"], "Remove the build folder", "{approval:#}");
    assert_eq!(approver.approve_approval(id).await.0, 200);
    // Another id of the call, session or transcript, or another description of the command is the
    // same question; another command is not.
    let other = only("command", "rm -rf src");
    assert!(asked(&client, "Bash", other).await.is_some());
    let described = json!({"command": "rm -rf build", "description": "Clean up"});
    let again = call("Bash", &described).with("tool_use_id", "toolu_2").with("session_id", "t");
    assert_eq!(denial(&client.post(CLAUDE, again).await.1), None);
    assert!(asked(&client, "Bash", command).await.unwrap().starts_with("Held"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_has_the_arguments_and_the_session() {
    let (app, client) = started().await;
    assert_eq!(asked(&client, "mcp__git_hub__create", only("title", "a")).await, None);
    let (_, listed) = app.owner().list_decisions("tenant_id=example").await;
    let id = listed["decisions"][0]["decision_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/decisions/{id}?context=true");
    let (_, decision) = app.owner().get(&path).await;
    let decision = &decision["decision"];
    let request = &decision["record"]["request"];
    assert_eq!(request["action"], "code.mcp.git_hub.create", "{decision:#}");
    let context = json!({"arguments": {"title": "a"}, "session": {"tool": "mcp__git_hub__create",
        "cwd": "/home/dev/project", "permission_mode": "default"}});
    assert_eq!(decision["context"]["value"], context, "{decision:#}");
    // A server behind `mcp wrap` is left to it: no decision is recorded.
    let path = format!("{CLAUDE}&wrapped_servers=git_hub");
    let (_, answer) = client.post(&path, call("mcp__git_hub__create", &nothing())).await;
    assert_eq!(answer, nothing());
    let (_, after) = app.owner().list_decisions("tenant_id=example").await;
    assert_eq!(after["decisions"].as_array().unwrap().len(), 1, "{after:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursor_gets_an_explicit_permission() {
    let (app, client) = started().await;
    policy(&app, SHELL).await;
    let event = |command: &str| {
        json!({"conversation_id": "c", "generation_id": "g", "hook_event_name": "preToolUse",
            "cursor_version": "3.9", "workspace_roots": ["/home/dev/project"], "tool_name": "Shell",
            "tool_input": {"command": command}, "tool_use_id": "u", "cwd": "/home/dev/project"})
    };
    let allowed = client.post(CURSOR, event("cargo test")).await;
    assert_eq!(allowed, (200, only("permission", "allow")));
    let (status, denied) = client.post(CURSOR, event("rm -rf build")).await;
    assert_eq!((status, denied["permission"].text()), (200, "deny"), "{denied:#}");
    assert!(
        denied["user_message"].as_str().unwrap().starts_with("Held for approval"),
        "{denied:#}"
    );
}
