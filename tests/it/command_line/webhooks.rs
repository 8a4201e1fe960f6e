//! `webhooks`: endpoints, failed deliveries, and the commands that recover them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    reads::{ids, owner, spawn, with_token},
    receiver::{Listening, free},
};
use crate::support::{Answered, TestApp, asking};

/// Creates an endpoint at this address that gives up a delivery after a second; returns its id and
/// secret.
async fn endpoint(app: &TestApp, address: &str) -> (String, String) {
    let body = json!({"tenant_id": "svc:tenant:acme", "url": format!("http://{address}/"),
                      "retry_policy": {"schedule_seconds": [1], "jitter": 0.0}});
    let made = app.owner().create_webhook_endpoint(body).await.assert_status(201);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["webhook_endpoint"]["id"]), text(&made["secret"]))
}

/// Makes a request that is held. Each call needs another amount, because repeated requests cause no
/// event.
async fn hold(app: &TestApp, api_key: &str, amount: f64) {
    let held = app.client(api_key).evaluate(asking(amount, "DE")).await;
    assert_eq!(held.1["decision"], "require_approval", "{:#}", held.1);
}

/// Repeats `typed` until its output contains `part`; returns the output.
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
    let app = TestApp::seeded().await;
    let (api_key, address) = (app.demo().await.api_key, free());
    let (id, secret) = endpoint(&app, &address).await;
    let (_, table, _) = owner(&app, "webhooks").await;
    assert_eq!(ids(&table), [&id]);
    let row = table.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        row[1..],
        ["svc:tenant:acme", "active", "-", "-", "-", &format!("http://{address}/"), "0", "-"],
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
    assert!(told.contains("delivered: false") && told.contains("error_class: connect"), "{told}");
    assert!(told.contains("not delivered: no connection: nothing listens there"), "{told}");

    let listening = Listening::start(&at);
    let (code, printed, told) = owner(&app, &format!("webhooks redrive --all-dead {id}")).await;
    assert_eq!((code, printed, told.as_str()), (0, format!("{delivery}\n"), ""));
    let line = listening.line("svc.decision.requires_approval");
    assert!(line.ends_with("verified by standard-webhooks/v1"), "{line}");
    wait_for(&app, &format!("webhooks deliveries {id} --state delivered"), &delivery).await;
    let (_, printed, _) = owner(&app, &format!("webhooks redrive --all-dead {id} --json")).await;
    assert_eq!(printed, "{\"redriven\":[]}\n");
    let nothing = owner(&app, &format!("webhooks redrive --all-dead {id}")).await;
    let told = "no dead deliveries to redrive\n".to_owned();
    assert_eq!(nothing, (0, String::new(), told));
    // Only dead deliveries can be redriven. The error states how many were redriven before it
    // occurred.
    let (code, printed, told) = owner(&app, &format!("webhooks redrive {delivery}")).await;
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(told.contains(&format!("{delivery} was not redriven; 0 before it were")), "{told}");

    let (code, shown, told) = owner(&app, &format!("webhooks test {id}")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(shown.starts_with("delivered: true\nstatus: 200\n"), "{shown}");
    listening.line("svc.test");

    // Replays all events of the last hour. The list then shows the replay.
    let typed = format!("webhooks replay {id} --since -1h --only all");
    let (code, replay, told) = owner(&app, &typed).await;
    assert_eq!((code, told.as_str()), (0, ""), "{replay}");
    listening.line("svc.decision.requires_approval");
    let table = wait_for(&app, &format!("webhooks replays {id}"), replay.trim()).await;
    assert!(table.contains("all"), "{table}");
    let refused = owner(&app, &format!("webhooks replay {id} --since yesterday")).await;
    assert!(refused.0 == 2 && refused.2.contains("--since"), "{}", refused.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_endpoint_says_why_and_is_enabled() {
    let app = TestApp::seeded().await;
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
    // This request is held while the endpoint is disabled.
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

#[tokio::test(flavor = "multi_thread")]
async fn what_never_answered_says_what_happened() {
    let app = TestApp::seeded().await;
    let (api_key, address) = (app.demo().await.api_key, free());
    let (id, _) = endpoint(&app, &address).await;
    hold(&app, &api_key, 20_000.0).await;
    let table =
        wait_for(&app, &format!("webhooks deliveries {id} --state dead"), "Z connect").await;
    assert!(table.contains("Z connect: no connection: nothing listens there"), "{table}");
}

/// The commands use the path of the API that the credential is permitted to call.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_admin_and_an_api_key_have_the_same_commands() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let (id, secret) = endpoint(&app, &free()).await;
    let body = json!({"tenant_id": "svc:tenant:acme", "url": "https://hooks.example.com/"});
    app.owner().create_webhook_endpoint(body).await;
    let admin = app.member_token("svc:tenant:acme", "admin");
    let key = app.api_key("svc:tenant:acme", &["webhooks:write"]).await;
    for token in [&admin, &key] {
        let (code, table, told) = with_token(&app, token, "webhooks").await;
        assert_eq!((code, told.as_str()), (0, ""));
        assert_eq!(ids(&table).len(), 2, "{table}");
        assert!(!table.contains("TENANT_ID"), "{table}");
        for typed in [
            "webhooks list --tenant acme".to_owned(),
            format!("webhooks show {id}"),
            format!("webhooks deliveries {id}"),
            format!("webhooks redrive --all-dead {id}"),
        ] {
            let (code, printed, told) = with_token(&app, token, &typed).await;
            assert_eq!(code, 0, "{typed}: {told}");
            assert!(!printed.contains(&secret), "{printed}");
        }
        let (_, _, told) = with_token(&app, token, &format!("webhooks test {id}")).await;
        assert!(told.contains("delivered: false"), "{told}");
        let (_, _, told) = with_token(&app, token, &format!("webhooks enable {id}")).await;
        assert!(told.contains("only a paused or disabled one is enabled"), "{told}");
        let none = "svc:delivery:0198c0ffee017c4f8a2d5b6e7f809a1b";
        let (_, _, told) = with_token(&app, token, &format!("webhooks redrive {none}")).await;
        assert!(told.contains("not_found"), "{told}");
    }
    // A caller who lacks the permission gets the service's error.
    let viewer = app.member_token("svc:tenant:acme", "viewer");
    let (code, _, told) = with_token(&app, &viewer, "webhooks").await;
    assert_eq!(code, 1);
    assert!(told.starts_with("error: forbidden: this operation is not open"), "{told}");
    let (_, _, told) =
        with_token(&app, &app.api_key("svc:tenant:acme", &["runtime:read"]).await, "webhooks")
            .await;
    assert!(told.contains("the API key lacks the scope `webhooks:write`"), "{told}");
    let (code, help, _) = spawn(vec!["webhooks".to_owned(), "--help".to_owned()], Vec::new()).await;
    assert_eq!(code, 0);
    assert!(help.contains("`webhooks:write`"), "{help}");
}
