//! Errors that prevent a start, and commands in a folder in which no service has been started.

use std::{fs, net::TcpListener};

use super::run;

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
