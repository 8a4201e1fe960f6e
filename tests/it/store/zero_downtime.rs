//! Migrations run while the previous release still serves requests. This test refuses statements
//! that would stop or delay that release.
//!
//! A statement can be an exception if the comment before it states why:
//! `-- exception: why it does no harm`.

use std::{collections::BTreeSet, fs, path::Path};

use super::statements::{Statement, clauses, named, statements};

/// The number of the last migration of the first release. No release serves while it runs.
const FIRST_RELEASE: u64 = 12;

/// Returns each faulty statement of a migration, with its fault. `in_transaction` is the value in
/// its metadata.toml.
fn faults(sql: &str, in_transaction: bool) -> Vec<(String, &'static str)> {
    let statements = statements(sql);
    let mut new = BTreeSet::new();
    let mut faults = Vec::new();
    for Statement { text, is_excepted } in &statements {
        new.extend(named(text, "create table ").filter(|_| text.starts_with("create table ")));
        if *is_excepted {
            continue;
        }
        let mut fault = |why| faults.push((text.clone(), why));
        if text.contains(" concurrently ") && (in_transaction || statements.len() > 1) {
            fault("CONCURRENTLY needs a migration of its own, with `run_in_transaction = false`");
        }
        if let Some(rest) = text.strip_prefix("alter table ") {
            let table = named(text, "alter table ").unwrap_or_default();
            if new.contains(table) {
                continue;
            }
            let rest = rest.trim_start_matches("if exists ").trim_start_matches("only ");
            let actions = rest.split_once(' ').map_or("", |(_, actions)| actions);
            clauses(actions).iter().filter_map(|action| unsafe_action(action)).for_each(&mut fault);
        }
        let is_of_new = named(text, " on ").is_some_and(|table| new.contains(table));
        let is_index =
            text.starts_with("create index ") || text.starts_with("create unique index ");
        let is_short = text.contains(" concurrently ") || text.contains(" on only ");
        if is_index && !is_short && !is_of_new {
            fault("an index on an existing table needs CONCURRENTLY, or writes wait for it");
        }
        let revokes = text.starts_with("revoke ") || text.starts_with("call revoke_from(");
        if revokes && !text.contains(" on function ") && !is_of_new {
            fault("the previous release uses the right: revoke it in the next one");
        }
        if text.starts_with("drop table ") {
            fault("the previous release uses the table: drop it in the next one");
        }
        if text.starts_with("alter ") && text.contains(" rename ") {
            fault("the previous release uses the old name: add the new one and keep both");
        }
    }
    faults
}

/// Returns why a clause of ALTER TABLE would harm the previous release.
fn unsafe_action(action: &str) -> Option<&'static str> {
    let column = action.strip_prefix("add column ").or_else(|| {
        let rest = action.strip_prefix("add ")?;
        let first = rest.split(' ').next()?;
        (!["constraint", "check", "unique", "primary", "foreign", "exclude"].contains(&first))
            .then_some(rest)
    });
    if let Some(column) = column {
        let has_value = [" default ", " generated "].iter().any(|word| column.contains(word));
        return (column.contains(" not null") && !has_value).then_some(
            "the previous release inserts rows without the new column: give it a default value",
        );
    }
    let is_type = action.starts_with("alter ")
        && (action.contains(" type ") || action.contains(" set data type "));
    if is_type {
        return Some("a change of a column's type rewrites the table: add another column");
    }
    if action.starts_with("alter ") && action.ends_with(" set not null") {
        return Some(
            "SET NOT NULL reads every row under a lock: add a CHECK that is NOT VALID instead",
        );
    }
    if action.starts_with("add ") {
        return unsafe_constraint(action);
    }
    if action.starts_with("drop ") && !action.starts_with("drop constraint ") {
        return Some("the previous release uses the column: drop it in the next one");
    }
    None
}

/// Returns why adding the constraint to a table with rows would harm the previous release.
fn unsafe_constraint(action: &str) -> Option<&'static str> {
    let has_index = ["unique", "primary key", "exclude"].iter().any(|kind| {
        action.starts_with(&format!("add {kind}")) || action.contains(&format!(" {kind} "))
    });
    if has_index {
        return (!action.contains(" using index ")).then_some(
            "its index is built while writes wait: build it CONCURRENTLY, then USING INDEX",
        );
    }
    (!action.contains(" not valid")).then_some(
        "every row is read under a lock: add it NOT VALID, and VALIDATE it in the next migration",
    )
}

#[test]
fn migrations_let_the_release_before_them_serve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if name.split('_').next().unwrap().parse::<u64>().unwrap() <= FIRST_RELEASE {
            continue;
        }
        let metadata = fs::read_to_string(folder.join("metadata.toml")).unwrap_or_default();
        let in_transaction = !metadata.replace(' ', "").contains("run_in_transaction=false");
        let sql = fs::read_to_string(folder.join("up.sql")).unwrap();
        let faults = faults(&sql, in_transaction);
        assert!(faults.is_empty(), "{name}:\n{faults:#?}");
    }
}

#[test]
fn each_rule_refuses_what_it_is_for() {
    for (sql, why) in [
        ("ALTER TABLE tenants ADD COLUMN a text NOT NULL;", "give it a default"),
        ("ALTER TABLE ONLY tenants\n  ADD a text NOT NULL;", "give it a default"),
        ("ALTER TABLE tenants ADD COLUMN a int, ADD COLUMN b int NOT NULL;", "give it a default"),
        ("CREATE INDEX i ON decisions (tenant_id);", "CONCURRENTLY"),
        ("CREATE UNIQUE INDEX i ON public.events(id);", "CONCURRENTLY"),
        ("CREATE INDEX CONCURRENTLY i ON decisions (id);", "a migration of its own"),
        ("ALTER TABLE tenants ALTER COLUMN a TYPE bigint;", "column's type"),
        ("ALTER TABLE tenants ALTER a SET DATA TYPE bigint;", "column's type"),
        ("ALTER TABLE tenants RENAME COLUMN a TO b;", "old name"),
        ("ALTER TABLE tenants RENAME TO b;", "old name"),
        ("ALTER TABLE tenants DROP COLUMN a;", "drop it in the next"),
        ("DROP TABLE tenants;", "drop it in the next"),
        ("CREATE INDEX i ON tools (tenant_id);", "CONCURRENTLY"),
        ("ALTER TABLE tenants ALTER COLUMN a SET NOT NULL;", "SET NOT NULL"),
        ("ALTER TABLE tenants ADD CONSTRAINT c CHECK (a > 0);", "NOT VALID"),
        ("ALTER TABLE tenants ADD CHECK (a > 0);", "NOT VALID"),
        ("ALTER TABLE tenants ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES b;", "NOT VALID"),
        ("ALTER TABLE tenants ADD FOREIGN KEY (a) REFERENCES b;", "NOT VALID"),
        ("ALTER TABLE tenants ADD UNIQUE (a);", "USING INDEX"),
        ("ALTER TABLE tenants ADD CONSTRAINT u UNIQUE (a);", "USING INDEX"),
        ("ALTER TABLE tenants ADD PRIMARY KEY (a);", "USING INDEX"),
        ("REVOKE INSERT ON tenants FROM somebody;", "the right"),
        ("CALL revoke_from('{tenant}', 'INSERT ON tenants');", "the right"),
        ("DO $$ BEGIN DROP TABLE tenants; END $$;", "drop it in the next"),
        ("DO $$ BEGIN IF a THEN ALTER TABLE tenants RENAME TO b; END IF; END $$;", "old name"),
        (
            "DO $$\nBEGIN\n  EXECUTE format('ALTER TABLE tenants ADD CHECK (%s)', a);\nEND $$;",
            "NOT VALID",
        ),
        (
            "ALTER TABLE tenants DROP COLUMN a; CREATE TABLE tenants (id text);",
            "drop it in the next",
        ),
        ("-- exception: short\nDROP TABLE tenants;", "drop it in the next"),
        (
            "-- exception: of the statement before it alone\nSELECT 1; DROP TABLE tenants;",
            "drop it",
        ),
    ] {
        let found = faults(sql, true);
        assert!(found.iter().any(|(_, told)| told.contains(why)), "{sql}: {found:?}");
    }
}

#[test]
fn what_does_no_harm_passes() {
    for sql in [
        "ALTER TABLE tenants ADD COLUMN a integer CHECK (a BETWEEN 1 AND 9);",
        "ALTER TABLE tenants ADD COLUMN a jsonb NOT NULL DEFAULT '[]', DROP CONSTRAINT c;",
        "CREATE TABLE mine (id text); CREATE INDEX i ON mine (id); ALTER TABLE mine DROP COLUMN a;",
        "ALTER TABLE tenants ADD CONSTRAINT c CHECK (a > 0) NOT VALID;",
        "ALTER TABLE tenants ADD CONSTRAINT c UNIQUE USING INDEX i;",
        "CREATE FUNCTION f() AS $$ $$; REVOKE EXECUTE ON FUNCTION f FROM PUBLIC;",
        "CREATE TABLE mine (id text); CALL revoke_from('{tenant}', 'INSERT ON mine');",
        "CREATE INDEX i ON ONLY decisions (tenant_id);",
        "-- DROP TABLE tenants;\nSELECT 1;",
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DROP TABLE tenants; $$;",
        "-- exception: the table has not been used yet\nDROP TABLE tenants;",
    ] {
        assert_eq!(faults(sql, true), [], "{sql}");
    }
    assert_eq!(faults("CREATE INDEX CONCURRENTLY i ON decisions (id);", false), []);
}
