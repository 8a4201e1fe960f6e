//! Runs this binary's migrations, and compares the database's schema with them.

use std::collections::HashSet;

use diesel::{
    ExpressionMethods, QueryDsl, migration::CREATE_MIGRATIONS_TABLE, result::Error as Sql,
};
use diesel_async::{AsyncConnection, SimpleAsyncConnection};

use super::{
    error::Error,
    pool::Store,
    query::RunQueryDsl,
    transaction::{Db, Scope},
};

/// A change of the schema.
pub(super) struct Migration {
    /// Its number, with leading zeros.
    pub(super) version: &'static str,
    /// The name of its folder.
    name: &'static str,
    pub(super) sql: &'static str,
    /// Whether the migration and the record of its version are one transaction.
    in_transaction: bool,
}

/// The migrations of this binary, in order.
pub(super) const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// The migration that failed, and its error.
#[derive(Debug, thiserror::Error)]
#[error("`{name}`: {error}")]
pub(super) struct Failed {
    name: &'static str,
    pub(super) error: Sql,
}

diesel::table! {
    __diesel_schema_migrations (version) {
        version -> Text,
        run_on -> Timestamp,
    }
}

impl Migration {
    async fn run(&self, db: &mut Db) -> Result<(), Sql> {
        if self.in_transaction {
            db.transaction(async |db| self.apply(db).await).await
        } else {
            self.apply(db).await
        }
    }

    async fn apply(&self, db: &mut Db) -> Result<(), Sql> {
        db.batch_execute(self.sql).await?;
        let version = __diesel_schema_migrations::version.eq(self.version);
        diesel::insert_into(__diesel_schema_migrations::table).values(version).execute(db).await?;
        Ok(())
    }
}

/// Runs the migrations that have not run. Returns their versions.
pub(super) async fn run_pending(db: &mut Db) -> Result<Vec<String>, Failed> {
    let unread = |error| Failed { name: "__diesel_schema_migrations", error };
    db.batch_execute(CREATE_MIGRATIONS_TABLE).await.map_err(unread)?;
    let known: HashSet<_> = run(db).await.map_err(unread)?.into_iter().collect();
    let mut versions = Vec::new();
    for migration in MIGRATIONS.iter().filter(|migration| !known.contains(migration.version)) {
        let named = |error| Failed { name: migration.name, error };
        migration.run(db).await.map_err(named)?;
        versions.push(migration.version.to_owned());
    }
    Ok(versions)
}

/// Returns the versions of the migrations that have run.
async fn run(db: &mut Db) -> Result<Vec<String>, Sql> {
    let versions = __diesel_schema_migrations::table.select(__diesel_schema_migrations::version);
    versions.load(db).await
}

/// The migrations that only one side has, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The migrations of this binary that have not run: the schema is older.
    pub(super) missing: Vec<String>,
    /// The migrations that have run and are unknown to this binary: the schema is newer.
    pub(super) unknown: Vec<String>,
}

impl Difference {
    /// Compares this binary's migrations with the migrations that have run in the database.
    pub(super) async fn read(db: &mut Db) -> Result<Self, Error> {
        let known: Vec<_> = MIGRATIONS.iter().map(|known| known.version.to_owned()).collect();
        Ok(Self::between(&known, &run(db).await?))
    }

    fn between(known: &[String], run: &[String]) -> Self {
        let without = |some: &[String], others: &[String]| {
            let others: HashSet<_> = others.iter().collect();
            let mut left: Vec<_> =
                some.iter().filter(|version| !others.contains(version)).cloned().collect();
            left.sort_unstable();
            left
        };
        Self { missing: without(known, run), unknown: without(run, known) }
    }
}

impl Store {
    /// Whether all migrations of this binary have run.
    ///
    /// Later migrations do not matter: during a rollout, the old version continues to serve.
    pub async fn is_current(&self) -> Result<bool, Error> {
        let read = async move |db: &mut Db| Difference::read(db).await;
        Ok(self.read_tx(&Scope::service(), read).await?.missing.is_empty())
    }
}

/// Formats the numbers of migrations for people: `47`, or `47 to 49`.
pub(super) fn numbers(versions: &[String]) -> String {
    let number = |version: &String| version.trim_start_matches('0').to_owned();
    match versions {
        [] => String::new(),
        [one] => number(one),
        [first, .., last] => format!("{} to {}", number(first), number(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_told_what_the_other_has() {
        let versions =
            |numbers: &[&str]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>();
        let known = versions(&["01", "02", "10"]);
        let found = Difference::between(&known, &versions(&["11", "01", "12"]));
        assert_eq!(
            (numbers(&found.missing), numbers(&found.unknown)),
            ("2 to 10".into(), "11 to 12".into())
        );
        let same = Difference::between(&known, &known);
        assert!(same.missing.is_empty() && same.unknown.is_empty());
        assert_eq!(numbers(&versions(&["0047"])), "47");
    }
}
