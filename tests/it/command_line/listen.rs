//! `listen`, with deliveries from a service and from senders that are not the service.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use agent_authority::app::demo::webhook::{self, Webhook};
use authority_config::Config;
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::{Value, json};

use super::{
    reads::spawn,
    receiver::{Listening, free},
    run,
};
use crate::{
    faults::process::{Folder, Service},
    support::{Answered, Plain, TestApp, asking, http, only},
};

const VERIFIED: &str = "verified by rfc9421, standard-webhooks/v1";

/// Starts the demonstration with an endpoint at this address; returns its API key and the folder
/// that has the files for `listen`.
async fn demonstration(app: &TestApp, address: &str) -> (String, tempfile::TempDir) {
    let demo = app.demo().await;
    let folder = tempfile::tempdir().unwrap();
    seed(app, address, &folder).await;
    (demo.api_key, folder)
}

async fn seed(app: &TestApp, address: &str, folder: &tempfile::TempDir) {
    let mut config = Config { data_dir: folder.path().to_owned(), ..Config::default() };
    config.listen.main = app.base_url().strip_prefix("http://").unwrap().parse().unwrap();
    let (url, token) = (format!("http://{address}/"), app.app.service_token().unwrap());
    webhook::seed_at(&url, &app.app.entry.router, &token, &config).await.unwrap();
}

async fn hold(app: &TestApp, api_key: &str) -> String {
    let (status, held) = app.client(api_key).evaluate(asking(25_000.0, "DE")).await;
    assert_eq!((status, held["decision"].text()), (200, "require_approval"), "{held:#}");
    held["approval_id"].as_str().unwrap().to_owned()
}

/// Returns the first recorded attempt to deliver to this endpoint.
async fn first_attempt(app: &TestApp, endpoint_id: &str) -> Value {
    for _ in 0..200 {
        let attempt = app.owner().list_webhook_deliveries(endpoint_id, "").await.1["deliveries"][0]
            ["attempts"][0]
            .clone();
        if attempt.is_object() {
            return attempt;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no attempt at {endpoint_id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nothing_given_it_verifies_the_demonstrations_events() {
    let app = TestApp::start().await;
    let address = free();
    let (api_key, folder) = demonstration(&app, &address).await;
    let at = ["--listen", &address, "--data-dir", folder.path().to_str().unwrap()];
    // `listen` does not run yet: the event arrives with the second attempt.
    let approval = hold(&app, &api_key).await;
    let id = Webhook::read(folder.path()).unwrap().endpoint_id;
    assert_eq!(first_attempt(&app, &id).await["error_class"], "connect");
    let listening = Listening::start(&at);
    let line = listening.line("svc.decision.requires_approval");
    let words: Vec<_> = line.split("  ").collect();
    let [time, kind, event_id, sequence, subject, verdict] = words[..] else { panic!("{line}") };
    assert!(time.ends_with('Z') && event_id.starts_with("svc:event:"), "{line}");
    assert_eq!((kind, verdict), ("svc.decision.requires_approval", VERIFIED));
    assert!(sequence.parse::<u64>().is_ok() && subject.starts_with("svc:"), "{line}");
    assert_eq!(listening.stop(), Vec::<String>::new());

    // `--json` prints the envelope as it was sent.
    let listening = Listening::start(&[&at[..], &["--json"]].concat());
    let approver = app.person("svc:tenant:acme", "approver", "approver@acme.example");
    assert_eq!(approver.approve_approval(&approval).await.0, 200);
    let line = listening.line("svc.decision.approved");
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["tenant_id"], "svc:tenant:acme");
    assert_eq!(serde_json_canonicalizer::to_string(&event).unwrap(), line);
    listening.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_it_asks_for_the_new_secret() {
    let app = TestApp::start().await;
    let address = free();
    let (api_key, folder) = demonstration(&app, &address).await;
    let id = Webhook::read(folder.path()).unwrap().endpoint_id;
    let path = format!("/api/v1/webhook-endpoints/{id}:rotate-secret");
    let rotated = app.owner().post(&path, only("overlap_seconds", 0)).await.assert_status(200);
    let at = ["--listen", &address, "--data-dir", folder.path().to_str().unwrap()];
    let listening = Listening::start(&[&at[..], &["--accept", "standard-webhooks/v1"]].concat());
    hold(&app, &api_key).await;
    let line = listening.line("svc.decision.requires_approval");
    assert!(
        line.ends_with("if the endpoint's secret was rotated, give the new one with --secret"),
        "{line}"
    );
    listening.stop();
    let secret = rotated["secret"].as_str().unwrap();
    let listening = Listening::start(&[&at[..], &["--secret", secret]].concat());
    listening.line("verified by standard-webhooks/v1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstrations_secret_is_kept_for_its_owner_and_found_again() {
    let app = TestApp::start().await;
    let (_, folder) = demonstration(&app, "127.0.0.1:9").await;
    let file = folder.path().join("demo-webhook.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let path = "/api/v1/webhook-endpoints?tenant_id=svc:tenant:acme&deleted=true";
    let endpoints = async || {
        let (_, list) = app.owner().get(path).await;
        list["webhook_endpoints"].as_array().unwrap().clone()
    };
    let made = endpoints().await.remove(0);
    assert!(made["description"].as_str().unwrap().starts_with("Development only"), "{made:#}");
    let secret = || Webhook::read(folder.path()).map(|webhook| webhook.secret);
    let first = secret().unwrap();
    seed(&app, "127.0.0.1:9", &folder).await;
    assert_eq!((secret(), endpoints().await.len()), (Some(first.clone()), 1));

    // If the file with the secret is lost, a new secret replaces it. A deleted endpoint is not
    // created again.
    fs::remove_file(&file).unwrap();
    seed(&app, "127.0.0.1:9", &folder).await;
    assert_eq!(endpoints().await.len(), 1);
    assert_ne!(secret().unwrap(), first);
    let id = made["id"].as_str().unwrap();
    assert_eq!(app.owner().delete_webhook_endpoint(id).await.0, 200);
    seed(&app, "127.0.0.1:9", &folder).await;
    assert_eq!((secret(), endpoints().await.len()), (None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_said_and_answered_401() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let wrong = format!("whsec_{}", STANDARD.encode([7; 32]));
    let listening = Listening::start(&["--listen", "127.0.0.1:0", "--secret", &wrong]);
    let body = json!({"tenant_id": "svc:tenant:acme", "url": listening.url()});
    let made = app.owner().create_webhook_endpoint(body).await.assert_status(201);
    hold(&app, &api_key).await;
    let line = listening.line("svc.decision.requires_approval");
    let why = "NOT VERIFIED: standard-webhooks/v1: the signature does not match the request";
    assert!(line.contains(why) && !line.contains("whsec_"), "{line}");
    let attempt = first_attempt(&app, made["webhook_endpoint"]["id"].as_str().unwrap()).await;
    assert_eq!((attempt["status"].number(), attempt["error_class"].text()), (401, "http"));
}

/// Returns the headers of a delivery that is signed with this secret by the suite
/// `standard-webhooks/v1`.
fn signed(secret: &[u8], body: &str) -> Vec<(&'static str, String)> {
    let timestamp = Clock::default().now().timestamp().to_string();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let code = hmac::sign(&key, format!("svc:event:1.{timestamp}.{body}").as_bytes());
    vec![
        ("webhook-id", "svc:event:1".to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(code))),
    ]
}

async fn post(to: &Listening, headers: &[(&str, String)], body: &str) -> (u16, String) {
    let request = http().post(to.url()).body(body.to_owned());
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

const BODY: &str =
    r#"{"event_id":"svc:event:1","event_type":"svc.test","tenant_id":"svc:tenant:acme"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_signed_is_verified() {
    let secret = [7; 32];
    let text = format!("whsec_{}", STANDARD.encode(secret));
    let listening = Listening::start(&["--listen", "127.0.0.1:0", "--secret", &text]);
    assert_eq!(post(&listening, &signed(&secret, BODY), BODY).await.0, 200);
    listening.line("svc:event:1  -  -  verified by standard-webhooks/v1");

    let tampered = BODY.replace("acme", "evil");
    let (status, said) = post(&listening, &signed(&secret, BODY), &tampered).await;
    assert_eq!(status, 401);
    assert!(said.starts_with("not verified: standard-webhooks/v1: "), "{said}");
    listening.line("NOT VERIFIED: standard-webhooks/v1: the signature does not match the request");
    // Sends an event of another tenant, then an unsigned delivery, then a body that is not an
    // event.
    assert_eq!(post(&listening, &signed(&secret, &tampered), &tampered).await.0, 401);
    listening.line("NOT VERIFIED: standard-webhooks/v1: the event belongs to another tenant");
    assert_eq!(post(&listening, &[], BODY).await.0, 401);
    listening.line("NOT VERIFIED: no accepted suite has signed the delivery");
    assert_eq!(post(&listening, &signed(&secret, "x"), "x").await.0, 401);
    listening.line("-  -  -  -  NOT VERIFIED: standard-webhooks/v1: the body is not an event");
    assert_eq!(post(&listening, &[], &"x".repeat(70_000)).await.0, 413);
    assert_eq!(http().get(listening.url()).send().await.unwrap().status(), 405);
    listening.stop();

    // Standard output has only the bodies of verified deliveries. Everything else is on standard
    // error.
    let listening = Listening::start(&[
        "--listen",
        "127.0.0.1:0",
        "--secret",
        &text,
        "--json",
        "--status",
        "503",
    ]);
    assert_eq!(post(&listening, &[], BODY).await.0, 401);
    listening.aside("not verified: no accepted suite");
    assert_eq!(post(&listening, &signed(&secret, BODY), BODY).await.0, 503);
    assert_eq!(listening.line(""), BODY);
    assert_eq!(listening.stop(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_nobody_reads_its_lines() {
    let text = format!("whsec_{}", STANDARD.encode([7; 32]));
    let mut listening = Listening::before_head(&["--listen", "127.0.0.1:0", "--secret", &text]);
    assert_eq!(post(&listening, &[], BODY).await.0, 401);
    listening.line("NOT VERIFIED");
    // `head` has exited after its first line: writing the next line fails.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(post(&listening, &[], BODY).await.0, 401);
    assert!(listening.ends());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nothing_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let listening = Listening::start(&["--listen", "127.0.0.1:0", "--data-dir", folder]);
    listening.aside("no verification key");
    assert_eq!(post(&listening, &signed(&[7; 32], BODY), BODY).await.0, 401);
    listening.line("NOT VERIFIED: no verification key");

    // The server with the keys can't be reached.
    let listening =
        Listening::start(&["--listen", "127.0.0.1:0", "--jwks", "http://127.0.0.1:9/jwks.json"]);
    listening.aside("no keys from http://127.0.0.1:9/jwks.json");
    assert_eq!(post(&listening, &signed(&[7; 32], BODY), BODY).await.0, 401);
    listening.line("NOT VERIFIED: no accepted suite has signed the delivery");

    for (args, named) in [
        (
            [
                "--accept",
                "rfc9421",
                "--secret",
                "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ],
            "--jwks",
        ),
        (["--accept", "jwt", "--data-dir", folder], "--jwks"),
        (["--accept", "standard-webhooks/v1", "--jwks", "https://a.example/"], "--secret"),
        (["--accept", "v1a", "--data-dir", folder], "--accept"),
        (["--secret", "whsec_hush", "--data-dir", folder], "--secret"),
        (["--jwks", "http://a.example/", "--data-dir", folder], "--jwks"),
        (["--status", "100", "--data-dir", folder], "--status"),
    ] {
        let args = [&["listen", "--listen", "127.0.0.1:0"], &args[..]].concat();
        let (code, printed, told) = run(&args, &[]);
        assert_eq!((code, printed.as_str()), (2, ""), "{args:?}: {told}");
        assert!(told.contains(named), "{args:?}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_development_server_has_the_endpoint_and_is_quiet_while_nobody_listens() {
    let folder = Folder::new("listen");
    let service = Service::start(&folder);
    let listen = service.client.base.strip_prefix("http://").unwrap();
    let (status, _) = service.client.evaluate(asking(25_000.0, "DE")).await;
    assert_eq!(status, 200);
    let kept = Webhook::read(folder.path()).unwrap();
    assert_eq!(kept.url, "http://127.0.0.1:4000/");
    let typed = |typed: &str| -> Vec<String> {
        let folder = folder.path().to_str().unwrap();
        let at = ["--listen", listen, "--data-dir", folder, "--json"];
        typed.split(' ').chain(at).map(str::to_owned).collect()
    };
    let (code, printed, told) = spawn(typed("webhooks"), Vec::new()).await;
    assert_eq!(code, 0, "{told}");
    let list: Value = serde_json::from_str(&printed).unwrap();
    let endpoint = &list["webhook_endpoints"][0];
    assert_eq!((&endpoint["url"], endpoint["state"].text()), (&json!(kept.url), "active"));
    // Waits for the first two attempts. They may reach another process at the endpoint's address.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let log = service.logged();
    let noise = ["webhook", "deliver", "endpoint"].iter().any(|word| log.contains(word));
    assert!(!noise, "{log}");
}
