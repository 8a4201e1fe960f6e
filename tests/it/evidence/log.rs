//! The log as a monitor sees it. A log that does not continue its own past is never signed.

use std::{fs, process::Command};

use authority_evidence::log::{
    note::{Checkpoint, LogKey, SignedCheckpoint, signed},
    proof::InclusionProof,
    tree::Hash,
    verify::{verify_consistency, verify_inclusion},
};
use authority_keys::Purpose;
use base64::{Engine, engine::general_purpose::STANDARD};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{asking, check, decided, published, sealed, sealing};
use crate::support::{Answered, CHECKPOINT, Client, TestApp, Wishes, new_tenant};

pub(crate) async fn checkpoint(client: &Client) -> SignedCheckpoint {
    let (status, note) = client.text("GET", CHECKPOINT, None).await;
    assert_eq!(status, 200, "{note}");
    SignedCheckpoint::parse(&note).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_checkpoint_is_the_beginning_of_the_next() {
    let (_app, client) = sealing().await;
    assert_eq!(client.get_checkpoint("acme").await.0, 404, "no decision is sealed");
    let mut before: Option<SignedCheckpoint> = None;
    for round in 1..=7_u32 {
        let id = decided(&client, asking(f64::from(round), "DE")).await;
        let pack: Value = serde_json::from_str(&sealed(&client, &id).await).unwrap();
        let now = checkpoint(&client).await.checkpoint;
        assert_eq!(now.size, u64::from(round));
        let (_, text) = client.text("GET", "/v1/log/acme/proof?index=0", None).await;
        let proof = InclusionProof::parse(&text).unwrap();
        if round == 1 {
            let leaf = pack["log"]["leaf_hash"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let leaf: Hash = hex::decode(leaf).unwrap().try_into().unwrap();
            assert!(verify_inclusion(&leaf, 0, now.size, &proof.path, &now.root));
        }
        if let Some(before) = before.map(|note| note.checkpoint) {
            let path = format!("/v1/log/acme/consistency?from={}", before.size);
            let proof = client.get(&path).await.assert_status(200);
            let path: Vec<Hash> = proof["path"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hash| STANDARD.decode(hash.as_str().unwrap()).unwrap().try_into().unwrap())
                .collect();
            assert!(verify_consistency(before.size, &before.root, now.size, &now.root, &path));
        }
        before = Some(checkpoint(&client).await);
    }
    for path in ["proof?index=7", "consistency?from=8", "consistency?from=3&to=2", "proof?index=-1"]
    {
        assert_eq!(client.get(&format!("/v1/log/acme/{path}")).await.0, 400, "{path}");
    }
    assert_eq!(client.get_checkpoint("none").await.0, 404);
}

/// Restores the log's tables to their state at a checkpoint.
pub(crate) async fn restore(app: &TestApp, to: &SignedCheckpoint) {
    let (size, root) = (to.checkpoint.size, hex::encode(to.checkpoint.root));
    let earlier = format!(
        "SET session_replication_role = replica; \
         DELETE FROM evidence_packs WHERE log_index >= {size}; \
         DELETE FROM log_nodes WHERE first >= {size}::bigint >> level; \
         DELETE FROM log_checkpoints WHERE size > {size}; \
         UPDATE log_heads h SET size = {size}, root = '\\x{root}', checkpoint = (SELECT note FROM log_checkpoints c \
           WHERE (c.tenant_id, c.epoch, c.size) = (h.tenant_id, h.epoch, {size}))"
    );
    app.database.owner().await.batch_execute(&earlier).await.unwrap();
}

/// Without a new epoch, a database restored to an earlier day would sign different leaves at
/// indices that are already signed. So a new epoch begins. Its first leaf contains the last known
/// checkpoint of the previous epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_a_new_epoch_begins() {
    let (app, client) = sealing().await;
    let ids =
        [decided(&client, asking(1.0, "DE")).await, decided(&client, asking(2.0, "DE")).await];
    sealed(&client, &ids[0]).await;
    let first = checkpoint(&client).await;
    let later = sealed(&client, &ids[1]).await;
    restore(&app, &first).await;
    let before = epochs();
    let again = sealed(&client, &ids[1]).await;
    assert!(epochs() > before, "the metric must count the new epoch");
    let (then, now): (Value, Value) =
        (serde_json::from_str(&later).unwrap(), serde_json::from_str(&again).unwrap());
    let origin = then["log"]["origin"].as_str().unwrap();
    assert_eq!(now["log"]["origin"], format!("{origin}/2"));
    assert_eq!(now["log"]["index"], 1, "after the leaf with the checkpoint of the previous epoch");
    let keys = published(&client).await;
    assert!(check(&again, Some(&keys)).is_ok() && check(&later, Some(&keys)).is_ok());
    // The new epoch continues on this node, and on another node that has not seen the restore.
    let beside = app.beside(Wishes::default()).await;
    let more = decided(&client, asking(3.0, "DE")).await;
    let there = sealed(&beside.client(&client.token), &more).await;
    let there: Value = serde_json::from_str(&there).unwrap();
    assert_eq!(
        (&there["log"]["origin"], &there["log"]["index"]),
        (&now["log"]["origin"], &2.into())
    );
}

/// Returns the number of epochs that this process has begun.
fn epochs() -> u64 {
    let metrics = agent_authority::telemetry::Metrics::install().render();
    let line = metrics.lines().find(|line| line.starts_with("authority_log_epochs_total"));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// The published verifier key verifies the log of a pack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_logs_key_is_published() {
    use authority_evidence::{
        log::note::LogKey,
        verify::{Trust, Valid, verify},
    };
    let (app, client) = sealing().await;
    let path = "/v1/log/acme/key";
    assert_eq!(client.text("GET", path, None).await.0, 404, "no checkpoint is signed yet");
    let pack = sealed(&client, &decided(&client, asking(1.0, "DE")).await).await;
    let (status, vkey) = client.text("GET", path, None).await;
    assert_eq!(status, 200, "{vkey}");
    let keys = published(&client).await.into_iter().filter(|(kid, _)| !kid.contains("-log-"));
    let log_key = Some(LogKey::parse(&vkey).unwrap());
    let trust = Trust { keys: Some(keys.collect()), log_key };
    assert_eq!(verify(pack.as_bytes(), &trust).unwrap(), Valid::Trusted);
    let alone = Trust { log_key: None, ..trust };
    assert_eq!(verify(pack.as_bytes(), &alone).unwrap(), Valid::CheckpointUnchecked);
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    assert_eq!(stranger.text("GET", path, None).await.0, 404);
    assert_eq!(app.client("").text("GET", path, None).await.0, 401);
}

/// The node has not sealed since before the restore, but it follows the checkpoints of other nodes.
/// It therefore detects the restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_node_does_not_sign_another_past() {
    let (app, client) = sealing().await;
    let idle = app.apart(Wishes::default()).await;
    let there = idle.client(&client.token);
    let ids =
        [decided(&client, asking(1.0, "DE")).await, decided(&client, asking(2.0, "DE")).await];
    sealed(&there, &ids[0]).await;
    let first = checkpoint(&client).await;
    sealed(&client, &ids[1]).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    restore(&app, &first).await;
    let again: Value = serde_json::from_str(&sealed(&there, &ids[1]).await).unwrap();
    assert!(again["log"]["origin"].as_str().unwrap().ends_with("/log/acme/2"), "{again:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_remembers_is_its_own_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1.0, "DE")).await;
    sealed(&client, &id).await;
    let folder = app.database.folder().join("logs");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("acme"))), (0o700, 0o600));
    // Existing files and folders become private at the next start.
    for (path, wide) in [(folder.join("acme"), 0o644), (folder.clone(), 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(wide)).unwrap();
    }
    let _again = app.beside(crate::support::Wishes::default()).await;
    assert_eq!((mode(&folder), mode(&folder.join("acme"))), (0o700, 0o600));
}

/// A tenant's log that can't continue does not stop the logs of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_log_stops_no_other() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1.0, "DE")).await;
    let folder = app.database.folder().join("logs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("acme"), "no note").unwrap();
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let scopes = ["runtime:write", "evidence:write"];
    let stranger = app.client(&app.api_key("svc:tenant:other", &scopes).await);
    let theirs = decided(&stranger, asking(1.0, "DE")).await;
    let seal = |client: Client, id: String| async move { client.seal_decision(&id).await.0 };
    let both = tokio::join!(seal(client, id), seal(stranger, theirs));
    assert_eq!(both, (500, 200));
}

/// A checkpoint that another party has kept proves whether the log has a single history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_holds_the_log_to_a_checkpoint_seen_elsewhere() {
    let (app, client) = sealing().await;
    let (folder, note) = (tempfile::tempdir().unwrap(), CHECKPOINT);
    let keep = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let pack = sealed(&client, &decided(&client, asking(1.0, "DE")).await).await;
    let file = keep("pack", &pack);
    let jwks = keep("jwks", &client.text("GET", "/.well-known/jwks.json", None).await.1);
    let (_, same) = client.text("GET", note, None).await;
    sealed(&client, &decided(&client, asking(2.0, "DE")).await).await;
    let (_, later) = client.text("GET", note, None).await;
    let (_, proof) = client.text("GET", "/v1/log/acme/consistency?from=1&to=2", None).await;
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-authority"));
        let run = command.args(["verify", &file, "--jwks", &jwks]).args(more).output().unwrap();
        let text = [run.stdout, run.stderr].concat();
        (run.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let (later, proof_text) = (keep("later", &later), proof);
    let proof = keep("proof", &proof_text);
    let message = json!({"kind": "svc.log.checkpoint.v1", "checkpoint": same}).to_string();
    for same in [keep("same", &same), keep("message", &message)] {
        assert_eq!(run(&["--seen", &same]).0, 0, "{}", run(&["--seen", &same]).1);
    }
    let command = "\"$URL/v1/log/acme/consistency?from=1&to=2\" > proof.json";
    let (code, text) = run(&["--seen", &later]);
    assert_eq!((code, text.contains(command)), (2, true), "{text}");
    let other = keep("other", &proof_text.replace("\"to\":2", "\"to\":3"));
    let (code, text) = run(&["--seen", &later, "--consistency", &other]);
    assert_eq!((code, text.contains(command)), (2, true), "{text}");
    let (code, text) = run(&["--seen", &file]);
    let expected = format!("is not a checkpoint (`kind` is {})", kind(&pack));
    assert_eq!((code, text.contains(&expected)), (2, true), "{text}");
    assert_eq!(run(&["--seen", &later, "--consistency", &proof]).0, 0);
    // These checkpoints are signed with the same key, but for another history.
    let origin = SignedCheckpoint::parse(&same).unwrap().checkpoint.origin;
    let forked = |size, root| {
        let body = Checkpoint { origin: origin.clone(), size, root }.body();
        let signer = app.app.keys.signer(Purpose::Log);
        let key = LogKey { origin: origin.clone(), public_key: *signer.public_key() };
        signed(&body, &origin, key.id(), &signer.sign(body.as_bytes()))
    };
    let forks = [keep("fork", &forked(1, [7; 32])), keep("long", &forked(2, [7; 32]))];
    for fork in &forks {
        let (code, text) = run(&["--seen", fork, "--consistency", &proof]);
        assert_eq!((code, text.contains("two histories")), (1, true), "{text}");
    }
    // A checkpoint with an invalid signature does not prove a fork.
    let last = same.trim_end().len() - 4;
    let damaged = format!("{}AAA=\n", &same[..last]);
    let (code, text) = run(&["--seen", &keep("damaged", &damaged)]);
    let expected =
        "in the checkpoint seen elsewhere: proof: the checkpoint's signature is not valid";
    assert_eq!((code, text.contains(expected)), (1, true), "{text}");
}

fn kind(document: &str) -> Value {
    serde_json::from_str::<Value>(document).unwrap()["kind"].clone()
}
