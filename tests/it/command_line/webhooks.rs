//! `webhooks`: endpoints, what failed, and what helps.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    reads::{ids, owner},
    receiver::{Listening, free},
};
use crate::support::{TestApp, asking};

/// An endpoint at this address that gives up after a second; its id and its secret.
async fn endpoint(app: &TestApp, address: &str) -> (String, String) {
    let body = json!({"tenant_id": "svc:tenant:acme", "url": format!("http://{address}/"),
                      "retry_policy": {"schedule_seconds": [1], "jitter": 0.0}});
    let (status, made) = app.owner().post("/api/v1/webhook-endpoints", body).await;
    assert_eq!(status, 201, "{made:#}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["webhook_endpoint"]["id"]), text(&made["secret"]))
}

/// Another question is another request: the same one would make no event.
async fn hold(app: &TestApp, api_key: &str, amount: f64) {
    let held = app.client(api_key).post("/api/v1/runtime/evaluate", asking(amount, "DE")).await;
    assert_eq!(held.1["decision"], "require_approval", "{:#}", held.1);
}

/// The output of `typed` when it contains this.
async fn wait_for(app: &TestApp, typed: &str, part: &str) -> String {
    for _ in 0..60 {
        let (code, printed, told) = owner(app, typed).await;
        assert_eq!(code, 0, "{told}");
        if printed.contains(part) {
            return printed;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("`{typed}` does not print `{part}`");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_shown_redriven_and_arrives() {
    let app = TestApp::start().await;
    let (api_key, address) = (app.demo().await.api_key, free());
    let (id, secret) = endpoint(&app, &address).await;
    let (_, table, _) = owner(&app, "webhooks").await;
    assert_eq!(ids(&table), [&id]);
    let row = table.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        row[1..],
        ["active", "-", "-", "-", &format!("http://{address}/"), "0", "-"],
        "{table}"
    );

    let at = ["--listen", &address, "--secret", &secret];
    let failing = Listening::start(&[&at[..], &["--status", "500"]].concat());
    hold(&app, &api_key, 20_000.0).await;
    failing.line("verified by standard-webhooks/v1");
    let listed = format!("webhooks deliveries {id} --state dead");
    let table = wait_for(&app, &listed, "svc.decision.requires_approval").await;
    let delivery = ids(&table)[0].to_owned();
    assert!(table.contains("http 500"), "{table}");
    failing.stop();
    let (_, table, _) = owner(&app, "webhooks list --tenant acme").await;
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains("/  1  ") && row.ends_with("Z http 500"), "{table}");
    let (code, _, told) = owner(&app, &format!("webhooks test {id}")).await;
    assert_eq!(code, 1);
    assert!(told.contains("delivered: false") && told.contains("connect"), "{told}");

    let listening = Listening::start(&at);
    let (code, printed, told) = owner(&app, &format!("webhooks redrive --all-dead {id}")).await;
    assert_eq!((code, printed, told.as_str()), (0, format!("{delivery}\n"), ""));
    let line = listening.line("svc.decision.requires_approval");
    assert!(line.ends_with("verified by standard-webhooks/v1"), "{line}");
    wait_for(&app, &format!("webhooks deliveries {id} --state delivered"), &delivery).await;
    let (_, printed, _) = owner(&app, &format!("webhooks redrive --all-dead {id} --json")).await;
    assert_eq!(printed, "{\"redriven\":[]}\n");
    // What is not dead is not redriven, and what was before it is said.
    let (code, printed, told) = owner(&app, &format!("webhooks redrive {delivery}")).await;
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(told.contains(&format!("{delivery} is not redriven; 0 before it are")), "{told}");

    let (code, shown, told) = owner(&app, &format!("webhooks test {id}")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(shown.starts_with("delivered: true\nstatus: 200\n"), "{shown}");
    listening.line("svc.test");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_endpoint_says_why_and_is_enabled() {
    let app = TestApp::start().await;
    let (api_key, address) = (app.demo().await.api_key, free());
    let (id, secret) = endpoint(&app, &address).await;
    let (code, _, told) = owner(&app, &format!("webhooks enable {id}")).await;
    assert_eq!(code, 1);
    assert!(told.contains("is active: only a paused or disabled one is enabled"), "{told}");
    let at = ["--listen", &address, "--secret", &secret];
    let gone = Listening::start(&[&at[..], &["--status", "410"]].concat());
    hold(&app, &api_key, 20_000.0).await;
    let table = wait_for(&app, "webhooks list --state disabled", &id).await;
    assert!(table.contains("disabled") && table.contains("gone"), "{table}");
    gone.stop();
    // While it was disabled.
    hold(&app, &api_key, 30_000.0).await;
    let listening = Listening::start(&at);
    let (code, shown, told) = owner(&app, &format!("webhooks enable {id}")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(
        shown.starts_with(&format!("id: {id}\n")) && shown.contains("state: active\n"),
        "{shown}"
    );
    for _ in 0..2 {
        listening.line("svc.decision.requires_approval");
    }
    let (_, shown, _) = owner(&app, &format!("webhooks show {id}")).await;
    assert!(shown.contains("state_reason: -\n") && !shown.contains(&secret), "{shown}");
    let (code, shown, told) = owner(&app, &format!("webhooks pause {id} --reason moves")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(
        shown.contains("state: paused\n") && shown.contains("pause_reason: moves\n"),
        "{shown}"
    );
}
