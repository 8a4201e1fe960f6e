//! Checks that the server's login has the rights that it needs in the database, and finds rights
//! that it doesn't need.
//!
//! The serving login does not own any objects. The three roles that it takes in transactions cannot
//! alter tables, disable triggers or truncate records. Another login owns the tables and migrates.

use diesel::{
    QueryableByName,
    sql_types::{Array, Text},
};

use super::{
    address::Address,
    digests,
    error::Error,
    migrate::{current_database, set_config},
    query::RunQueryDsl,
    roles, schema_faults, session,
    transaction::Db,
    versions::{Difference, numbers},
};

diesel::define_sql_function! { fn authority_role(kind: Text) -> Text; }

/// Selects the reason why the database must be migrated first; empty if it need not be. The
/// parameters are the names of the roles, and the name of the role that reads the versions.
const UNMIGRATED: &str = "
    SELECT CASE
        WHEN versions.oid IS NULL THEN 'it has no schema yet'
        WHEN (SELECT count(*) FROM pg_roles WHERE rolname = ANY ($1)) < cardinality($1)
            THEN 'it was copied, renamed or restored, and its own roles are missing'
        WHEN NOT has_table_privilege($2, versions.oid, 'SELECT')
            THEN 'a migration of it was interrupted'
        ELSE '' END AS text
    FROM (SELECT max(c.oid) AS oid
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = 'public' AND c.relname = '__diesel_schema_migrations') AS versions";

/// Selects the statements that grant the rights that the login lacks.
const LACKING: &str = "
    WITH server AS (SELECT current_setting('server_version_num')::integer >= 160000 AS is_16)
    SELECT format('GRANT %I TO %I', rolname, current_user)
           || CASE WHEN is_16 THEN ' WITH INHERIT FALSE, SET TRUE' ELSE '' END AS text
    FROM pg_roles, server
    WHERE rolname = ANY ($1)
      AND NOT pg_has_role(pg_roles.oid, CASE WHEN is_16 THEN 'SET' ELSE 'MEMBER' END)
    UNION ALL
    SELECT format('GRANT USAGE ON SCHEMA public TO %I', current_user)
    WHERE NOT has_schema_privilege('public', 'USAGE')";

/// Selects the login's rights that serving does not need, each as a clause.
const EXCESS: &str = "
    WITH me AS (SELECT oid, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles
                WHERE rolname = current_user),
         taken AS (SELECT pg_roles.oid, rolname FROM pg_roles, me
                   WHERE NOT me.rolsuper AND pg_has_role(pg_roles.oid, 'MEMBER')),
         tables AS (SELECT oid, relowner, relname FROM pg_class
                    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p'))
    SELECT 'is a superuser, which no permission check restricts' AS text FROM me WHERE rolsuper
    UNION ALL
    SELECT 'sees every tenant (BYPASSRLS)' FROM me WHERE rolbypassrls AND NOT rolsuper
    UNION ALL
    SELECT 'can make roles and join others (CREATEROLE)' FROM me WHERE rolcreaterole AND NOT rolsuper
    UNION ALL
    SELECT 'owns the database and can drop it' FROM pg_database
    WHERE datname = current_database() AND datdba IN (SELECT oid FROM taken)
    UNION ALL
    SELECT format('owns %s tables and can alter, drop and truncate them and disable their triggers',
                  count(*))
    FROM tables WHERE relowner IN (SELECT oid FROM taken) HAVING count(*) > 0
    UNION ALL
    SELECT format('can truncate or add triggers to `%s`', min(relname)) FROM tables
    WHERE relowner NOT IN (SELECT oid FROM taken)
      AND EXISTS (SELECT FROM taken WHERE has_table_privilege(taken.oid, tables.oid, 'TRUNCATE, TRIGGER'))
    HAVING count(*) > 0
    UNION ALL
    SELECT 'can create tables in the schema `public`'
    WHERE EXISTS (SELECT FROM taken WHERE has_schema_privilege(taken.oid, 'public', 'CREATE'))
    UNION ALL
    SELECT format('has the rights of `%s` at all times, not only in transactions that take it (INHERIT)', rolname)
    FROM taken WHERE rolname = ANY ($1) AND pg_has_role(taken.oid, 'USAGE')";

/// Information for operators about a login that can serve.
#[derive(Debug)]
pub struct Serving {
    /// The rights that serving does not need: `owns the database, …`.
    pub excess: Vec<String>,
    /// The migrations that this binary does not know, such as `48 to 49`, if the schema is newer.
    pub newer: Option<String>,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

impl Serving {
    /// Connects as the serving login and inspects the database.
    ///
    /// # Errors
    /// [`Error::Address`] with the command to run if the database must be migrated first, or if it
    /// was created by other migrations than this binary's. If the login lacks a right, the error
    /// has the GRANT instead.
    pub async fn inspect(login: &Address) -> Result<Self, Error> {
        let mut db = login.connect().await?;
        session::check(&mut db).await?;
        let database: String = diesel::select(current_database()).get_result(&mut db).await?;
        let names = roles::names(&database);
        let unmigrated = diesel::sql_query(UNMIGRATED)
            .bind::<Array<Text>, _>(&names)
            .bind::<Text, _>(roles::system(&database));
        let unmigrated: Line = unmigrated.get_result(&mut db).await?;
        if !unmigrated.text.is_empty() {
            return Err(to_migrate(login, &unmigrated.text));
        }
        let lacking = lines(&mut db, LACKING, &names).await?;
        if !lacking.is_empty() {
            return Err(Error::Address(format!(
                "the login `{}` lacks rights to serve the database {}; run there as its owner or a superuser: {}",
                login.user().unwrap_or_default(),
                login.place(),
                lacking.join("; ")
            )));
        }
        let excess = lines(&mut db, EXCESS, &names).await?;
        let newer = newer(&mut db, login, &roles::system(&database)).await?;
        if let Some(faults) = schema_faults::read(&mut db).await? {
            let place = login.place();
            return Err(Error::Address(format!("the database {place} cannot be served: {faults}")));
        }
        Ok(Self { excess, newer })
    }
}

async fn lines(db: &mut Db, sql: &'static str, names: &[String]) -> Result<Vec<String>, Error> {
    let found = diesel::sql_query(sql).bind::<Array<Text>, _>(names).load::<Line>(db).await?;
    Ok(found.into_iter().map(|line| line.text).collect())
}

/// Returns the migrations that this binary does not know, if any.
async fn newer(db: &mut Db, login: &Address, system: &str) -> Result<Option<String>, Error> {
    let role: String = diesel::select(authority_role("system")).get_result(db).await?;
    if role != system {
        return Err(to_migrate(
            login,
            "it was copied, and its rights still belong to the original database",
        ));
    }
    diesel::select(set_config("role", role, false)).execute(db).await?;
    digests::check(db, login).await?;
    let difference = Difference::read(db).await?;
    if !difference.missing.is_empty() {
        let missing = numbers(&difference.missing);
        let why = format!("its schema is older than this binary and lacks migration {missing}");
        return Err(to_migrate(login, &why));
    }
    Ok(Some(numbers(&difference.unknown)).filter(|unknown| !unknown.is_empty()))
}

fn to_migrate(login: &Address, why: &str) -> Error {
    Error::Address(format!(
        "the database {} cannot be served: {why}; run `agent-authority migrate` with the URL of its owner \
         (DATABASE_OWNER_URL or `database.owner_url`)",
        login.place()
    ))
}
