//! Compares the database's schema with this binary's migrations.

use std::collections::HashSet;

use diesel::{
    QueryDsl,
    migration::{Migration, MigrationSource},
    pg::Pg,
};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use super::{Db, Error, RunQueryDsl, Scope, Store};

/// The migrations of this binary.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

diesel::table! {
    __diesel_schema_migrations (version) {
        version -> Text,
        run_on -> Timestamp,
    }
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
        let versions = __diesel_schema_migrations::table
            .select(__diesel_schema_migrations::version)
            .load::<String>(db);
        Ok(Self::between(&known()?, &versions.await?))
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

fn known() -> Result<Vec<String>, Error> {
    let known: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS
        .migrations()
        .map_err(|fault| Error::Internal(format!("the migrations are unreadable: {fault}")))?;
    Ok(known.iter().map(|each| each.name().version().to_string()).collect())
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
