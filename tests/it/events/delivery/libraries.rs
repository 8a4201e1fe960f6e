//! Live deliveries, verified by the receiver libraries for Python and TypeScript. The tests need
//! the files that `script/features` fetches.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::{Endpoint, Receiver, World};

const PYTHON: &str = "\
import json, sys
from agent_authority import WebhookError, verify_webhook
def judged(case):
    try:
        verify_webhook(case['body'].encode(), case['headers'], **case['options'])
        return 'valid'
    except WebhookError as error:
        return error.code
print(json.dumps([judged(case) for case in json.load(sys.stdin)]))
";

const TYPESCRIPT: &str = "\
import { readFileSync } from 'node:fs';
const { verifyWebhook } = await import(process.argv[1] + '/dist/index.js');
const judged = ({ body, headers, options }) => verifyWebhook(new TextEncoder().encode(body), headers, options)
  .then(() => 'valid', (error) => error.code ?? String(error));
console.log(JSON.stringify(await Promise.all(JSON.parse(readFileSync(0, 'utf8')).map(judged))));
";

pub(super) fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features")
}

/// Returns the program's verdict on each case.
#[track_caller]
pub(super) fn judged(command: &mut Command, cases: &Value) -> Value {
    let run = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut run = run.unwrap_or_else(|why| panic!("{command:?}: {why}: run script/features"));
    run.stdin.take().unwrap().write_all(cases.to_string().as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn live_deliveries_are_valid_for_the_libraries_in_each_suite() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let rotated = Endpoint { rotated: true, ..Endpoint::at(format!("{}/hooks", receiver.base)) };
    let made = world.endpoint(rotated).await;
    world.events(2).await;
    let received = receiver.wait_for(2).await;
    let jwks: Value = serde_json::from_str(&world.app.app.keys.jwks()).unwrap();
    let now = Clock::default().now().timestamp();
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for one in &received {
        let body = String::from_utf8(one.body.clone()).unwrap();
        for suite in ["standard-webhooks/v1", "rfc9421", "jwt"] {
            let options = |url: &str, secret: &str| {
                json!({"jwks": jwks, "secrets": [secret], "accept": [suite], "url": url,
                       "tenant_id": world.tenant_id, "now": now})
            };
            let mut case = |body: &str, options: Value, verdict: &str| {
                cases.push(json!({"body": body, "headers": one.pairs(), "options": options}));
                expected.push(verdict.to_owned());
            };
            case(&body, options(&made.url, &made.secrets[0]), "valid");
            case(&body, options(&made.url, &made.secrets[1]), "valid");
            let verdict = if suite == "standard-webhooks/v1" { "signature" } else { "digest" };
            case(&format!("{body} "), options(&made.url, &made.secrets[0]), verdict);
        }
    }
    let (cases, expected) = (json!(cases), json!(expected));
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk");
    let mut python = Command::new(tools().join("venv/bin/python"));
    python.args(["-B", "-c", PYTHON]).env("PYTHONPATH", sdk.join("python/src"));
    assert_eq!(judged(&mut python, &cases), expected);
    // The tests in crates/webhook/tests/vectors build this library.
    let built = tools().join("typescript");
    if built.join("dist/index.js").exists() {
        let mut node = Command::new("node");
        node.args(["--input-type=module", "-e", TYPESCRIPT]).arg(&built);
        assert_eq!(judged(&mut node, &cases), expected);
    }
}
