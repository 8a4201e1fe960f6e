//! Starting the service on a database that it must not use or can't reach.

use std::{path::Path, sync::Arc, time::Duration};

use authority_store::{Address, locks};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use tokio::{
    net::{TcpListener, UnixStream},
    time::{Instant, sleep, timeout},
};

use crate::{
    command_line::run,
    faults::process::{Folder, Service, allowed},
    support::{Answered, Client, TestApp, Wishes, database::Database, tls::TlsFiles},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn production_refuses_a_database_that_development_has_used() {
    let used = Arc::new(Database::fresh().await);
    let app = TestApp::on(Arc::clone(&used), Wishes::default()).await;
    app.demo().await;
    let ring = app.ring().to_owned();
    // The service is stopped first, because a migration with another login would take its rights.
    app.supervisor.stop().await;
    drop(app);
    let production = |database: &Database| {
        let (url, ring) = (database.owner_url(), ring.clone());
        move || {
            let settings = [
                ("DATABASE_URL", url.as_str()),
                ("AGENT_AUTHORITY__KEYS__RING", ring.as_str()),
                ("AGENT_AUTHORITY__IDENTITY__ISSUER", "https://id.example.org"),
                ("AGENT_AUTHORITY__IDENTITY__AUDIENCE", "authority"),
                ("AGENT_AUTHORITY__LISTEN__PUBLIC_URL", "https://authority.example.org"),
            ];
            run(&["migrate", "--production"], &settings)
        }
    };
    let refused = tokio::task::spawn_blocking(production(&used)).await.unwrap();
    let (code, _, told) = refused;
    assert_eq!(code, 1, "{told}");
    for part in [
        "production refuses this database, since development has used it",
        "of the development identity provider",
        "the tenant `svc:tenant:acme` of the demonstration",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let clean = Database::fresh().await;
    for _ in 0..2 {
        let (code, printed, told) = tokio::task::spawn_blocking(production(&clean)).await.unwrap();
        assert_eq!(code, 0, "{told}");
        // This database is a copy of a migrated one.
        assert_eq!(printed, "the database is up to date\n");
    }
}

/// Returns the settings of a service that uses an external identity provider.
fn external(database: &Database, folder: &Path) -> [(&'static str, String); 7] {
    let ring = ["main:", &"A".repeat(43), "="].concat();
    [
        ("DATABASE_URL", database.owner_url()),
        ("AGENT_AUTHORITY__DATA_DIR", folder.to_str().unwrap().to_owned()),
        ("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0".to_owned()),
        ("AGENT_AUTHORITY__KEYS__RING", ring),
        ("AGENT_AUTHORITY__IDENTITY__ISSUER", "https://id.example.org".to_owned()),
        ("AGENT_AUTHORITY__IDENTITY__AUDIENCE", "authority".to_owned()),
        ("AGENT_AUTHORITY__LISTEN__PUBLIC_URL", "https://authority.example.org".to_owned()),
    ]
}

/// With an external provider, development creates neither keys nor a demonstration. Only the record
/// of its start shows that development has used the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn production_refuses_a_database_on_which_development_only_started() {
    let database = Database::fresh().await;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = external(&database, folder.path());
    tokio::task::spawn_blocking(move || {
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        // This command opens the configured database, as `serve` does.
        let (code, _, told) = run(&["keys", "rewrap"], &settings);
        assert_eq!(code, 0, "{told}");
        let (code, _, told) = run(&["migrate", "--production"], &settings);
        assert_eq!(code, 1, "{told}");
        let (_, found) = told.split_once("it holds ").unwrap();
        assert!(
            found.starts_with("the row in `development_use` of a start in development at 2"),
            "{told}"
        );
        assert!(!found.contains(" UTC, "), "other traces: {told}");
    })
    .await
    .unwrap();
}

/// A shell often has the `DATABASE_URL` of another application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_refuses_a_database_with_tables_of_another_application() {
    let database = Database::empty().await;
    database.run("CREATE SCHEMA shop; CREATE TABLE shop.customers (id int)").await;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (url, data) = (database.owner_url(), folder.path().display().to_string());
    tokio::task::spawn_blocking(move || {
        let settings = [
            ("DATABASE_URL", url.as_str()),
            ("AGENT_AUTHORITY__DATA_DIR", data.as_str()),
            ("AGENT_AUTHORITY__LISTEN__MAIN", "127.0.0.1:0"),
            ("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0"),
        ];
        for command in [&["dev"][..], &["serve"], &["migrate"], &["seed", "demo"]] {
            let (code, _, told) = run(command, &settings);
            assert_eq!(code, 1, "{command:?}: {told}");
            for part in ["tables of another application", "unset DATABASE_URL"] {
                assert!(told.contains(part), "{command:?}: {told}");
            }
        }
    })
    .await
    .unwrap();
    // No table was added.
    let mut db = database.owner().await;
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname IN ('public', 'shop')";
    let count = diesel::sql_query(format!("{tables} HAVING count(*) = 1"));
    assert_eq!(count.execute(&mut db).await.unwrap(), 1);
    // Without the other application's tables, the database can be used.
    database.run("DROP SCHEMA shop CASCADE").await;
    let (url, data) = (database.owner_url(), folder.path().display().to_string());
    let migrate = move || run(&["migrate", "--data-dir", &data], &[("DATABASE_URL", url.as_str())]);
    let (code, _, told) = tokio::task::spawn_blocking(migrate).await.unwrap();
    assert_eq!(code, 0, "{told}");
}

/// If a production machine lost its settings, it would start in development.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_refuses_a_database_that_production_has_used() {
    let database = Database::fresh().await;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = external(&database, folder.path());
    tokio::task::spawn_blocking(move || {
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        let (code, _, told) = run(&["migrate", "--production"], &settings);
        assert_eq!(code, 0, "{told}");
        let (address, folder, ops) = (&settings[0], &settings[1], &settings[2]);
        for (command, settings) in [
            (&["migrate"][..], &settings[..]),
            (&["serve", "--listen", "127.0.0.1:0"], &settings),
            (&["serve", "--listen", "127.0.0.1:0"], &[*address, *folder, *ops]),
        ] {
            let (code, _, told) = run(command, settings);
            assert_eq!(code, 1, "{command:?}: {told}");
            assert!(told.contains("development refuses this database, since production"), "{told}");
        }
        let another = ("DATABASE_URL", "postgres://someone@127.0.0.1/another");
        let (code, _, told) =
            run(&["serve"], &[("DATABASE_OWNER_URL", address.1), another, *folder, *ops]);
        assert_eq!(code, 1, "{told}");
        assert!(
            told.contains("but `database.url` names `another`: they must name the same"),
            "{told}"
        );
        let (code, _, told) = run(&["migrate", "--production"], &settings);
        assert_eq!(code, 0, "refused its own: {told}");
    })
    .await
    .unwrap();
}

/// At development's first check, production is not recorded yet. At the second check, after a wait,
/// it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_environments_that_start_at_once_one_has_the_database() {
    let database = Database::fresh().await;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = external(&database, folder.path());
    let mut production = database.owner().await;
    let takes = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({}); INSERT INTO production_use DEFAULT VALUES",
        locks::ENVIRONMENT
    );
    production.batch_execute(&takes).await.unwrap();
    let development = tokio::task::spawn_blocking(move || {
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        run(&["keys", "rewrap"], &settings)
    });
    let until_it_waits = "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks \
         WHERE locktype = 'advisory' AND NOT granted AND database = \
               (SELECT oid FROM pg_database WHERE datname = current_database())) \
         LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";
    timeout(Duration::from_secs(60), database.run(until_it_waits)).await.unwrap();
    production.batch_execute("COMMIT").await.unwrap();
    let (code, _, told) = development.await.unwrap();
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("development refuses this database, since production"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_starts_late_is_waited_for() {
    let database = Database::fresh().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (user, name) = database.names();
    let url = format!("postgres://{user}@127.0.0.1:{port}/{name}?sslmode=disable");
    let address = Address::parse(&url).unwrap();
    let socket = database.socket();
    tokio::spawn(async move {
        sleep(Duration::from_millis(1200)).await;
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let since = Instant::now();
    address.wait(Duration::from_secs(30)).await.unwrap();
    assert!(since.elapsed() >= Duration::from_millis(1200), "it did not wait");
}

/// A fault that waiting can't fix is reported at once, with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_told_at_once_with_the_remedy() {
    let database = Database::fresh().await;
    let (user, name) = database.names();
    // The URL contains the socket's folder, which may also contain the login's name.
    let user = format!("//{user}@");
    for (from, to, told) in [
        (name, "not_there", "create it: CREATE DATABASE \"not_there\" OWNER"),
        (user.as_str(), "//nobody@", "create the login `nobody`, or admit it in pg_hba.conf"),
    ] {
        let address = Address::parse(&database.url().replace(from, to)).unwrap();
        let since = Instant::now();
        let error = address.wait(Duration::from_secs(30)).await.err().unwrap().to_string();
        assert!(error.starts_with("no connection to PostgreSQL at /"), "{error}");
        assert!(error.contains(told), "{error}");
        assert!(since.elapsed() < Duration::from_secs(10), "it waited");
    }
}

/// With a certificate, the real program accepts TLS only on every address, and its output has https
/// URLs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_certificate_has_tls_on_every_address() {
    let (files, folder) = (TlsFiles::new(), Folder::new("tls"));
    let mut service = Service::with_tls(&files, &folder);
    let answer = service.client.evaluate(allowed()).await.assert_status(200);
    let receipt = answer["verify_url"].as_str().unwrap();
    assert!(receipt.starts_with(&service.client.base), "{receipt}");
    assert!(service.banner().contains(&service.client.base), "{}", service.banner());
    let metrics = service.metrics().await;
    let expires = metrics
        .lines()
        .find_map(|line| line.strip_prefix("authority_tls_certificate_expires_seconds "))
        .and_then(|value| value.parse::<f64>().ok());
    assert!(expires.is_some_and(|expires| expires > 1.7e9), "{metrics}");
    assert!(metrics.contains("authority_tls_files_refused 0\n"), "{metrics}");
    let plain = service.client.base.replace("https://", "http://");
    let (status, told) = Client::new(&plain, "").text("GET", "/health/ready", None).await;
    assert_eq!(status, 400, "{told}");
    service.stop();
}
