//! Following `docs/operations/production.md` from an empty installation leads to decisions.

use std::process::Command;

use serde_json::Value;

use crate::support::TestApp;

const PAGE: &str = include_str!("../../../docs/operations/production.md");
const SERVICE: &str = "https://authority.example.org";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_who_follows_the_page_is_asked_and_answers() {
    let app = TestApp::start().await;
    let block = PAGE.split("```bash\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(block.contains(SERVICE), "{block}");
    let script = format!("set -euo pipefail\n{}", block.replace(SERVICE, app.base_url()));
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("TOKEN", app.owner_token()).env("no_proxy", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    let (told, problems) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{problems}");
    let answers = serde_json::Deserializer::from_str(&told).into_iter::<Value>();
    let answers: Vec<Value> = answers.map(Result::unwrap).collect();
    let decisions = answers.iter().filter_map(|answer| answer["decision"].as_str());
    assert_eq!(decisions.collect::<Vec<_>>(), ["allow", "require_approval"], "{told}");
}
