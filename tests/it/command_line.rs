//! Runs the binary as a script would, and checks its output, its streams and its exit codes.

mod api_keys;
mod approvals;
mod decisions;
mod exports;
mod help;
mod hooks;
mod listen;
mod login;
mod policies;
mod reads;
mod receiver;
mod snapshot_push;
mod start;
mod stop;
mod story;
mod webhooks;

pub(crate) use reads::spawn;

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

#[track_caller]
pub(crate) fn run(args: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    run_with_input(args, environment, "")
}

/// Runs the binary with `input` on its standard input.
#[track_caller]
pub(crate) fn run_with_input(
    args: &[&str],
    environment: &[(&str, &str)],
    input: &str,
) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agent-authority"))
        .args(args)
        .env_remove("DATABASE_URL")
        .env_remove("AGENT_AUTHORITY_TOKEN")
        // This folder has no stored login.
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_wrong_use_or_setting_is_2_and_a_failure_1() {
    let (code, _, told) = run(&["serv"], &[]);
    assert_eq!(code, 2);
    assert!(told.contains("serve"), "{told}");

    let (code, _, told) = run(&["config"], &[("AGENT_AUTHORITY__LISTEN__MIAN", "x")]);
    assert_eq!(code, 2);
    assert_eq!(told, "error: unknown setting `listen.mian`; did you mean `listen.main`?\n");

    let (code, _, told) = run(&["config", "--production"], &[]);
    assert_eq!(code, 2);
    assert!(told.contains("production needs `identity.issuer`"), "{told}");

    // No server listens at the discard port.
    let (code, _, told) = run(&["healthcheck", "--listen", "127.0.0.1:9", "--json"], &[]);
    assert_eq!(code, 1);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["ok"], false);
}

/// In production, an embedded database would be a new, empty installation.
#[test]
fn production_starts_no_database_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let ring = ["main:", &"A".repeat(43), "="].concat();
    let settings = [
        ("AGENT_AUTHORITY__DATA_DIR", data.to_str().unwrap()),
        ("AGENT_AUTHORITY__KEYS__RING", ring.as_str()),
        ("AGENT_AUTHORITY__IDENTITY__ISSUER", "https://id.example.org"),
        ("AGENT_AUTHORITY__IDENTITY__AUDIENCE", "authority"),
        ("AGENT_AUTHORITY__LISTEN__PUBLIC_URL", "https://authority.example.org"),
    ];
    for command in ["serve", "migrate"] {
        let (code, _, told) = run(&[command, "--production"], &settings);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("production needs a database: set `DATABASE_URL`"), "{told}");
    }
    let (code, _, told) = run(&["dev", "--production"], &settings);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("`dev` runs a development server"), "{told}");
    assert!(!data.exists(), "a refused start created {}", data.display());
}

#[test]
fn a_chosen_folder_without_programs_is_not_replaced_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let dev = |chosen: &str| {
        let settings = [
            ("AGENT_AUTHORITY_PG_BIN", chosen),
            ("AGENT_AUTHORITY__LISTEN__MAIN", "127.0.0.1:0"),
            ("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0"),
        ];
        let (code, _, told) = run(&["dev", "--data-dir", data.to_str().unwrap()], &settings);
        assert_eq!(code, 1, "{told}");
        told
    };
    let told = dev(folder.path().to_str().unwrap());
    let named = format!("AGENT_AUTHORITY_PG_BIN is `{}`", folder.path().display());
    assert!(told.contains(&named), "{told}");
    let told = dev("bin");
    assert!(told.contains("AGENT_AUTHORITY_PG_BIN is `bin`, a relative path"), "{told}");
}

/// Settings that would prevent the start are found by `config`, without a start.
#[test]
fn a_key_ring_or_a_database_url_that_cannot_be_read_is_not_sound() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere").display().to_string();
    let (code, _, told) = run(
        &["config"],
        &[
            ("AGENT_AUTHORITY__KEYS__RING_FILE", &nowhere),
            ("DATABASE_URL", "postgres://a:hush@db:port/x"),
        ],
    );
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("`keys.ring_file`: the key ring is unusable: `"), "{told}");
    assert!(told.contains("`database.url` (or DATABASE_URL): "), "{told}");
    assert!(!told.contains("hush"), "{told}");
    let (code, _, told) = run(&["config"], &[("AGENT_AUTHORITY__KEYS__RING", "hush")]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("`keys.ring`: ") && !told.contains("hush"), "{told}");
    let (code, _, told) = run(&["config"], &[("DATABASE_URL", "postgres://a:hush@")]);
    assert!(code == 2 && told.contains("names no host"), "{told}");
    let push = [
        ("AGENT_AUTHORITY__PUSH__SUBJECT", "mailto:ops@example.org"),
        ("AGENT_AUTHORITY__PUSH__KEY_FILE", nowhere.as_str()),
    ];
    let (code, _, told) = run(&["config"], &push);
    assert!(code == 2 && told.contains("`push.key_file`, the key of Web Push, "), "{told}");
    let http = [("AGENT_AUTHORITY__NATS__URL", "http://nats.example.org:4222")];
    let (code, _, told) = run(&["config"], &http);
    assert!(code == 2 && told.contains("`nats.url` is `http://nats.example.org:4222`"), "{told}");
    let empty = folder.path().join("empty.creds");
    std::fs::write(&empty, "hush").unwrap();
    for (file, problem) in
        [(nowhere.as_str(), "cannot be read"), (empty.to_str().unwrap(), "nsc generate creds")]
    {
        let nats = [
            ("AGENT_AUTHORITY__NATS__URL", "nats://nats.example.org:4222"),
            ("AGENT_AUTHORITY__NATS__CREDENTIALS", file),
        ];
        let (code, _, told) = run(&["config"], &nats);
        assert!(code == 2 && told.contains(&format!("`nats.credentials`: `{file}` ")), "{told}");
        assert!(told.contains(problem) && !told.contains("hush"), "{told}");
    }
    let (code, said, _) = run(&["config"], &[("DATABASE_URL", "postgres://user@localhost/db")]);
    assert_eq!((code, said.trim()), (0, "sound"));
}

#[test]
fn the_effective_configuration_is_printed_with_its_secrets_masked() {
    let environment = [("DATABASE_URL", "postgres://user:hush@db/authority")];
    let (code, printed, _) =
        run(&["config", "--print", "--listen", "127.0.0.1:81", "--production"], &environment);
    assert_eq!(code, 0);
    insta::assert_snapshot!("effective_configuration", printed);
    let (_, json, _) = run(&["config", "--print", "--json"], &environment);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["database"]["url"], "***");
    assert!(!printed.contains("hush"));
}

#[test]
fn completions_and_help_need_no_settings() {
    let broken = [("AGENT_AUTHORITY__NOTHING", "x")];
    let (code, script, _) = run(&["completions", "bash"], &broken);
    assert_eq!(code, 0);
    assert!(script.contains("agent-authority"));
    let (code, help, _) = run(&["--help"], &broken);
    assert_eq!(code, 0);
    assert!(help.contains("healthcheck"), "{help}");
}
