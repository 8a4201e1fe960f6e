//! Whatever fails is a 200 with a denial.

use agent_authority::transport::Surfaces;
use reqwest::{RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};

use super::{CLAUDE, CURSOR, asked, started};
use crate::support::{
    Answered, Client, Members, Plain, TestApp,
    coder::{AGENT, PURPOSE, TENANT, call, denial, key},
    new_principal, nothing, only,
};

const JSON: &str = "application/json";

fn request(client: &Client, path: &str, kind: &str, body: impl Into<String>) -> RequestBuilder {
    let request = client.http.post(format!("{}{path}", client.base));
    request.bearer_auth(&client.token).header("content-type", kind).body(body.into())
}

/// Sends a request. Returns the reason of the denial, and the headers.
async fn denied(request: RequestBuilder) -> (String, HeaderMap) {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], JSON);
    let headers = answer.headers().clone();
    let answer: Value = answer.json().await.unwrap();
    let denial = denial(&answer);
    (denial.unwrap_or_else(|| panic!("no denial: {answer:#}")), headers)
}

fn read() -> String {
    call("Read", &only("file_path", "a")).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_a_valid_credential_learns_nothing() {
    let (app, client) = started().await;
    let expired = app.token(&json!({"sub": "x", "exp": 1}));
    for token in ["", "rubbish", "svc_x", "a.b.c", &expired] {
        let client = Client { token: token.to_owned(), ..client.clone() };
        for body in [read(), "{".to_owned()] {
            let (reason, headers) = denied(request(&client, CLAUDE, JSON, body)).await;
            let id = headers["x-request-id"].to_str().unwrap();
            assert_eq!(reason, format!("Not permitted. (request {id})"));
            assert!(!headers.contains_key("www-authenticate"), "{headers:?}");
        }
    }
    let without = client.http.post(format!("{}{CLAUDE}", client.base)).body(read());
    assert!(denied(without).await.0.starts_with("Not permitted. "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_does_not_name_one_agent_is_denied() {
    let (app, client) = started().await;
    let other = new_principal("agent", "Other").with("tenant_id", TENANT).with("name", "other");
    assert_eq!(app.owner().create_principal(other).await.0, 201);
    let mut keys = vec![app.owner_token().to_owned(), app.member_token(TENANT, "admin")];
    keys.push(app.api_key(TENANT, &["runtime:read"]).await);
    keys.push(app.api_key(TENANT, &["runtime:write"]).await);
    keys.push(key(&app, &json!([AGENT, "svc:agent:example:other"])).await);
    for (place, token) in keys.into_iter().enumerate() {
        let client = Client { token, ..client.clone() };
        let (reason, _) = denied(request(&client, CLAUDE, JSON, read())).await;
        assert!(reason.starts_with("Not permitted, because it was not decided: "), "{reason}");
        assert_eq!(reason.contains("bound to exactly one agent"), place > 2, "{place}: {reason}");
    }
    // Another agent than the key's cannot be named.
    assert_eq!(asked(&client, "Read", only("file_path", "a")).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_read_is_denied() {
    let (_app, client) = started().await;
    let without = |member: &str| {
        let mut event = call("Read", &only("file_path", "a"));
        event.as_object_mut().unwrap().remove(member);
        event.to_string()
    };
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let no_purpose = "/v1/hooks/claude-code";
    for (path, kind, body) in [
        (CLAUDE, JSON, String::new()),
        (CLAUDE, JSON, "{".to_owned()),
        (CLAUDE, JSON, "[]".to_owned()),
        (CLAUDE, JSON, "{}".to_owned()),
        (CLAUDE, JSON, read() + "{}"),
        (CLAUDE, JSON, read().replace("\"session_id\"", "\"tool_name\":\"x\",\"session_id\"")),
        (CLAUDE, JSON, without("hook_event_name")),
        (CLAUDE, JSON, without("tool_name")),
        (CLAUDE, JSON, without("tool_input")),
        (CLAUDE, JSON, read().replace("PreToolUse", "PostToolUse")),
        (CLAUDE, JSON, read().replace("\"a\"", &deep)),
        (CLAUDE, JSON, read().replace("\"a\"", "\"a\\u0000\"")),
        (CLAUDE, JSON, read().replace("\"a\"", "1e400")),
        (CLAUDE, JSON, call("Write", &only("content", "x".repeat(65 << 10))).to_string()),
        (CLAUDE, JSON, call("Write", &only("content", "x".repeat(300 << 10))).to_string()),
        (CLAUDE, "text/plain", read()),
        (CLAUDE, "", read()),
        (CLAUDE, "application/json; charset=utf-16", read()),
        (CLAUDE, "application/grpc", read()),
        (CLAUDE, "application/grpc-web+proto", read()),
        (no_purpose, JSON, read()),
        ("/v1/hooks/claude-code?purpose=unknown", JSON, read()),
        ("/v1/hooks/claude-code?purpose=a&purpose=b", JSON, read()),
        ("/v1/hooks/claude-code?purpos=software-development", JSON, read()),
        ("/v1/hooks/claude-code/?purpose=software-development", JSON, read()),
        ("/v1/hooks/claude-code:x?purpose=software-development", JSON, read()),
    ] {
        let (reason, _) = denied(request(&client, path, kind, body.clone())).await;
        assert!(!reason.is_empty(), "{path} {kind}");
    }
    let coded = request(&client, CLAUDE, JSON, read()).header("content-encoding", "gzip");
    denied(coded).await;
    // A call in the form of one coding agent is none of another.
    let (status, answer) = client.post(CURSOR, call("Read", &nothing())).await;
    assert_eq!((status, answer["permission"].text()), (200, "deny"), "{answer:#}");
    // An unknown coding agent has no form.
    let path = format!("/v1/hooks/codex?purpose={PURPOSE}");
    assert_eq!(client.post(&path, call("Read", &nothing())).await.0, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_addresses_that_refuse_are_denials() {
    let (app, client) = started().await;
    let admin = Client { base: app.listening(Surfaces::ADMIN).await, ..client.clone() };
    denied(request(&admin, CLAUDE, JSON, read())).await;
    let limit = only("decisions_per_second", 1);
    assert_eq!(app.owner().update_tenant("example", limit).await.0, 200);
    let mut limited = 0;
    for _ in 0..8 {
        let answer =
            client.post(CLAUDE, call("Read", &only("file_path", "a"))).await.assert_status(200);
        limited += usize::from(denial(&answer).is_some_and(|text| text.contains("rate_limited")));
    }
    assert!(limited > 1, "{limited}");
}

/// Without its database the service cannot record a decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_cannot_be_recorded_is_a_denial() {
    let (app, client) = started().await;
    lose_decisions(&app).await;
    let (reason, _) = denied(request(&client, CLAUDE, JSON, read())).await;
    assert!(reason.contains("it was not decided"), "{reason}");
}

async fn lose_decisions(app: &TestApp) {
    app.database.run("ALTER TABLE decisions RENAME TO lost_decisions").await;
}
