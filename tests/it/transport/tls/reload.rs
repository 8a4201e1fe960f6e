//! Changed files of TLS, while connections are open.

use std::time::{Duration, Instant};

use agent_authority::transport::{Settings, Surfaces};
use authority_process::worker::Supervisor;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{sleep, timeout},
};

use crate::{
    support::tls::{Authority, Issued, TlsFiles, presented},
    transport::server::{serve, settings},
};

const PATIENCE: Duration = Duration::from_secs(20);

fn der(issued: &Issued) -> Vec<u8> {
    CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap().to_vec()
}

/// Waits until new connections get this certificate.
async fn until_presented(files: &TlsFiles, to: std::net::SocketAddr, expected: &Issued) {
    let start = Instant::now();
    loop {
        let stream = files.connect_http1(to, None).await.unwrap();
        if presented(&stream) == der(expected) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "the service does not use the new certificate");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_ends_no_stream_and_a_broken_one_is_not_used() {
    let files = TlsFiles::new();
    let (tls, worker) = files.load();
    let supervisor = Supervisor::default();
    supervisor.run([worker]);
    let served = serve(Settings { tls: Some(tls.on(Surfaces::ALL)), ..settings() }).await;
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    let first = presented(&stream);
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut chunk = [0; 1024];
    stream.read_exact(&mut chunk).await.unwrap();

    let renewed = files.servers.server();
    assert_ne!(first, der(&renewed));
    files.write_server(&renewed);
    until_presented(&files, served.address, &renewed).await;
    for _ in 0..1000 {
        stream.read_exact(&mut chunk).await.unwrap();
    }

    // The certificate without its key, and then no certificate at all.
    let other = files.servers.server();
    files.write("tls.crt", &other.certificate);
    sleep(Duration::from_secs(3)).await;
    until_presented(&files, served.address, &renewed).await;
    files.write("tls.crt", "-----BEGIN CERTIFICATE-----\nbroken");
    sleep(Duration::from_secs(3)).await;
    until_presented(&files, served.address, &renewed).await;
    files.write_server(&other);
    until_presented(&files, served.address, &other).await;
    stream.read_exact(&mut chunk).await.unwrap();
    drop(stream);
    supervisor.stop().await;
    served.stop().await;
}

/// Otherwise the connection of a client would outlive the removal of its authority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_authority_ends_the_connections_of_its_clients() {
    let files = TlsFiles::with_clients(|tls| tls.admin_clients = vec!["*".to_owned()]);
    let (tls, worker) = files.load();
    let supervisor = Supervisor::default();
    supervisor.run([worker]);
    let mut settings = Settings { tls: Some(tls.on(Surfaces::ALL)), ..settings() };
    settings.bounds.drain = Duration::from_millis(200);
    let served = serve(settings).await;
    let (old, authority) = (files.clients.client("a"), Authority::new());
    let new = authority.client("a");
    let both = format!("{}{}", files.clients.pem, authority.pem);
    let begin = async |client: &Issued| {
        let mut stream = files.connect_http1(served.address, Some(client)).await.unwrap();
        stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).await.map(|_| stream)
    };
    let mut stream = begin(&old).await.unwrap();
    assert!(begin(&new).await.is_err());

    // While both authorities are listed, the connection stays open.
    files.write("clients.pem", &both);
    let start = Instant::now();
    let mut newer = loop {
        match begin(&new).await {
            Ok(newer) => break newer,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
        sleep(Duration::from_millis(100)).await;
    };
    let mut chunk = [0; 1024];
    for _ in 0..1000 {
        stream.read_exact(&mut chunk).await.unwrap();
    }

    files.write("clients.pem", &authority.pem);
    let ended = async { while stream.read_exact(&mut chunk).await.is_ok() {} };
    timeout(PATIENCE, ended).await.expect("the connection of the removed authority ends");
    assert!(begin(&old).await.is_err());
    newer.read_exact(&mut [0; 1024]).await.unwrap();
    drop(newer);
    supervisor.stop().await;
    served.stop().await;
}
