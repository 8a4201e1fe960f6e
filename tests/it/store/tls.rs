//! TLS to a real PostgreSQL: the certificates that each `sslmode` accepts.
//!
//! The server listens on a separate loopback address, of which Linux has many, and on PostgreSQL's
//! usual port. It therefore doesn't conflict with other servers.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use authority_store::{
    Address, Limits, Notification, Store,
    embedded::{Embedded, LOGIN, Options},
};
use diesel_async::SimpleAsyncConnection;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use tokio::runtime::Builder;
use tokio_stream::StreamExt;

use super::number;
use crate::support::run_workers;

const LISTENING: &str = "127.0.0.77";

/// Creates a certificate authority in `<name>.pem`, and two certificates with their keys. The files
/// `<name>.crt` and `.key` are for db.test, and `<name>-client` for the login `authority`.
fn authority(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join(format!("{name}.pem")), params.self_signed(&key).unwrap().pem()).unwrap();
    let authority = Issuer::new(params, key);
    let server = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name = DistinguishedName::new();
    client.distinguished_name.push(DnType::CommonName, LOGIN);
    for (name, given) in [(name.to_owned(), server), (format!("{name}-client"), client)] {
        let key = KeyPair::generate().unwrap();
        let given = given.signed_by(&key, &authority).unwrap();
        fs::write(folder.join(format!("{name}.crt")), given.pem()).unwrap();
        let file = folder.join(format!("{name}.key"));
        fs::write(&file, key.serialize_pem()).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// Starts a server that listens on this address and authenticates TCP connections by this method.
async fn server(folder: &Path, listening: &str, method: &str) -> Embedded {
    let options = Options { data_dir: folder.join("server"), ..Options::default() };
    let plain = Embedded::start(options.clone()).await.unwrap();
    let home = plain.home().to_owned();
    plain.stop().await.unwrap();
    authority(&home, "ours");
    let admitted = format!("local all all trust\nhostssl all all 127.0.0.0/8 {method}\n");
    fs::write(home.join("hba"), admitted).unwrap();
    let user = fs::metadata(&home).unwrap();
    for file in ["ours.crt", "ours.key", "ours.pem", "hba"] {
        chown(home.join(file), Some(user.uid()), Some(user.gid())).unwrap();
        fs::set_permissions(home.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let path = |file| home.join(file).display().to_string();
    let settings = [
        ("listen_addresses", listening.to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", path("ours.crt")),
        ("ssl_key_file", path("ours.key")),
        ("ssl_ca_file", path("ours.pem")),
        ("hba_file", path("hba")),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Embedded::start(Options { settings, ..options }).await.unwrap()
}

#[tokio::test]
async fn each_sslmode_accepts_what_it_says() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = server(folder.path(), LISTENING, "trust").await;
    authority(folder.path(), "foreign");
    let ours = server.home().join("ours.pem").display().to_string();
    let foreign = folder.path().join("foreign.pem").display().to_string();
    for (host, wish, is_accepted) in [
        ("db.test", format!("sslmode=verify-full sslrootcert='{ours}'"), true),
        ("other.test", format!("sslmode=verify-full sslrootcert='{ours}'"), false),
        ("db.test", format!("sslmode=verify-full sslrootcert='{foreign}'"), false),
        ("db.test", "sslmode=verify-full".to_owned(), false),
        ("db.test", String::new(), false),
        ("other.test", format!("sslmode=verify-ca sslrootcert='{ours}'"), true),
        ("db.test", format!("sslmode=verify-ca sslrootcert='{foreign}'"), false),
        ("db.test", "sslmode=require".to_owned(), true),
        ("db.test", format!("sslmode=require sslrootcert='{foreign}'"), false),
        ("db.test", "sslmode=prefer".to_owned(), true),
        ("localhost", String::new(), true),
        // The server refuses connections without TLS.
        ("db.test", "sslmode=disable".to_owned(), false),
    ] {
        let url =
            format!("host={host} hostaddr={LISTENING} user=authority dbname=authority {wish}");
        match Address::parse(&url).unwrap().connect().await {
            Ok(mut db) => {
                assert!(is_accepted, "{host} {wish} was accepted");
                let sql =
                    "SELECT count(*) AS n FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";
                assert_eq!(number(&mut db, sql).await, 1, "{host} {wish}");
            }
            Err(fault) => assert!(!is_accepted, "{host} {wish}: {fault}"),
        }
    }
    server.stop().await.unwrap();
}

/// Client certificates work as with libpq's `sslcert` and `sslkey`.
#[tokio::test]
async fn a_client_certificate_is_who_logs_in() {
    const HERE: &str = "127.0.0.78";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = server(folder.path(), HERE, "cert clientcert=verify-full").await;
    authority(folder.path(), "foreign");
    let home = server.home().display().to_string();
    let elsewhere = folder.path().display().to_string();
    let files = |folder: &str, name: &str| {
        format!("sslcert='{folder}/{name}-client.crt' sslkey='{folder}/{name}-client.key'")
    };
    let connect = async |user: &str, files: &str| {
        let url = format!(
            "host=db.test hostaddr={HERE} user={user} dbname=authority sslmode=verify-full \
             sslrootcert='{home}/ours.pem' {files}"
        );
        Address::parse(&url).unwrap().connect().await
    };
    let mut db = connect(LOGIN, &files(&home, "ours")).await.unwrap();
    let sql = "SELECT count(*) AS n FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND client_dn = '/CN=authority'";
    assert_eq!(number(&mut db, sql).await, 1);
    assert!(
        connect("postgres", &files(&home, "ours")).await.is_err(),
        "the certificate is for another login"
    );
    assert!(connect(LOGIN, "").await.is_err(), "there is no certificate");
    assert!(connect(LOGIN, &files(&elsewhere, "foreign")).await.is_err(), "its signer is unknown");

    let key = folder.path().join("foreign-client.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let url = format!("host=db.test user=authority {}", files(&elsewhere, "foreign"));
    let told = Address::parse(&url).err().unwrap().to_string();
    assert!(told.contains("foreign-client.key") && told.contains("chmod 600"), "{told}");
    server.stop().await.unwrap();
}

/// A lost TLS connection returns the same error on every poll, without a pause. A listener that
/// kept polling would block the only thread and collect errors without end.
#[test]
fn a_listener_that_lost_its_connection_lets_others_run() {
    const HERE: &str = "127.0.0.79";
    let (ended, is_over) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let server = server(folder.path(), HERE, "trust").await;
            let url = format!(
                "host=db.test hostaddr={HERE} user=authority dbname=authority sslmode=require"
            );
            let store = Store::open(&Address::parse(&url).unwrap(), &Limits::default()).unwrap();
            let mut heard = store.notifications("authority_changes");
            run_workers([store.listener()]);
            assert_eq!(heard.next().await, Some(Notification::Listening));
            let owner = Address::parse(&server.owner_url()).unwrap();
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE application_name = 'agent-authority listener'";
            owner.connect().await.unwrap().batch_execute(end).await.unwrap();
            assert_eq!(heard.next().await, Some(Notification::Listening));
            server.stop().await.unwrap();
        });
        ended.send(()).unwrap();
    });
    is_over.recv_timeout(Duration::from_secs(60)).expect("the listener did not reconnect");
}
