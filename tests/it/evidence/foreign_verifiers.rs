//! Three verifiers that share no code (this program's, a Python one, a JavaScript one) agree on 40
//! valid files of a live service and on 40 tampered files. They verify with the log's key or with
//! the JWKS alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use authority_evidence::verify::sealed_in;
use serde_json::{Value, json};

use super::{asking, bundle, decided, sealed, sealing};
use crate::support::{Client, MINT_REPLAY_PROOF, Members, new_tool};

/// Installed by `script/features`.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features")
}

fn python(arguments: &[&str]) -> Output {
    let tools = tools();
    let run =
        Command::new(tools.join("venv/bin/python")).args(arguments).current_dir(&tools).output();
    run.unwrap_or_else(|why| panic!("{}: {why}: run script/features", tools.display()))
}

/// Runs this program's own verifier; returns its exit code and its output.
fn own(file: &Path, jwks: &Path, log_key: Option<&str>) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-authority"));
    command.arg("verify").arg(file).arg("--jwks").arg(jwks);
    if let Some(log_key) = log_key {
        command.args(["--checkpoint-key", log_key]);
    }
    let run = command.output().unwrap();
    (run.status.code().unwrap(), String::from_utf8(run.stdout).unwrap().trim().to_owned())
}

async fn good(client: &Client, folder: &Path) -> (Vec<String>, String) {
    let mut files = Vec::new();
    let mut keep = |name: String, text: &str| {
        fs::write(folder.join(&name), text).unwrap();
        files.push(name);
    };
    let mut log_key = String::new();
    for number in 0..14_u8 {
        let place = if number % 3 == 2 { "US" } else { "DE" };
        let id = decided(client, asking(f64::from(number) * 2000.5, place)).await;
        keep(format!("pack-{number:02}.json"), &sealed(client, &id).await);
        let bundle = bundle(client, &id).await;
        assert!(sealed_in(bundle.as_bytes()).unwrap().decide_again().is_ok());
        log_key =
            serde_json::from_str::<Value>(&bundle).unwrap()["log_key"].as_str().unwrap().into();
        keep(format!("bundle-{number:02}.json"), &bundle);
        if number < 12 {
            let mode = if number % 2 == 0 { "historical_state_snapshot" } else { "current_state" };
            let body = json!({"decision_id": id, "mode": mode});
            let (status, proof) = client.text("POST", MINT_REPLAY_PROOF, Some(body)).await;
            assert_eq!(status, 200, "{proof}");
            keep(format!("proof-{number:02}.json"), &proof);
        }
    }
    (files, log_key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_verifiers_agree() {
    let (app, client) = sealing().await;
    let schema = json!({"type": "object", "properties": {"amount": {"minimum": 0.5}}, "required": ["amount"]});
    let tool = new_tool("wires", "wire()", &["payment.execute"]).with("input_schema", &schema);
    assert_eq!(app.owner().create_tool(tool).await.0, 201);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (good, log_key) = good(&client, folder).await;
    assert_eq!(good.len(), 40);
    let jwks = folder.join("jwks.json");
    fs::write(&jwks, client.text("GET", "/.well-known/jwks.json", None).await.1).unwrap();
    let case = |file: &str, exit: i32| json!({"file": file, "exit": exit, "jwks": "jwks.json", "checkpoint_key": log_key});
    let mut cases = Vec::new();
    for file in &good {
        let valid = (0, "valid".to_owned());
        assert_eq!(own(&folder.join(file), &jwks, Some(&log_key)), valid, "{file}");
        cases.push(case(file, 0));
        // The published key set also contains the log's key.
        assert_eq!(own(&folder.join(file), &jwks, None), valid, "{file}");
        cases.push(json!({"file": file, "exit": 0, "jwks": "jwks.json", "output": "valid",
                          "require_trust": true}));
    }
    for (from, count) in [("pack-03.json", "14"), ("bundle-02.json", "14"), ("proof-01.json", "12")]
    {
        let file = folder.join(from);
        let prefix = format!("tampered-{}", &from[..4]);
        let place = folder.to_str().unwrap();
        let made = python(&["sample.py", file.to_str().unwrap(), count, place, &prefix]);
        let names = String::from_utf8(made.stdout).unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for line in names.lines() {
            let (file, what) = line.split_once('\t').unwrap();
            let code = own(&folder.join(file), &jwks, Some(&log_key)).0;
            let by_jwks = own(&folder.join(file), &jwks, None).0;
            assert_eq!(by_jwks, code, "{what}");
            cases.push(json!({"file": file, "exit": code, "jwks": "jwks.json"}));
            assert!(code == 1 || code == 2, "{what}: {code}");
            cases.push(case(file, code));
        }
    }
    // A bundle also contains keys, but can't vouch for itself.
    let bundle = good.iter().find(|file| file.starts_with("bundle")).unwrap();
    assert_eq!(own(&folder.join(bundle), &folder.join(bundle), None).0, 2);
    cases.push(json!({"file": bundle, "exit": 2, "jwks": bundle}));
    assert_eq!(cases.len(), 161);
    fs::write(folder.join("manifest.json"), Value::from(cases).to_string()).unwrap();
    let checked = python(&["check.py", folder.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.contains("161 files, 0 wrong"), "{said}");
}
