//! TLS to a real Postgres: what each `sslmode` accepts.
//!
//! The server listens on a loopback address of its own (Linux has many), so that it disturbs no
//! other; its port is Postgres' usual one.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

use authority_core::store::{
    Address,
    embedded::{Embedded, Options},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::number;

const LISTENING: &str = "127.0.0.77";

/// Files `<name>.pem` of an authority, and `<name>.crt`, `<name>.key` that it gave to db.test.
fn authority(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join(format!("{name}.pem")), params.self_signed(&key).unwrap().pem()).unwrap();
    let authority = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let given = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
    let given = given.signed_by(&key, &authority).unwrap();
    fs::write(folder.join(format!("{name}.crt")), given.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

async fn server(folder: &Path) -> Embedded {
    let options = Options { data_dir: folder.join("server"), ..Options::default() };
    let plain = Embedded::start(options.clone()).await.unwrap();
    let home = plain.home().to_owned();
    plain.stop().await.unwrap();
    authority(&home, "ours");
    fs::write(home.join("hba"), "local all all trust\nhostssl all all 127.0.0.0/8 trust\n")
        .unwrap();
    let user = fs::metadata(&home).unwrap();
    for file in ["ours.crt", "ours.key", "hba"] {
        chown(home.join(file), Some(user.uid()), Some(user.gid())).unwrap();
        fs::set_permissions(home.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let path = |file| home.join(file).display().to_string();
    let settings = [
        ("listen_addresses", LISTENING.to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", path("ours.crt")),
        ("ssl_key_file", path("ours.key")),
        ("hba_file", path("hba")),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Embedded::start(Options { settings, ..options }).await.unwrap()
}

#[tokio::test]
async fn each_sslmode_accepts_what_it_says() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = server(folder.path()).await;
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
        // The server refuses plain text.
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
