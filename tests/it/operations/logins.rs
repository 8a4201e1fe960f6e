//! Two logins: one owns the tables and migrates, the other serves and can't change the schema.

use std::sync::atomic::{AtomicU32, Ordering};

use authority_store::{Address, Db, Serving};
use diesel_async::SimpleAsyncConnection;
use tokio::task::spawn_blocking;

use crate::{
    command_line::run,
    support::database::{Database, cluster, drop_database},
};

/// A database with two logins that were created as docs/operations/production.md describes.
struct Installation {
    database: String,
    owner: String,
    login: String,
}

impl Installation {
    async fn prepare() -> Self {
        Database::empty().await;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}_l{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Self {
            database: format!("test_{mark}"),
            owner: format!("owner_{mark}"),
            login: format!("serving_{mark}"),
        };
        let Self { database, owner, login } = &made;
        administer("postgres", &format!("CREATE ROLE {owner} LOGIN NOINHERIT CREATEROLE")).await;
        administer("postgres", &format!("CREATE ROLE {login} LOGIN NOINHERIT")).await;
        administer("postgres", &format!("CREATE DATABASE {database} OWNER {owner}")).await;
        administer(database, &format!("ALTER SCHEMA public OWNER TO {owner}")).await;
        made
    }

    fn url(&self, login: &str) -> String {
        let url = cluster().owner_url_of(&self.database);
        url.replace("//postgres@", &format!("//{login}@"))
    }

    #[track_caller]
    fn address(&self, login: &str) -> Address {
        Address::parse(&self.url(login)).unwrap()
    }

    async fn connect(&self, login: &str) -> Db {
        self.address(login).connect().await.unwrap()
    }

    /// Runs the program in production with the serving login's URL and, if given, the owner's URL.
    async fn run(&self, args: &'static [&str], owner: Option<&str>) -> (i32, String) {
        self.run_with(&[], args, owner).await
    }

    async fn run_with(
        &self,
        more: &'static [(&str, &str)],
        args: &'static [&str],
        owner: Option<&str>,
    ) -> (i32, String) {
        let (url, owner) = (self.url(&self.login), owner.map(|owner| self.url(owner)));
        let ran = spawn_blocking(move || {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().display().to_string();
            let mut settings =
                vec![("DATABASE_URL", url.as_str()), ("AGENT_AUTHORITY__DATA_DIR", &folder)];
            settings.extend(PRODUCTION);
            settings.extend(owner.as_deref().map(|owner| ("DATABASE_OWNER_URL", owner)));
            settings.extend(more);
            let (code, said, told) = run(args, &settings);
            (code, format!("{said}{told}"))
        });
        ran.await.unwrap()
    }

    #[track_caller]
    fn ended_well((code, told): (i32, String)) -> String {
        assert_eq!(code, 0, "{told}");
        told
    }

    async fn migrated() -> Self {
        let made = Self::prepare().await;
        Self::ended_well(made.run(&["migrate"], Some(&made.owner)).await);
        made
    }

    async fn clear(self) {
        let mut server =
            Address::parse(&cluster().owner_url_of("postgres")).unwrap().connect().await.unwrap();
        drop_database(&mut server, &self.database).await.unwrap();
        let roles = format!("DROP ROLE {}; DROP ROLE {}", self.login, self.owner);
        server.batch_execute(&roles).await.unwrap();
    }
}

/// Production settings with unused addresses, because other programs may use the default ports.
const PRODUCTION: [(&str, &str); 7] = [
    ("AGENT_AUTHORITY__LISTEN__MAIN", "127.0.0.1:0"),
    ("AGENT_AUTHORITY__LISTEN__OPS", "127.0.0.1:0"),
    ("AGENT_AUTHORITY__ENVIRONMENT", "production"),
    ("AGENT_AUTHORITY__KEYS__RING", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("AGENT_AUTHORITY__IDENTITY__ISSUER", "https://id.example.org"),
    ("AGENT_AUTHORITY__IDENTITY__AUDIENCE", "authority"),
    ("AGENT_AUTHORITY__LISTEN__PUBLIC_URL", "https://authority.example.org"),
];

async fn administer(database: &str, sql: &str) {
    let address = Address::parse(&cluster().owner_url_of(database)).unwrap();
    let done = address.connect().await.unwrap().batch_execute(sql).await;
    done.unwrap_or_else(|fault| panic!("{fault}\n{sql}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_serving_login_changes_nothing_about_the_tables() {
    let made = Installation::migrated().await;
    let told = Installation::ended_well(made.run(&["keys", "rewrap"], None).await);
    assert!(!told.contains("more rights than serving needs"), "{told}");
    let found = Serving::inspect(&made.address(&made.login)).await.unwrap();
    assert!(found.excess.is_empty() && found.newer.is_none(), "{found:?}");

    let mut db = made.connect(&made.login).await;
    for role in ["none", "authority_tenant_", "authority_recorder_", "authority_system_"] {
        let role =
            if role == "none" { role.to_owned() } else { format!("{role}{}", made.database) };
        db.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        for sql in [
            "ALTER TABLE decisions DISABLE TRIGGER ALL",
            "DROP TRIGGER append_only ON decisions",
            "CREATE TRIGGER mine BEFORE INSERT ON decisions EXECUTE FUNCTION refuse_change()",
            "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE sql AS ''",
            "ALTER TABLE decisions ADD COLUMN mine text",
            "ALTER TABLE tenants DISABLE ROW LEVEL SECURITY",
            "DROP POLICY tenant ON tenants",
            "DROP TABLE decisions",
            "TRUNCATE decisions",
            "TRUNCATE record_versions",
            "CREATE TABLE mine (id text)",
            "CREATE ROLE mine",
            "SELECT remove_archived('svc:tenant:acme', '2020-01')",
            "SELECT drop_archived_partitions()",
            "CALL allow_removal(true)",
            "SET session_replication_role = replica",
        ] {
            assert!(db.batch_execute(sql).await.is_err(), "as {role}: {sql}");
        }
    }
    made.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrate_lets_the_service_remove_archived_rows_while_there_is_an_archive() {
    const ARCHIVE: [(&str, &str); 1] = [("AGENT_AUTHORITY__ARCHIVE__URL", "s3://bucket/prefix")];
    let made = Installation::migrated().await;
    for (more, is_allowed) in [(&ARCHIVE[..], true), (&[], false)] {
        Installation::ended_well(made.run_with(more, &["migrate"], Some(&made.owner)).await);
        let mut db = made.connect(&made.login).await;
        let role = format!("SET ROLE authority_system_{}", made.database);
        db.batch_execute(&role).await.unwrap();
        let removal = "SELECT remove_archived('svc:tenant:acme', '2020-01')";
        assert_eq!(db.batch_execute(removal).await.is_ok(), is_allowed);
    }
    made.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_production_only_migrate_migrates() {
    let made = Installation::prepare().await;
    // `keys rewrap` comes first because it exits. `serve` would keep running if it were not
    // refused.
    for command in [&["keys", "rewrap"][..], &["serve"]] {
        let (code, told) = made.run(command, Some(&made.owner)).await;
        assert_eq!(code, 1, "{command:?} migrated: {told}");
        for part in ["it has no schema yet", "run `agent-authority migrate`", "DATABASE_OWNER_URL"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    let (code, told) = made.run(&["migrate"], None).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("migrate with the URL of the database's owner"), "{told}");
    Installation::ended_well(made.run(&["migrate"], Some(&made.owner)).await);

    let versions = "__diesel_schema_migrations";
    let forget =
        format!("DELETE FROM {versions} WHERE version IN ('00000000000011', '00000000000012')");
    administer(&made.database, &forget).await;
    let (code, told) = made.run(&["serve"], None).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("older than this binary and lacks migration 11 to 12"), "{told}");

    let later = format!(
        "INSERT INTO {versions} VALUES ('00000000000011'), ('00000000000012'), ('00000000009998'), ('00000000009999')"
    );
    administer(&made.database, &later).await;
    for command in [&["keys", "rewrap"][..], &["migrate"]] {
        let owner = (command == ["migrate"]).then_some(made.owner.as_str());
        let told = Installation::ended_well(made.run(command, owner).await);
        assert!(told.contains("newer than this binary") && told.contains("9998 to 9999"), "{told}");
    }
    made.clear().await;
}

/// An attacker who controls a node that serves as the owner can alter the evidence. Serving as the
/// owner must therefore be configured explicitly, as `database.url`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owners_login_alone_does_not_serve() {
    let made = Installation::migrated().await;
    let url = made.url(&made.owner);
    let ran = spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().display().to_string();
        let mut settings =
            vec![("DATABASE_OWNER_URL", url.as_str()), ("AGENT_AUTHORITY__DATA_DIR", &folder)];
        settings.extend(PRODUCTION);
        run(&["keys", "rewrap"], &settings)
    });
    let (code, _, told) = ran.await.unwrap();
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("`database.owner_url` is for `migrate` alone"), "{told}");
    made.clear().await;
}

/// A copied database grants the same rights as the original: the original's login could use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_database_is_migrated_first() {
    let copy = Database::fresh().await;
    let told = Serving::inspect(&copy.address()).await.unwrap_err().to_string();
    assert!(told.contains("its own roles are missing; run `agent-authority migrate`"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_is_named_with_its_grant() {
    let made = Installation::migrated().await;
    let role = format!("authority_recorder_{}", made.database);
    administer(&made.database, &format!("REVOKE {role} FROM {}", made.login)).await;
    administer(&made.database, "REVOKE USAGE ON SCHEMA public FROM PUBLIC").await;
    administer(&made.database, &format!("REVOKE USAGE ON SCHEMA public FROM {}", made.login)).await;
    let mut told = String::new();
    // `keys rewrap` comes first because it exits. `serve` would keep running if it were not
    // refused.
    for command in [&["keys", "rewrap"][..], &["serve"]] {
        let (code, said) = made.run(command, None).await;
        assert_eq!(code, 1, "{command:?}: {said}");
        assert!(said.contains("lacks rights to serve"), "{command:?}: {said}");
        told = said;
    }
    let grants = told.split("superuser: ").nth(1).unwrap().trim().trim_end_matches('"').to_owned();
    assert!(grants.contains(&format!("GRANT {role} TO {}", made.login)), "{told}");
    assert!(grants.contains(&format!("GRANT USAGE ON SCHEMA public TO {}", made.login)), "{told}");
    // The owner can run the printed grants as they are.
    made.connect(&made.owner).await.batch_execute(&grants).await.unwrap();
    Serving::inspect(&made.address(&made.login)).await.unwrap();

    administer("postgres", &format!("ALTER ROLE {} RENAME TO gone_{}", made.login, made.login))
        .await;
    let (code, told) = made.run(&["migrate"], Some(&made.owner)).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains(&format!("CREATE ROLE {} LOGIN NOINHERIT", made.login)), "{told}");
    administer("postgres", &format!("ALTER ROLE gone_{} RENAME TO {}", made.login, made.login))
        .await;
    made.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_login_may_beyond_serving_is_told() {
    let mut made = Installation::migrated().await;
    let found = Serving::inspect(&made.address(&made.owner)).await.unwrap().excess.join("; ");
    for part in ["(CREATEROLE)", "owns the database", "tables and can alter", "create tables"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let superuser = Serving::inspect(&made.address("postgres")).await.unwrap().excess;
    assert_eq!(superuser, ["is a superuser, which no permission check restricts"]);

    let login = made.login.clone();
    administer(&made.database, &format!("GRANT TRUNCATE ON decisions TO {login}")).await;
    administer(&made.database, &format!("ALTER ROLE {login} BYPASSRLS INHERIT")).await;
    let found = Serving::inspect(&made.address(&login)).await.unwrap().excess.join("; ");
    for part in ["(BYPASSRLS)", "can truncate or add triggers to `decisions`"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    administer(&made.database, &format!("REVOKE TRUNCATE ON decisions FROM {login}")).await;

    // A single login may both own and serve. The start then prints a warning.
    made.login = std::mem::replace(&mut made.owner, login);
    let told = Installation::ended_well(made.run(&["keys", "rewrap"], None).await);
    assert!(told.contains("more rights than serving needs"), "{told}");
    made.clear().await;
}
