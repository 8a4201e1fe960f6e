//! `snapshot push`: the snapshot that it sends, the caller that it acts for, and its errors.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
};

use authority_crypto::{Algorithm, Pair};
use serde_json::{Value, json};

use super::{reads::spawn, run};
use crate::support::{Answered, Plain, TENANT, TestApp, new_api_key, nothing};

const ANCHOR: &str = "svc:ent:acme:reality_anchor:1";

/// Creates an anchor with this source.
async fn anchor(app: &TestApp, source: Value) -> String {
    let owner = app.owner();
    let (_, people) = owner.list_principals("principal_class=human").await;
    let body = json!({
        "tenant_id": TENANT, "anchor_type": "external_source_of_truth", "display_name": "Rates",
        "authority": {"owner_entity_id": people["principals"][0]["id"]}, "source": source,
    });
    let made = owner.create_reality_anchor(body).await.assert_status(201);
    made["reality_anchor"]["id"].as_str().unwrap().to_owned()
}

/// Creates an API key that may push snapshots; returns its id and its secret.
async fn feeder(app: &TestApp) -> (String, String) {
    let (_, made) = app.owner().create_api_key(new_api_key("feeder", &["reality:write"])).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["api_key"]["id"]), text(&made["secret"]))
}

/// Runs `snapshot push` with this token.
async fn push(app: &TestApp, token: &str, args: &[&str]) -> (i32, String, String) {
    let first = ["snapshot", "push", "--url", app.base_url(), "--token", token];
    spawn(first.iter().chain(args).map(|arg| (*arg).to_owned()).collect(), Vec::new()).await
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

/// The command signs the same text that the service verifies, for each kind of key.
#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_brings_what_the_source_signed() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"rates": {"USD": 1.1512, "a/b": [1.0, "Zoë", null]}}"#;
    let content = written(folder.path(), "rates.json", text);
    let content = content.to_str().unwrap();
    let inventory = |algorithm| Pair::inventory(algorithm).unwrap();
    let pairs = [
        Pair::ed25519().unwrap(),
        inventory(Algorithm::Es256),
        inventory(Algorithm::Es384),
        inventory(Algorithm::Rs256),
    ];
    let files: Vec<_> = pairs
        .iter()
        .enumerate()
        .map(|(n, pair)| written(folder.path(), &format!("{n}.pem"), &pair.private_pem()))
        .collect();
    let mut keys: Vec<Value> = Vec::new();
    for file in &files {
        let sign = ["--sign", file.to_str().unwrap(), "--dry-run"];
        let (code, _, told) = run(
            &[&["snapshot", "push", "--anchor", ANCHOR, "--from", content][..], &sign].concat(),
            &[],
        );
        assert_eq!(code, 0, "{told}");
        keys.push(serde_json::from_str(told.split_once("`: ").unwrap().1).unwrap());
    }
    let (id, key) = feeder(&app).await;
    let anchor = anchor(&app, json!({"feeder_key_ids": [id], "jwks": keys})).await;
    let observe = ["--observe", "/rates/USD", "--observe", "/rates/a~1b", "--json"];
    let from = ["--anchor", &anchor, "--from", content, "--valid-for", "26h", "--tag", "eur"];
    for (n, file) in files.iter().enumerate() {
        let at = format!("2026-01-0{}T15:00:00.5Z", n + 1);
        let sign = ["--sign", file.to_str().unwrap(), "--sampled-at", &at, "--source-version", &at];
        let (code, made, told) = push(&app, &key, &[&from[..], &observe, &sign].concat()).await;
        assert_eq!((code, told.as_str()), (0, ""));
        let made: Value = serde_json::from_str(&made).unwrap();
        let made = &made["reality_snapshot"];
        assert_eq!(made["signed_by"], made["signature"]["kid"], "{made:#}");
        assert_eq!(made["feeder_key_id"], id.as_str());
        assert_eq!(made["sampled_at"], format!("2026-01-0{}T15:00:00.500000Z", n + 1));
        assert_eq!(made["valid_until"], format!("2026-01-0{}T17:00:00.500000Z", n + 2));
        assert_eq!(made["observations"][0], json!({"path": "/rates/USD", "value": 1.1512}));
        assert_eq!(made["tags"].texts(), ["eur"]);
    }
    // The owner's snapshots must also be signed. Pushing the same snapshot again is refused.
    let (code, _, told) = push(&app, app.owner_token(), &from).await;
    assert_eq!(code, 1);
    assert!(told.contains("signature_invalid") && told.contains("--sign"), "{told}");
    let sign = ["--sign", files[0].to_str().unwrap(), "--sampled-at", "2026-01-01T15:00:00.5Z"];
    let (code, _, told) = push(&app, &key, &[&from[..], &sign].concat()).await;
    assert_eq!(code, 1);
    assert!(told.contains("snapshot_exists") && told.contains("--sampled-at"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_brings_reference_rates_and_refusals_name_flags() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let anchor = anchor(&app, nothing()).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rates = root.join("examples/reference-rates/eurofxref-example.xml");
    let from = ["--anchor", &anchor, "--from", rates.to_str().unwrap()];
    let (code, shown, told) = push(&app, app.owner_token(), &from).await;
    assert_eq!((code, told.as_str()), (0, ""));
    for line in
        ["sampled_at: 2026-01-01T15:00:00Z", "source_version: 2026-01-01", "path: /rates/USD"]
    {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    let (_, key) = feeder(&app).await;
    let (code, _, told) = push(&app, &key, &from).await;
    assert_eq!(code, 1);
    assert!(told.contains("feeder_not_permitted") && told.contains("feeder_key_ids"), "{told}");
    let ahead = [&from[..], &["--sampled-at", "2999-01-01T00:00:00Z"]].concat();
    let (code, _, told) = push(&app, app.owner_token(), &ahead).await;
    assert_eq!(code, 1);
    assert!(told.contains("--sampled-at is more than 60 seconds ahead"), "{told}");
    let unknown = ["--anchor", ANCHOR, "--from", rates.to_str().unwrap()];
    let (code, _, told) = push(&app, app.owner_token(), &unknown).await;
    assert_eq!(code, 1);
    assert!(told.contains("--anchor `"), "{told}");
}

/// Starts a server that answers one request with `answer`; returns its address.
fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/rates", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        // The client may close the connection before it has read the response.
        let _ = stream.write_all(answer.as_bytes());
    });
    address
}

#[test]
fn what_is_fetched_has_a_limit_and_stays_on_https() {
    let body = r#"{"a": 1}"#;
    let answer = |head: &str, body: &str| {
        let length = body.len();
        answering(format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}"))
    };
    let dry = |from: &str| {
        let args = ["snapshot", "push", "--anchor", ANCHOR, "--from", from, "--dry-run", "--json"];
        run(&[&args[..], &["--observe", "/a"]].concat(), &[])
    };
    let (code, sent, told) = dry(&answer("200 OK", body));
    assert_eq!((code, told.as_str()), (0, ""));
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!((sent["tenant_id"].text(), sent["anchor_id"].text()), (TENANT, ANCHOR));
    assert_eq!(sent["observations"], json!([{"path": "/a", "value": 1}]));
    let hash = hex::encode(authority_crypto::sha256(body.as_bytes()));
    assert_eq!(sent["content_hash"], format!("sha256:{hash}"));
    for (head, body, problem) in [
        ("302 Found\r\nlocation: http://127.0.0.1:9/", "", "not https"),
        ("404 Not Found", "", "404"),
        ("200 OK", &*" ".repeat(4 * 1024 * 1024 + 1), "4 MiB"),
        ("200 OK", "EUR;1.15", "neither JSON"),
    ] {
        let (code, _, told) = dry(&answer(head, body));
        assert_eq!(code, 1, "{told}");
        assert!(told.contains("--from: ") && told.contains(problem), "{told}");
    }
}

#[test]
fn a_wrong_use_is_2_and_names_the_flag() {
    let all = ["--anchor", ANCHOR, "--from", "rates.json"];
    let cases: [(&[&str], &str); 7] = [
        (&["--anchor", TENANT, "--from", "rates.json"], "--anchor"),
        (&["--anchor", ANCHOR], "--from"),
        (&["--anchor", ANCHOR, "--from", "http://authority.example/"], "--from"),
        (&[&all[..], &["--valid-for", "0"]].concat(), "--valid-for"),
        (&[&all[..], &["--sampled-at", "yesterday"]].concat(), "--sampled-at"),
        (&[&all[..], &["--kid", "a"]].concat(), "--sign"),
        (&[&all[..], &["--sign", "/nowhere.pem"]].concat(), "--sign"),
    ];
    for (args, named) in cases {
        let (code, _, told) = run(&[&["snapshot", "push"][..], args].concat(), &[]);
        assert_eq!(code, 2, "{args:?}: {told}");
        assert!(told.contains(named), "{args:?}: {told}");
    }
    let (code, _, told) = run(&[&["snapshot", "push", "--dry-run"][..], &all].concat(), &[]);
    assert_eq!(code, 1);
    assert!(told.contains("--from: rates.json: "), "{told}");
}
