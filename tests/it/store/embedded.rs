//! The embedded server: crashes of either side, stale files, several users.

use std::{
    env, fs,
    os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    time::{Duration, Instant},
};

use authority_process::folder::data_folder;
use authority_store::{
    Address,
    embedded::{Embedded, Error, Options},
};
use diesel_async::SimpleAsyncConnection;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::time::sleep;

use super::number;
use crate::support::{
    run_workers,
    shown::{forbidden, not_root},
};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn options(folder: &Path) -> Options {
    Options { data_dir: PathBuf::from(folder), ..Options::default() }
}

async fn run(server: &Embedded, sql: &str) {
    let mut db = Address::parse(&server.owner_url()).unwrap().connect().await.unwrap();
    db.batch_execute(sql).await.unwrap();
}

async fn rows(server: &Embedded) -> i64 {
    let mut db = Address::parse(&server.owner_url()).unwrap().connect().await.unwrap();
    number(&mut db, "SELECT count(*) AS n FROM seen").await
}

#[tokio::test]
async fn data_stays_and_settings_are_safe() {
    let folder = folder();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert!(!server.is_joined());
    run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
    let mut login = Address::parse(&server.url()).unwrap().connect().await.unwrap();
    let safe = "SELECT count(*) AS n FROM pg_settings WHERE (name, setting) IN
        (('fsync', 'on'), ('synchronous_commit', 'on'), ('full_page_writes', 'on'),
         ('data_checksums', 'on'), ('listen_addresses', ''))";
    assert_eq!(number(&mut login, safe).await, 5);
    let plain = "SELECT count(*) AS n FROM pg_roles WHERE rolname = current_user AND NOT rolsuper";
    assert_eq!(number(&mut login, plain).await, 1);
    server.stop().await.unwrap();
    assert!(login.batch_execute("SELECT 1").await.is_err());

    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert_eq!(rows(&server).await, 1);
}

#[tokio::test]
async fn the_last_of_several_users_stops_it() {
    let folder = folder();
    let (first, second) = tokio::join!(
        Embedded::start(options(folder.path())),
        Embedded::start(options(folder.path()))
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first.is_joined(), second.is_joined(), "one process starts it, the other joins");
    let (starter, joiner) = if second.is_joined() { (first, second) } else { (second, first) };
    run(&joiner, "CREATE TABLE seen ()").await;
    starter.stop().await.unwrap();
    assert_eq!(rows(&joiner).await, 0, "the server stopped too early");
    joiner.stop().await.unwrap();
}

/// Abandons the server as a killed process would: its locks are released, but the server gets no
/// stop signal.
#[tokio::test]
async fn a_server_left_running_is_rejoined() {
    let folder = folder();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    run(&server, "CREATE TABLE seen ()").await;
    let pid = server.pid();
    server.leave();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert!(server.is_joined());
    assert_eq!((server.pid(), rows(&server).await), (pid, 0));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_server_recovers() {
    let folder = folder();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
    let mut idle = Address::parse(&server.url()).unwrap().connect().await.unwrap();
    kill_hard(&server);
    server.leave();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert!(!server.is_joined());
    assert_eq!(rows(&server).await, 1);
    assert!(idle.batch_execute("SELECT 1").await.is_err());
}

/// After a reboot, the process id in the lock files may belong to any other process. Here it is the
/// test's own.
#[tokio::test]
async fn a_stale_lock_file_of_a_live_process_is_cleared() {
    let folder = folder();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    run(&server, "CREATE TABLE seen ()").await;
    let (home, url) = (server.home().to_owned(), server.owner_url());
    let lock = fs::read_to_string(home.join("data/postmaster.pid")).unwrap();
    server.stop().await.unwrap();
    assert!(!home.join("data/postmaster.pid").exists());
    let lock: Vec<_> = lock.lines().skip(1).collect();
    let lock = format!("{}\n{}\n", process::id(), lock.join("\n"));
    fs::write(home.join("data/postmaster.pid"), &lock).unwrap();
    fs::write(home.join(".s.PGSQL.5432.lock"), &lock).unwrap();

    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert_eq!((rows(&server).await, server.owner_url()), (0, url));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_partial_cluster_is_created_again_and_long_paths_work() {
    let folder = folder();
    let deep = folder.path().join("with a space & more").join("x".repeat(120));
    fs::create_dir_all(deep.join("postgres/data.new/base")).unwrap();
    let server = Embedded::start(options(&deep)).await.unwrap();
    run(&server, "SELECT 1").await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn faults_say_what_to_do() {
    let folder = folder();
    let nowhere = Options { programs: Some("/nowhere".into()), ..options(folder.path()) };
    let fault = Embedded::start(nowhere.clone()).await.unwrap_err();
    assert!(matches!(fault, Error::NoPrograms));
    assert!(fault.to_string().contains("script/postgres"), "{fault}");

    let bad = ("shared_buffers".to_owned(), "lots".to_owned());
    let wrong = Options { settings: vec![bad], ..options(folder.path()) };
    let fault = Embedded::start(wrong).await.unwrap_err().to_string();
    assert!(fault.contains("shared_buffers"), "{fault}");

    let server = Embedded::start(options(folder.path())).await.unwrap();
    let home = server.home().to_owned();
    server.stop().await.unwrap();
    fs::write(home.join("data/PG_VERSION"), "9\n").unwrap();
    let fault = Embedded::start(options(folder.path())).await.unwrap_err();
    assert!(matches!(fault, Error::OtherVersion { made: 9 }), "{fault}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let fault = Embedded::start(options(&file)).await.unwrap_err();
    assert!(matches!(fault, Error::Io { .. }), "{fault}");
}

#[tokio::test]
async fn a_watched_server_that_dies_is_started_again() {
    let folder = folder();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    run_workers([server.watch()]);
    run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
    kill_hard(&server);
    let since = Instant::now();
    while Address::parse(&server.url()).unwrap().connect().await.is_err() {
        assert!(since.elapsed() < Duration::from_secs(30), "the server was not started again");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rows(&server).await, 1);
    server.stop().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.pid(), None, "an abandoned server restarted");
}

/// Runs this same test in another process, which keeps a server running until it is killed.
#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[tokio::test]
async fn the_server_of_a_killed_process_is_rejoined() {
    const HOLD: &str = "AUTHORITY_TEST_HOLD";
    if let Some(folder) = env::var_os(HOLD) {
        let server = Embedded::start(options(Path::new(&folder))).await.unwrap();
        run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
        fs::write(Path::new(&folder).join("ready"), "").unwrap();
        sleep(Duration::from_mins(5)).await;
        return;
    }
    let folder = folder();
    let name = "store::embedded::the_server_of_a_killed_process_is_rejoined";
    let mut other = Command::new(env::current_exe().unwrap());
    other.args(["--exact", name]).env(HOLD, folder.path()).stdout(Stdio::null());
    let mut other = other.spawn().unwrap();
    let since = Instant::now();
    while !folder.path().join("ready").exists() {
        assert!(since.elapsed() < Duration::from_mins(1), "the other process did not start");
        sleep(Duration::from_millis(20)).await;
    }
    other.kill().unwrap();
    other.wait().unwrap();
    let server = Embedded::start(options(folder.path())).await.unwrap();
    assert!(server.is_joined());
    assert_eq!(rows(&server).await, 1);
    server.stop().await.unwrap();
}

/// Runs only as root. The database's user can't enter root's folders: the database is elsewhere.
#[tokio::test]
async fn an_unreachable_folder_has_a_link_to_its_database() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = folder();
    let closed = folder.path().join("closed");
    let private = closed.join("private");
    fs::create_dir(&closed).unwrap();
    let set = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
    set(0o700);
    let server = Embedded::start(options(&private)).await.unwrap();
    run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
    let home = server.home().to_owned();
    let _gone = RemoveOnDrop(home.clone());
    assert!(server.is_elsewhere() && !home.starts_with(folder.path()), "{home:?}");
    assert_eq!(fs::read_link(private.join("postgres")).unwrap(), home);
    server.stop().await.unwrap();
    set(0o755);
    let server = Embedded::start(options(&private)).await.unwrap();
    assert_eq!(server.home(), home, "the database moved when the folder could be entered");
    server.stop().await.unwrap();
    set(0o700);
    // The link to the database moves with the folder.
    let moved = closed.join("moved");
    fs::rename(&private, &moved).unwrap();
    let server = Embedded::start(options(&moved)).await.unwrap();
    assert_eq!((server.home(), rows(&server).await), (home.as_path(), 1));
    server.stop().await.unwrap();
    fs::rename(&moved, &private).unwrap();

    // After the folder is removed, a new database is created.
    fs::remove_dir_all(&private).unwrap();
    let server = Embedded::start(options(&private)).await.unwrap();
    let other = server.home().to_owned();
    let _other_gone = RemoveOnDrop(other.clone());
    run(&server, "CREATE TABLE seen ()").await;
    assert!(server.is_elsewhere() && other != home, "{other:?}");
    assert_eq!(
        server.left_behind(),
        std::slice::from_ref(&home),
        "the earlier database is not reported"
    );
    server.stop().await.unwrap();

    let open = folder.path().join("open");
    Embedded::start(options(&open)).await.unwrap().stop().await.unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
    let fault = Embedded::start(options(&open)).await.unwrap_err();
    assert!(matches!(fault, Error::Unreachable { .. }), "{fault}");
    let remedy = format!("`{0}` has mode 0700; run `chmod g+x {0}`", open.display());
    assert!(fault.to_string().contains(&remedy), "{fault}");
}

/// Runs only as root. A database of an earlier version has no link and gets one.
#[tokio::test]
async fn a_database_without_a_link_is_found_by_its_folder() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = folder();
    let private = folder.path().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    let server = Embedded::start(options(&private)).await.unwrap();
    run(&server, "CREATE TABLE seen (); INSERT INTO seen DEFAULT VALUES").await;
    let home = server.home().to_owned();
    server.stop().await.unwrap();
    let name = home.file_name().unwrap().to_str().unwrap();
    let earlier = home.with_file_name(name.split('-').next().unwrap());
    let _gone = RemoveOnDrop(earlier.clone());
    fs::rename(&home, &earlier).unwrap();
    fs::remove_file(private.join("postgres")).unwrap();
    fs::write(private.join("keys.ring"), "").unwrap();
    let server = Embedded::start(options(&private)).await.unwrap();
    assert_eq!((server.home(), rows(&server).await), (earlier.as_path(), 1));
    server.stop().await.unwrap();
    assert_eq!(fs::read_link(private.join("postgres")).unwrap(), earlier);
}

/// Runs only as root. Root follows only links that it made, and only into its own folder.
#[tokio::test]
async fn a_link_that_root_did_not_make_is_refused() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = folder();
    let (data, kept) = (folder.path().join("data"), folder.path().join("kept"));
    for path in [&data, &kept] {
        fs::create_dir(path).unwrap();
    }
    symlink(&kept, data.join("postgres")).unwrap();
    let refused = Embedded::start(options(&data)).await.unwrap_err();
    assert!(matches!(refused, Error::ForeignLink { .. }), "{refused}");
    fs::remove_file(data.join("postgres")).unwrap();
    symlink("/var/lib/agent-authority/kept", data.join("postgres")).unwrap();
    lchown(data.join("postgres"), Some(65_534), None).unwrap();
    let refused = Embedded::start(options(&data)).await.unwrap_err();
    assert!(matches!(refused, Error::ForeignLink { .. }), "{refused}");
    assert_eq!(fs::metadata(&kept).unwrap().uid(), 0);
}

/// Runs only as root. A start with an external database leaves the folder usable for the embedded
/// one.
#[tokio::test]
async fn a_start_with_another_database_leaves_the_folder_open_to_the_embedded_one() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = folder();
    let home = folder.path().join("data");
    let mode = || fs::metadata(&home).unwrap().permissions().mode() & 0o777;
    Embedded::start(options(&home)).await.unwrap().stop().await.unwrap();
    assert_eq!(mode(), 0o710);
    data_folder(&home, None).unwrap();
    assert_eq!(mode(), 0o710, "the embedded database can't enter");
    // A folder that is open to all becomes private, except that the database's group may enter.
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    data_folder(&home, None).unwrap();
    assert_eq!(mode(), 0o710);
    Embedded::start(options(&home)).await.unwrap().stop().await.unwrap();
    // A folder that its owner made private stays private.
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    data_folder(&home, None).unwrap();
    assert_eq!(mode(), 0o700);
}

/// The database's user may create links where root writes. Root must not follow or overwrite them.
#[tokio::test]
async fn links_in_the_databases_folder_lead_root_nowhere() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let folder = folder();
    let home = folder.path().join("data");
    let server = Embedded::start(options(&home)).await.unwrap();
    let database = server.home().to_owned();
    server.stop().await.unwrap();
    let (kept, made) = (folder.path().join("kept"), folder.path().join("made"));
    fs::write(&kept, "of root").unwrap();
    // A folder named like the old log prevents the service from moving the log there.
    let (log, old) = (database.join("postgres.log"), database.join("postgres.log.1"));
    let _ = fs::remove_file(&old);
    fs::create_dir(&old).unwrap();
    fs::write(old.join("x"), "").unwrap();
    fs::remove_file(&log).unwrap();
    symlink(&kept, &log).unwrap();
    Embedded::start(options(&home)).await.unwrap().stop().await.unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "of root");
    assert!(fs::symlink_metadata(&log).unwrap().is_file(), "the log is still a link");
    for lock in ["launch.lock", "users.lock"] {
        let lock = database.join(lock);
        fs::remove_file(&lock).unwrap();
        symlink(&made, &lock).unwrap();
        let refused = Embedded::start(options(&home)).await.unwrap_err().to_string();
        assert!(refused.contains(&*lock.to_string_lossy()), "{refused}");
        assert!(!made.exists());
        fs::remove_file(&lock).unwrap();
    }
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn kill_hard(server: &Embedded) {
    let pid = server.pid().unwrap().try_into().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
