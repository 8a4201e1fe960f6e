//! `mcp wrap` in front of an MCP server from a package registry, which `script/features` installs.

mod client;
mod everything;
mod guide;
mod sdk;
mod stateless;
mod world;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::TestApp;

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:dev";
const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-authority");

/// The program of `@modelcontextprotocol/server-everything`.
fn everything() -> String {
    feature("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A program that `script/features` installs.
fn feature(name: &str) -> String {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("features").join(name);
    assert!(program.exists(), "{}: run script/features", program.display());
    program.display().to_string()
}

/// The text of a result of `tools/call`, and whether it is an error.
#[track_caller]
fn told(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {answer:#}"));
    (text.to_owned(), result["isError"] == true)
}

/// Approves the pending request.
async fn approved(app: &TestApp) {
    let approver = app.person(TENANT, "approver", "approver@acme.example");
    let (_, listed) = approver.get("/api/v1/app/approvals?state=pending").await;
    let id = listed["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed:#}"));
    let path = format!("/api/v1/app/approvals/{id}/approve");
    let (status, answer) = approver.post(&path, json!({})).await;
    assert_eq!((status, &answer["approval"]["state"]), (200, &json!("approved")), "{answer:#}");
}
