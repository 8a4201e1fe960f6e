//! `mcp wrap` in front of an MCP server from a package registry, which `script/features` installs.

mod client;
mod everything;
mod guide;

use std::path::PathBuf;

use serde_json::Value;

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:dev";
const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-authority");

/// The program of `@modelcontextprotocol/server-everything`.
fn everything() -> String {
    let features = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("features/node_modules");
    let program = features.join("@modelcontextprotocol/server-everything/dist/index.js");
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
