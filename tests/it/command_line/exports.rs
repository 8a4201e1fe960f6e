//! `verify --export`: an auditor verifies exported decisions with a file and keys, as
//! docs/guides/audit.md shows. Each damage of the file has its own message.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use authority_evidence::verify::Export;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::run;
use crate::{
    evidence::{published, sealed},
    support::{Answered, Client, TENANT, TestApp, asking, new_tenant, only},
};

const PAGE: &str = include_str!("../../../docs/guides/audit.md");

/// A tenant's exported decisions, with their packs and the service's keys.
struct World {
    app: TestApp,
    folder: TempDir,
    /// The lines of the export, with their line breaks.
    lines: Vec<String>,
    packs: Vec<String>,
}

impl World {
    async fn new() -> Self {
        let app = TestApp::seeded().await;
        app.demo().await;
        let scopes = ["runtime:write", "evidence:read", "evidence:write"];
        let client = app.client(&app.api_key(TENANT, &scopes).await);
        let mut packs = Vec::new();
        for (amount, place) in [(1200.0, "DE"), (25_000.0, "DE"), (7.25, "US"), (3.0, "FR")] {
            let id = decided(&client, amount, place).await;
            packs.push(sealed(&client, &id).await + "\n");
        }
        let folder = tempfile::tempdir().unwrap();
        let lines = exported(&app, TENANT).await;
        assert_eq!(lines.len(), 5, "{lines:?}");
        let world = Self { app, folder, lines, packs };
        let (_, jwks) = client.text("GET", "/.well-known/jwks.json", None).await;
        world.file("jwks.json", &jwks);
        world
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    fn jwks(&self) -> PathBuf {
        self.folder.path().join("jwks.json")
    }

    /// Verifies an export of these lines.
    fn verified(&self, lines: &str) -> (i32, String, String) {
        let file = self.file("export.ndjson", lines);
        verify(&file, &self.jwks().display().to_string(), &[])
    }

    /// Checks that an export of these lines is refused with this message and a remedy.
    #[track_caller]
    fn refused(&self, lines: &str, wanted: i32, message: &str) {
        let (code, found, told) = self.verified(lines);
        assert_eq!((code, found.as_str()), (wanted, ""), "{message}: {told}");
        assert!(told.contains(message), "{message}: {told}");
        assert!(told.trim_end().contains('\n'), "without a remedy: {told}");
    }

    /// Verifies an export of these lines with packs.
    fn complete(&self, lines: &str, packs: &str) -> (i32, String, String) {
        let (file, packs) = (self.file("export.ndjson", lines), self.file("packs.ndjson", packs));
        let packs = packs.display().to_string();
        verify(&file, &self.jwks().display().to_string(), &["--packs", &packs])
    }
}

fn verify(file: &Path, jwks: &str, more: &[&str]) -> (i32, String, String) {
    let file = file.display().to_string();
    run(&[&["verify", "--export", &file, "--jwks", jwks][..], more].concat(), &[])
}

async fn decided(client: &Client, amount: f64, place: &str) -> String {
    let answer = client.evaluate(asking(amount, place)).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// Returns the lines of a tenant's export, with contexts.
async fn exported(app: &TestApp, tenant: &str) -> Vec<String> {
    let path = format!("/api/v1/decisions:export?context=true&tenant_id={tenant}");
    let (status, text) = app.owner().text("GET", &path, None).await;
    assert_eq!(status, 200, "{text}");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Returns a line with one member changed.
fn with(line: &str, path: &str, value: Value) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    *line.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
    format!("{line}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_valid_with_the_keys_alone() {
    let world = World::new().await;
    let (code, found, told) = world.verified(&world.lines.concat());
    assert_eq!((code, found.as_str()), (0, "valid; completeness not checked\n"), "{told}");
    for part in [
        "tenant     svc:tenant:acme",
        "decisions  4: ",
        "require_approval 1",
        "Completeness was not checked",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // The keys may also come from the service. An editor may remove the last line break.
    let file = world.file("export.ndjson", world.lines.concat().trim_end());
    let url = format!("{}/.well-known/jwks.json", world.app.base_url());
    let spawned = tokio::task::spawn_blocking(move || verify(&file, &url, &["--json"]));
    let (code, found, told) = spawned.await.unwrap();
    assert_eq!(code, 0, "{told}");
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["about"]["decisions"], 4, "{found:#}");
    assert_eq!(found["about"]["log"], Value::Null, "{found:#}");
    // Keys are required, and unencrypted keys from elsewhere are refused.
    let (code, _, told) = run(&["verify", "--export", "x.ndjson"], &[]);
    assert!(code == 2 && told.contains("--jwks"), "{told}");
    let (code, _, told) = verify(Path::new("x.ndjson"), "http://a.example/jwks.json", &[]);
    assert!(code == 2 && told.contains("https only"), "{told}");
}

/// Each damage of a file has a message of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_with_the_line() {
    let world = World::new().await;
    let other = new_tenant("Other", "other");
    world.app.owner().create_tenant(other).await.assert_status(201);
    let key = world.app.api_key("svc:tenant:other", &["runtime:write"]).await;
    decided(&world.app.client(&key), 5.0, "DE").await;
    let foreign = &exported(&world.app, "svc:tenant:other").await[0];
    let lines: Vec<&str> = world.lines.iter().map(String::as_str).collect();
    let [one, two, three, four, end] = lines[..] else { panic!("{lines:?}") };
    let half = &three[..three.len() / 2];
    world.refused("", 2, "unreadable: the file is empty");
    world.refused(&with(end, "/count", json!(0)), 1, "the export contains no decision");
    world.refused(&[one, two, half].concat(), 1, "line 3: is cut off");
    let cut = "is cut off after line 3, `svc:decision:";
    world.refused(&[one, two, three].concat(), 1, cut);
    let moved = "line 3: decision.decision_id: is out of order";
    world.refused(&[one, three, two, four, end].concat(), 1, moved);
    let doubled = "line 3: decision.decision_id: repeats line 2";
    world.refused(&[one, two, two, three, four, end].concat(), 1, doubled);
    let doubled_apart = "line 5: decision.decision_id: repeats line 2";
    world.refused(&[one, two, three, four, two, end].concat(), 1, doubled_apart);
    let removed = "line 4: count: is 4, but 3 decisions precede it";
    world.refused(&[one, two, four, end].concat(), 1, removed);
    let twice = "line 6: follows the line with `end`";
    world.refused(&lines.repeat(2).concat(), 1, twice);
    let other = "line 5: decision.tenant_id: is `svc:tenant:other`";
    world.refused(&[one, two, three, four, foreign.as_str(), end].concat(), 1, other);
    world.refused(&[one, "{]\n", three].concat(), 2, "unreadable: line 2: ");
    world.refused(&world.packs[0], 1, "are verified without --export");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_member_is_named() {
    let world = World::new().await;
    for (path, value, message) in [
        ("/record/request/action", "payment.cancel", "evidence_pack.record_digest: is not the"),
        ("/decision/decision_id", OTHER_ID, "decision.decision_id: is not the record's"),
        ("/evidence_pack/signature/value", ZEROS, "evidence_pack.signature.value: is not valid"),
        ("/evidence_pack/signature/kid", OTHER_KEY, "evidence_pack.signature.kid: no key for svc-"),
        ("/decision/subject", "svc:agent:acme:other", "decision.subject: is not the record's"),
        ("/decision/evaluated_at", "2026-01-05T10:30:00Z", "decision.evaluated_at: is not the"),
        ("/context/value/currency", "USD", "context: does not have the record's digest"),
    ] {
        let mut lines = world.lines.clone();
        lines[1] = with(&lines[1], path, json!(value));
        world.refused(&lines.concat(), 1, &format!("line 2: {message}"));
    }
    let none = world.file("none.json", r#"{"keys": []}"#).display().to_string();
    let whole = world.file("export.ndjson", &world.lines.concat());
    let (code, _, told) = verify(&whole, &none, &[]);
    assert!(
        code == 1 && told.contains("line 1: evidence_pack.signature.kid: no key for"),
        "{told}"
    );
    assert!(told.contains("jwks.json again"), "{told}");
}

const OTHER_ID: &str =
    "svc:decision:0000000000000000000000000000000000000000000000000000000000000000";
const OTHER_KEY: &str = "svc-evidence-2026-00000000";
/// 64 bytes in base64.
const ZEROS: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

/// Flips bits of every byte of a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_a_line_can_be_changed() {
    let world = World::new().await;
    let keys = published(&world.app.client("")).await;
    let [before, line] = [0, 2].map(|place| world.lines[place].as_bytes());
    let mut export = Export::new(&keys);
    export.line(before).unwrap();
    let is_valid = |line: &[u8]| export.clone().line(line).is_ok();
    assert!(is_valid(line));
    for place in 0..line.len() - 1 {
        for bit in [1, 32] {
            let mut changed = line.to_vec();
            changed[place] ^= bit;
            let shown = String::from_utf8_lossy(&changed[place.saturating_sub(40)..]).into_owned();
            assert!(!is_valid(&changed), "byte {place}, bit {bit}: {shown}");
        }
    }
}

/// A removed decision leaves a gap in the log's indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_was_removed_is_missed_in_the_log() {
    let world = World::new().await;
    let (lines, packs) = (&world.lines, &world.packs);
    let whole = lines.concat();
    let (code, found, told) = world.complete(&whole, &packs.concat());
    assert_eq!((code, found.as_str()), (0, "valid\n"), "{told}");
    assert!(told.contains("/log/acme: every index from 0 to 3"), "{told}");
    assert!(!told.contains("not checked"), "{told}");
    // The lines alone can't show a removal, if the count is changed as well.
    let end = with(&lines[4], "/count", json!(3));
    let lacking = [&lines[0], &lines[2], &lines[3], &end].map(String::as_str).concat();
    assert_eq!(world.verified(&lacking).0, 0);
    let of =
        |places: &[usize]| places.iter().map(|place| packs[*place].as_str()).collect::<String>();
    let cases = [
        (&lacking, of(&[0, 2, 3]), 1, "log.index: 1 of `"),
        (&whole, of(&[0, 2, 1, 3]), 1, "line 2 of the packs: decision_id: must be `svc:decision:"),
        (&whole, of(&[0, 1, 2]), 1, "the packs end before line 4 of the export"),
        (&whole, of(&[0, 1, 2, 3, 3]), 1, "line 5 of the packs: follows the pack of the last"),
        (&whole, String::new(), 1, "the packs end before line 1 of the export"),
        (
            &whole,
            packs.concat().replace("\"index\":2", "\"index\":1"),
            1,
            "line 3 of the packs: log.",
        ),
        (&whole, "{\n".to_owned(), 2, "unreadable: line 1 of the packs"),
    ];
    for (export, packs, wanted, message) in cases {
        let (code, found, told) = world.complete(export, &packs);
        assert_eq!((code, found.as_str()), (wanted, ""), "{message}: {told}");
        assert!(told.contains(message), "{message}: {told}");
    }
    // Without the log's key, a place in the log is not proven.
    let jwks: Value = serde_json::from_slice(&fs::read(world.jwks()).unwrap()).unwrap();
    let keys = jwks["keys"].as_array().unwrap().iter();
    let keys: Vec<&Value> =
        keys.filter(|key| !key["kid"].as_str().unwrap().starts_with("svc-log-")).collect();
    world.file("jwks.json", &only("keys", &keys).to_string());
    let (code, _, told) = world.complete(&whole, &packs.concat());
    assert!(code == 1 && told.contains("--checkpoint-key"), "{told}");
}

/// Runs the commands of docs/guides/audit.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_follows_the_page() {
    let app = TestApp::seeded().await;
    app.demo().await;
    app.owner().update_tenant(TENANT, only("auto_seal", true)).await.assert_status(200);
    let client = app.client(&app.api_key(TENANT, &["runtime:write", "evidence:read"]).await);
    let begun = Instant::now();
    for (amount, place) in [(1200.0, "DE"), (25_000.0, "DE"), (1200.0, "US")] {
        let id = decided(&client, amount, place).await;
        while client.get_evidence(&id).await.0 != 200 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{id} is not sealed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let blocks = PAGE.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands: String = blocks.collect();
    let month = "--since 2026-11-01 --until 2026-12-01";
    assert!(commands.contains(month), "{commands}");
    let commands = commands
        .replace(month, "--since 1h")
        .replace("https://authority.example.org", app.base_url());
    let program = Path::new(env!("CARGO_BIN_EXE_agent-authority")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.display());
    let folder = tempfile::tempdir().unwrap();
    let mut script = Command::new("bash");
    script
        .args(["-euo", "pipefail", "-c", &commands])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", path)
        .env("AGENT_AUTHORITY_TOKEN", app.member_token(TENANT, "auditor"))
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("no_proxy", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || script.output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (found, told) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{found}{told}");
    // No tool of the demonstration declares facts: the two searches find nothing.
    let lists = "ID  FOUND  NAME  ACTION  STATE  AT\n\
                 DECISION_ID  DECISION  REASON_CODE  SUBJECT  ACTION  EVALUATED_AT\n";
    assert_eq!(found, format!("valid; completeness not checked\nvalid\n{lists}"), "{told}");
    assert!(told.contains("every index from 0 to 2"), "{told}");
    let checkpoint = fs::read_to_string(folder.path().join("checkpoint-2026-11.txt")).unwrap();
    assert_eq!(checkpoint.lines().nth(1), Some("3"), "{checkpoint}");
}
