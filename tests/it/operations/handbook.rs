//! The commands of `docs/production.md`, run in their order on a PostgreSQL server of their own.

use std::{fs, net::TcpListener, path::Path, process::Command};

use authority_core::store::embedded::{Embedded, OWNER, Options};

use crate::faults::process::{Folder, PROGRAM};

/// The blocks of shell commands.
fn commands() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/production.md");
    let page = fs::read_to_string(path).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// The folder of the server's socket, from its URL.
fn socket_folder(server: &Embedded) -> String {
    let url = server.owner_url();
    let host = url.split(['@', '/']).nth(3).unwrap();
    host.replace("%2F", "/").replace("%2f", "/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_the_page_ends_with_nodes_a_backup_and_metrics() {
    let blocks = commands();
    assert!(blocks.len() >= 8, "the page has {} blocks", blocks.len());
    let folder = Folder::new("handbook");
    let options = Options { data_dir: folder.path().to_owned(), ..Options::default() };
    let server = Embedded::start(options).await.unwrap();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let listeners = [free(), free(), free(), free()];
    let ports = listeners.each_ref().map(|one| one.local_addr().unwrap().port().to_string());
    drop(listeners);
    // Where the page's database and addresses are in this test.
    let socket = socket_folder(&server);
    let mut script =
        "set -eu\nPATH=\"$PROGRAMS:$PATH\"\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
            .to_owned();
    for block in &blocks {
        let mut block = block.replace("db.example.org", &socket);
        for (of_page, here) in ["8080", "8081", "9464", "9465"].iter().zip(&ports) {
            block = block.replace(of_page, here);
        }
        script.push_str(&block);
    }
    let work = tempfile::tempdir().unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .current_dir(work.path())
        .env("PROGRAMS", programs)
        .env("no_proxy", "127.0.0.1")
        .env_remove("DATABASE_URL");
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (told, problems) = (text(output.stdout), text(output.stderr));
    let log = fs::read_to_string(work.path().join("node1.log")).unwrap_or_default();
    assert!(output.status.success(), "{told}\n{problems}\n{log}");
    for part in ["sound", "# jwks_url has no value", "authority_build_info"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(OWNER, "postgres", "the page names the superuser");
    assert!(fs::metadata(work.path().join("authority.dump")).unwrap().len() > 10_000);
    let ring = fs::read_to_string(work.path().join("ring")).unwrap();
    assert!(ring.starts_with("k2:") && ring.lines().count() == 1, "the old key is still there");
    server.stop().await.unwrap();
}
