//! Clients that four generators make from the service's document: each creates, decides, approves
//! and reads a stream. The tests need the programs that `script/features` fetches.
//!
//! The whole document is generated, since one unusable operation breaks a whole Python package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::support::TestApp;

/// Installed by `script/features`.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features")
}

/// A service, and a folder for a client of it.
struct World {
    app: TestApp,
    folder: TempDir,
    key: String,
}

impl World {
    async fn new() -> Self {
        let app = TestApp::seeded().await;
        app.demo().await;
        let key = app.api_key("svc:tenant:acme", &["runtime:write", "runtime:read"]).await;
        let (status, document) = app.client("").text("GET", "/openapi", None).await;
        assert_eq!(status, 200);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("openapi.json"), document).unwrap();
        Self { app, folder, key }
    }

    /// Runs a program in the folder, and returns its output.
    async fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(tools().join(program));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("URL", self.app.base_url())
            .env("OWNER", self.app.owner_token())
            .env("APPROVER", self.app.member_token("svc:tenant:acme", "approver"))
            .env("KEY", &self.key)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("no_proxy", "127.0.0.1");
        let shown = format!("{command:?}");
        let ran = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
        let Output { status, stdout, stderr } =
            ran.unwrap_or_else(|why| panic!("{shown}: {why}: run script/features"));
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{shown}: {stdout}{stderr}");
        stdout.into_owned()
    }

    /// Copies a program that uses the client.
    fn copy(&self, program: &str, to: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/features/clients");
        fs::copy(from.join(program), self.folder.path().join(to)).unwrap();
    }

    /// Compiles `main.ts` with the client in `client/`, and runs it.
    async fn typescript(&self, program: &str) -> String {
        self.copy(program, "main.ts");
        let types = tools().join("node_modules/@types").display().to_string();
        let options = "--strict --target es2022 --module commonjs --moduleResolution node10 --skipLibCheck \
                       --lib es2022,dom,dom.iterable --types node --outDir out main.ts --typeRoots";
        let options: Vec<&str> = options.split(' ').chain([types.as_str()]).collect();
        self.run("node_modules/.bin/tsc", &options).await;
        self.run("/usr/bin/env", &["node", "out/main.js"]).await
    }
}

/// The output of each program.
const DONE: &str = "\
created agent
decided require_approval approval_threshold_breach
approved approved
streamed require_approval approved
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_of_openapi_generator_works() {
    let world = World::new().await;
    let args = ["generate", "-i", "openapi.json", "-g", "python", "-o", "."];
    world.run("venv/bin/openapi-generator-cli", &args).await;
    world.copy("openapi_generator.py", "main.py");
    assert_eq!(world.run("venv/bin/python", &["main.py"]).await, DONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_client_of_openapi_generator_works() {
    let world = World::new().await;
    let args = ["generate", "-i", "openapi.json", "-g", "typescript-fetch", "-o", "client"];
    world.run("venv/bin/openapi-generator-cli", &args).await;
    assert_eq!(world.typescript("openapi_generator.ts").await, DONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_openapi_python_client_works() {
    let world = World::new().await;
    let output = "agent_authority_client";
    let args = ["generate", "--path", "openapi.json", "--output-path", output, "--meta", "none"];
    world.run("venv/bin/openapi-python-client", &args).await;
    world.run("venv/bin/python", &["-m", "compileall", "-q", output]).await;
    world.copy("openapi_python_client.py", "main.py");
    assert_eq!(world.run("venv/bin/python", &["main.py"]).await, DONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_hey_api_works() {
    let world = World::new().await;
    let args = ["-i", "./openapi.json", "-o", "client", "-c", "@hey-api/client-fetch"];
    world.run("node_modules/.bin/openapi-ts", &args).await;
    assert_eq!(world.typescript("hey_api.ts").await, DONE);
}
