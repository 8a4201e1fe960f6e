//! The TypeScript library against a live service. The test needs the programs that `script/features`
//! fetches.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::TestApp;

/// Builds a copy of the library, to keep its sources free of generated files.
fn built() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("features/typescript/guard");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("script/typescript");
    let run = Command::new(build).arg(&copy).output();
    succeeds(&run.unwrap_or_else(|why| panic!("{why}: run script/features")));
    copy.join("sdk/typescript")
}

#[track_caller]
fn succeeds(run: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_library_guards_actions() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let key = app.api_key("svc:tenant:acme", &["runtime:write", "runtime:read"]).await;
    let (owner, url) = (app.owner_token().to_owned(), app.base_url().to_owned());
    let token = |role: &str| app.member_token("svc:tenant:acme", role);
    let (admin, approver) = (token("admin"), token("approver"));
    let ran = tokio::task::spawn_blocking(move || {
        let mut command = Command::new("node");
        command.args(["--test", "test/guard.binary.test.js"]).current_dir(built());
        command.env("AGENT_AUTHORITY_URL", url).env("AGENT_AUTHORITY_API_KEY", key);
        command.env("OWNER", owner).env("ADMIN", admin).env("APPROVER", approver);
        command.env("no_proxy", "127.0.0.1").output()
    });
    succeeds(&ran.await.unwrap().unwrap());
}
