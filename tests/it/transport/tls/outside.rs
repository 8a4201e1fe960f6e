//! TLS with the clients of others: openssl and h2load.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
};

use agent_authority::transport::Surfaces;
use authority_config::TlsVersion;

use super::{secured, serve};
use crate::support::tls::TlsFiles;

/// Runs a client to its end, on another thread. Returns whether it succeeded, and its output.
async fn run(mut client: Command) -> (bool, String) {
    let ran = tokio::task::spawn_blocking(move || {
        let client = client.stdin(Stdio::null());
        client.output().expect("openssl and h2load: run script/features")
    });
    let output = ran.await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn s_client(files: &TlsFiles, to: SocketAddr, options: &[&str]) -> Command {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-brief", "-verify_return_error", "-verify_hostname", "localhost"]);
    command.arg("-connect").arg(to.to_string()).arg("-CAfile").arg(files.path("servers.pem"));
    command.args(options);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openssl_negotiates_a_version_and_a_protocol() {
    let mut files = TlsFiles::new();
    for (minimum, version, accepted) in [
        (TlsVersion::Tls12, "-tls1_1", false),
        (TlsVersion::Tls12, "-tls1_2", true),
        (TlsVersion::Tls12, "-tls1_3", true),
        (TlsVersion::Tls13, "-tls1_2", false),
        (TlsVersion::Tls13, "-tls1_3", true),
    ] {
        files.config.tls.minimum_version = minimum;
        let served = serve(secured(&files, Surfaces::ALL)).await;
        let options = [version, "-alpn", "h2,http/1.1"];
        let (succeeded, output) = run(s_client(&files, served.address, &options)).await;
        assert_eq!(succeeded, accepted, "{minimum:?} {version}: {output}");
        if accepted {
            assert!(output.contains("Verification: OK"), "{output}");
        }
        served.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openssl_presents_a_certificate() {
    let files = TlsFiles::with_clients(|tls| tls.admin_clients = vec!["admin".to_owned()]);
    let served = serve(secured(&files, Surfaces::ALL)).await;
    let admin = files.clients.client("admin");
    files.write("admin.crt", &admin.certificate);
    files.write("admin.key", &admin.key);
    let path = |name: &str| files.path(name).display().to_string();
    let (certificate, key) = (path("admin.crt"), path("admin.key"));
    let with = ["-tls1_2", "-cert", &certificate, "-key", &key];
    let (succeeded, output) = run(s_client(&files, served.address, &with)).await;
    assert!(succeeded, "{output}");
    // With TLS 1.2, the client learns of the refusal in its handshake.
    let (succeeded, output) = run(s_client(&files, served.address, &["-tls1_2"])).await;
    assert!(!succeeded, "{output}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h2load_gets_every_answer() {
    let files = TlsFiles::new();
    let served = serve(secured(&files, Surfaces::ALL)).await;
    for protocol in [&["-m", "10"][..], &["--h1"]] {
        let mut command = Command::new("h2load");
        command.args(["-n", "2000", "-c", "10"]).args(protocol);
        command.arg(format!("https://127.0.0.1:{}/", served.address.port()));
        let (succeeded, output) = run(command).await;
        assert!(succeeded, "{output}");
        assert!(output.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "{output}");
    }
    served.stop().await;
}
