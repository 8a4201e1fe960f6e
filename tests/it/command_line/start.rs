//! Errors that prevent a start, and commands in a folder in which no service has been started.

use std::{
    fs,
    net::TcpListener,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    process::Command,
};

use super::run;
use crate::support::shown::{forbidden, not_root};

/// The command prints one line and exits before it creates the data directory.
#[test]
fn an_address_that_is_taken_ends_the_start_before_anything_else() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let serve = ["serve", "--data-dir", data.to_str().unwrap(), "--listen"];
    let ops = "AGENT_AUTHORITY__LISTEN__OPS";
    let other = "AGENT_AUTHORITY__LISTEN__ADMIN";
    for (main, environment, remedy) in [
        (taken.as_str(), vec![(ops, "127.0.0.1:0")], "--listen"),
        ("127.0.0.1:0", vec![(ops, taken.as_str())], ops),
        ("127.0.0.1:0", vec![(ops, "127.0.0.1:0"), (other, taken.as_str())], other),
    ] {
        let (code, printed, told) = run(&[&serve[..], &[main]].concat(), &environment);
        assert_eq!((code, printed.as_str()), (1, ""), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(&format!("cannot listen on {taken}: ")), "{told}");
        assert!(told.contains(remedy), "{told}");
        assert!(!data.exists(), "{told}");
    }
    // The settings give the same address to metrics and to requests.
    let (code, _, told) =
        run(&[&serve[..], &["127.0.0.1:9191"]].concat(), &[(ops, "127.0.0.1:9191")]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("cannot listen on 127.0.0.1:9191") && told.contains(ops), "{told}");
}

#[test]
fn a_command_refuses_a_folder_in_which_no_service_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let (absent, empty) = (folder.path().join("absent"), folder.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    for data in [&absent, &empty] {
        let data_dir = data.to_str().unwrap();
        for typed in [
            "token owner",
            "token tenant --tenant acme --role admin",
            "api-key create --tenant acme --scope runtime:read",
            "keys rewrap",
        ] {
            let args: Vec<_> = typed.split(' ').chain(["--data-dir", data_dir]).collect();
            let (code, printed, told) = run(&args, &[]);
            assert_eq!((code, printed.as_str()), (1, ""), "{typed}: {told}");
            assert!(told.contains(&format!("`{data_dir}`")), "{told}");
            assert!(told.contains("--data-dir") && told.contains("serve"), "{told}");
        }
    }
    assert!(!absent.exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

/// Runs only as root. A container platform starts programs as a user without an entry in
/// /etc/passwd, in group 0.
#[test]
fn a_user_without_a_name_gets_a_remedy_and_its_folder_stays_open() {
    const UID: u32 = 1_000_650_000;
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(UID), Some(0)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o770)).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_agent-authority"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .env("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0")
        .env_remove("DATABASE_URL")
        .env_remove("HOME")
        .current_dir(folder.path())
        .uid(UID)
        .gid(0)
        .output()
        .unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{told}");
    for part in [&*UID.to_string(), "/etc/passwd", "DATABASE_URL"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o770);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
}
