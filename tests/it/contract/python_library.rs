//! The Python library against a live service. The test needs the programs that `script/features`
//! fetches.

use std::{path::Path, process::Command};

use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_library_guards_actions() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let key = app.api_key("svc:tenant:acme", &["runtime:write", "runtime:read"]).await;
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("features/venv/bin/python");
    let mut command = Command::new(venv);
    command
        .args(["-B", "-W", "ignore", "-m", "unittest", "tests/test_live.py"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python"))
        .env("PYTHONPATH", "src")
        .env("AGENT_AUTHORITY_URL", app.base_url())
        .env("AGENT_AUTHORITY_API_KEY", key)
        .env("OWNER", app.owner_token())
        .env("APPROVER", app.member_token("svc:tenant:acme", "approver"))
        .env("no_proxy", "127.0.0.1");
    let ran = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let output = ran.unwrap_or_else(|why| panic!("{why}: run script/features"));
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !shown.contains("skipped"), "{shown}");
}
