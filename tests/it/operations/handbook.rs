//! Runs the commands of `docs/operations/production.md` in order, as root on a machine like a newly
//! installed Debian.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    faults::process::{LAME_DUCK, PROGRAM},
    support::shown::{forbidden, hindrance, not_shown},
};

const PAGE: &str = include_str!("../../../docs/operations/production.md");
const MACHINE: &str = include_str!("handbook.sh");
/// Programs that the page's commands install. Not every Debian has them.
const NEEDED: [&str; 4] = ["pg_createcluster", "haproxy", "prometheus", "openssl"];

/// Returns the page's shell commands.
fn commands() -> String {
    let blocks = PAGE.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

fn is_here(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

#[test]
fn a_reader_of_the_page_ends_with_two_nodes_tls_a_backup_and_metrics() {
    if let Some(reason) = hindrance() {
        return forbidden(&reason);
    }
    if let Some(lacking) = NEEDED.iter().find(|program| !is_here(program)) {
        return not_shown(&format!("this machine has no {lacking}; script/features installs it"));
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut machine = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["bash", "-c", MACHINE])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("LC_ALL", "C.UTF-8")
        .env("PROGRAM", PROGRAM)
        .env("REPOSITORY", repository)
        .env("SYSTEMCTL", repository.join("tests/it/operations/systemctl.sh"))
        // This test has no load balancer that must notice the stop.
        .env(LAME_DUCK, "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = machine.stdin.take().unwrap();
    input.write_all(commands().as_bytes()).unwrap();
    drop(input);
    let output = machine.wait_with_output().unwrap();
    let (told, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{problems}");
    for part in [
        "sound",
        "# jwks_url has no value",
        "handbook: 1 rule of another database is kept",
        "handbook: the backup is restored",
        "handbook: the ring has k2\n",
        "handbook: metrics",
        "handbook: 2 nodes are scraped",
        "handbook: the alerts are loaded",
        "handbook: HTTP/2 200 over TLS",
        "handbook: gRPC: 200",
        "handbook: plain: 0 connections without TLS",
    ] {
        assert!(told.contains(part), "{part}: {told}\n{problems}");
    }
}
