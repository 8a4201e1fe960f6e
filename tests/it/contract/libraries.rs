//! The libraries for Python and TypeScript guard tools, against a service that fails in many ways:
//! `sdk/cases` and `docs/guides/guard-a-tool.md`. The tests need the files that `script/features`
//! fetches.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::TestApp;

const PAGE: &str = include_str!("../../../docs/guides/guard-a-tool.md");
const TENANT: &str = "svc:tenant:cases";

/// Installed by `script/features`.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn python() -> Command {
    let mut command = Command::new(tools().join("venv/bin/python"));
    command.arg("-B").env("PYTHONPATH", root().join("sdk/python/src")).env("no_proxy", "127.0.0.1");
    command
}

/// Builds a copy of the TypeScript library, and returns its folder.
fn typescript(name: &str) -> PathBuf {
    let copy = tools().join("typescript").join(name);
    succeeds(Command::new(root().join("script/typescript")).arg(&copy));
    copy.join("sdk/typescript")
}

/// Returns the output of a program that must succeed.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let run = command.output();
    let Output { status, stdout, stderr } =
        run.unwrap_or_else(|why| panic!("{command:?}: {why}: run script/features"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {stdout}{stderr}");
    stdout.into_owned()
}

/// Runs the cases in these languages, each once.
async fn run_cases(languages: &[&str], library: Option<PathBuf>) {
    let app = TestApp::start().await;
    let mut command = python();
    let options = "--holds 1 --digests 20 --parallel 4".split(' ');
    command.arg(root().join("sdk/cases/run.py")).args(options);
    for language in languages {
        command.args(["--language", language]);
    }
    command.env("URL", app.base_url()).env("TENANT", "cases").env("OWNER_TOKEN", app.owner_token());
    command.env("APPROVER_TOKEN", app.member_token(TENANT, "approver"));
    if let Some(library) = library {
        command.env("TOOL_MJS", library.with_file_name("cases").join("tool.mjs"));
    }
    tokio::task::spawn_blocking(move || succeeds(&mut command)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_tool_runs_only_with_a_permission() {
    run_cases(&["python", "python-sync"], None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typescript_tool_runs_only_with_a_permission() {
    let library = tokio::task::spawn_blocking(|| typescript("cases")).await.unwrap();
    run_cases(&["typescript"], Some(library)).await;
}

/// Returns the page's program in this language.
fn program(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// Runs a program of the page while a person approves its held call, and compares its output.
async fn follow(mut command: Command) {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let folder = tempfile::tempdir().unwrap();
    let jwks = folder.path().join("jwks.json");
    fs::write(&jwks, app.app.keys.jwks().as_bytes()).unwrap();
    command
        .env("AGENT_AUTHORITY_URL", app.base_url())
        .env("AGENT_AUTHORITY_API_KEY", &demo.api_key);
    command
        .env("AGENT_AUTHORITY_SUBJECT", "svc:agent:acme:invoice-bot")
        .env("AGENT_AUTHORITY_JWKS", jwks);
    let run = tokio::task::spawn_blocking(move || succeeds(&mut command));
    let approver = app.person("svc:tenant:acme", "approver", "approver@acme.example");
    let wait = timeout(Duration::from_secs(60), async {
        loop {
            let (_, listed) = approver.get("/api/v1/app/approvals?state=pending").await;
            if let Some(id) = listed["approvals"][0]["id"].as_str() {
                break id.to_owned();
            }
            sleep(Duration::from_millis(100)).await;
        }
    });
    let id = wait.await.expect("no approval request of the tool");
    let path = format!("/api/v1/app/approvals/{id}/approve");
    let (status, answer) = approver.post(&path, json!({})).await;
    assert_eq!(status, 200, "{answer:#}");
    let printed = run.await.unwrap();
    let is_shown = |line: &str| PAGE.contains(&format!("    {line}\n"));
    let (count, shown) = (printed.lines().count(), printed.lines().all(is_shown));
    assert!(count == 3 && shown, "the page does not show\n{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_program_of_the_guide_works() {
    let mut command = python();
    command.args(["-c", program("python")]);
    follow(command).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_program_of_the_guide_works() {
    let library = tokio::task::spawn_blocking(|| typescript("guide")).await.unwrap();
    // A file of the package can import the package by its name.
    fs::write(library.join("pay.ts"), program("ts")).unwrap();
    let build = ["pay.ts", "--format=esm", "--outfile=pay.mjs", "--log-level=warning"];
    let esbuild = tools().join("typescript/node_modules/.bin/esbuild");
    succeeds(Command::new(esbuild).args(build).current_dir(&library));
    let mut command = Command::new("node");
    command.arg("pay.mjs").current_dir(&library).env("no_proxy", "127.0.0.1");
    follow(command).await;
}
