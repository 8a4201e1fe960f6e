//! Following `docs/guides/your-own-agent.md` from an empty installation leads to decisions and to a
//! guarded tool.

use std::{
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::support::{Plain, TestApp};

const PAGE: &str = include_str!("../../../docs/guides/your-own-agent.md");
const SERVICE: &str = "http://127.0.0.1:8080";

/// Returns the page's first block in this language.
fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// Runs the page's commands, then the command `last`, which finds the program in `GUARD`.
fn follow(app: &TestApp, last: &str) -> JoinHandle<Output> {
    let commands = block("bash");
    assert!(commands.contains(SERVICE), "{commands}");
    let commands = commands.replace(SERVICE, app.base_url());
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -euo pipefail\n{commands}\n{last}")]);
    shell.env("TOKEN", app.owner_token()).env("GUARD", block("python"));
    shell.env("no_proxy", "127.0.0.1");
    tokio::task::spawn_blocking(move || shell.output().unwrap())
}

/// Returns the output of the commands.
#[track_caller]
fn printed(output: Output) -> String {
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_who_follows_the_page_is_asked_and_answers() {
    let app = TestApp::start().await;
    let printed = printed(follow(&app, "").await.unwrap());
    let answers = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let answers: Vec<Value> = answers.map(Result::unwrap).collect();
    let decisions = answers.iter().filter_map(|answer| answer["decision"].as_str());
    assert_eq!(decisions.collect::<Vec<_>>(), ["allow", "require_approval"], "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guarded_tool_runs_when_it_is_approved() {
    let app = TestApp::start().await;
    let followed = follow(&app, "echo\npython3 -c \"$GUARD\"");
    let approver = app.person("svc:tenant:example", "approver", "approver@example.example");
    // The first pending request is the page's `ask 25000`, the second is the tool's.
    let wait = timeout(Duration::from_secs(60), async {
        loop {
            let (_, listed) = approver.list_approvals("state=pending").await;
            if let Some(id) = listed["approvals"][1]["id"].as_str() {
                break id.to_owned();
            }
            sleep(Duration::from_millis(100)).await;
        }
    });
    let id = wait.await.expect("no approval request of the tool");
    let (status, answer) = approver.approve_approval(&id).await;
    assert_eq!((status, answer["approval"]["state"].text()), (200, "approved"), "{answer:#}");
    let printed = printed(followed.await.unwrap());
    let iban = "DE02120300000000202051";
    let paid = format!("paid 1200 EUR to {iban}\npaid 30000 EUR to {iban}\n");
    assert!(printed.ends_with(&paid), "{printed}");
    let (_, read) = approver.get_approval(&id).await;
    let used = read["approval"]["used_by"].as_str().unwrap();
    let (_, decision) = app.owner().get_decision(used).await;
    assert_eq!(decision["report"]["outcome"], "executed", "{decision:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_declared_tool_shows_the_arguments_of_an_adapters_call() {
    let app = TestApp::start().await;
    let (_, tool) = PAGE.split_once("```bash\nmake tools").unwrap();
    let tool = format!("make tools{}", tool.split_once("```").unwrap().0);
    let question = json!({"subject": "svc:agent:example:payment-bot", "action": "payment.execute",
        "purpose": "invoice-settlement", "context": {"amount": 30000, "currency": "EUR",
        "jurisdiction": "DE", "arguments": {"payee": "Blue Ltd", "iban": "DE02"}}});
    let ask = format!(
        "curl -sS --fail-with-body \"$AUTHORITY/api/v1/runtime/evaluate\" -H \"authorization: Bearer $KEY\" \
         -H 'content-type: application/json' -d '{question}'"
    );
    printed(follow(&app, &format!("{tool}\n{ask}")).await.unwrap());
    let approver = app.person("svc:tenant:example", "approver", "approver@example.example");
    let (_, listed) = approver.get("/api/v1/app/approvals?state=pending").await;
    let shown = listed["approvals"].as_array().unwrap().iter();
    let titles: Vec<_> = shown.filter_map(|one| one["presentation"]["title"].as_str()).collect();
    assert!(titles.contains(&"Pay 30 000.00 EUR to “Blue Ltd”"), "{titles:?}");
}
