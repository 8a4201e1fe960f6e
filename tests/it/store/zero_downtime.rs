//! Migrations run while the release before them serves: what would stop it, or hold it up, is refused here.
//!
//! A statement that is an exception says so in the comment before it: `-- exception: why it does no harm`.

use std::{collections::BTreeSet, fs, path::Path};

/// The last migration from before these rules.
const BEFORE: u64 = 46;
/// The tables that grow with use: an index takes minutes there, in which nothing can be written.
const BIG: &[&str] = &[
    "approval_acts",
    "approvals",
    "authority_changes",
    "counters",
    "decision_reports",
    "decisions",
    "event_outbox",
    "events",
    "evidence_packs",
    "fact_blobs",
    "idempotency_keys",
    "log_checkpoints",
    "log_nodes",
    "notifications",
    "reality_snapshots",
    "record_versions",
    "replay_proofs",
    "state_events",
    "webhook_attempts",
    "webhook_deliveries",
];
const EXCEPTION: &str = "-- exception: ";

/// A statement in one line, in lower case and without comments, and whether it has an exception.
struct Statement {
    text: String,
    is_excepted: bool,
}

/// The statements between semicolons; texts in dollars are left out, since they run later.
fn statements(sql: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut text, mut is_excepted) = (String::new(), false);
    for (at, part) in sql.split("$$").enumerate() {
        if at % 2 == 1 {
            continue;
        }
        for line in part.lines() {
            let (code, comment) = line.split_once("--").unwrap_or((line, ""));
            let reason = comment.trim().strip_prefix(EXCEPTION.trim_start_matches('-').trim());
            is_excepted |= reason.is_some_and(|reason| reason.trim().len() >= 20);
            let mut pieces = code.split(';').peekable();
            while let Some(piece) = pieces.next() {
                text.push_str(&piece.to_lowercase());
                text.push(' ');
                if pieces.peek().is_some() {
                    let words: Vec<_> = text.split_whitespace().collect();
                    found.push(Statement { text: words.join(" "), is_excepted });
                    (text, is_excepted) = (String::new(), false);
                }
            }
        }
    }
    found.retain(|statement| !statement.text.is_empty());
    found
}

/// The parts between the commas that are in no parentheses.
fn clauses(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0;
    for letter in text.chars() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(letter);
        }
    }
    found.iter().map(|clause| clause.trim().to_owned()).collect()
}

/// The word after `before`, without quotes, schema and what follows a parenthesis.
fn named<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let rest = text.split_once(before)?.1.trim_start();
    let rest = ["if not exists ", "if exists ", "only "]
        .iter()
        .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let name = rest.split([' ', '(']).next()?;
    Some(name.trim_start_matches("public.").trim_matches('"'))
}

/// What is wrong with a migration; `in_transaction` as its metadata.toml has it.
fn faults(sql: &str, in_transaction: bool) -> Vec<String> {
    let statements = statements(sql);
    let new: BTreeSet<_> =
        statements.iter().filter_map(|each| named(&each.text, "create table ")).collect();
    let mut faults = Vec::new();
    for Statement { text, .. } in statements.iter().filter(|each| !each.is_excepted) {
        let mut fault = |why: &str| faults.push(format!("{why}: {text}"));
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
        let is_index =
            text.starts_with("create index ") || text.starts_with("create unique index ");
        if is_index && !text.contains(" concurrently ") && !text.contains(" on only ") {
            let table = named(text, " on ").unwrap_or_default();
            if BIG.contains(&table) && !new.contains(table) {
                fault("an index on a big table needs CONCURRENTLY, or writes wait for it");
            }
        }
        if text.starts_with("drop table ") {
            fault("the release before this one uses the table: drop it in the next");
        }
        if text.starts_with("alter ") && text.contains(" rename ") {
            fault("the release before this one uses the old name: add the new beside it");
        }
    }
    faults
}

/// Why a clause of ALTER TABLE does harm.
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
            "the release before this one inserts rows without the column: give it a default",
        );
    }
    let is_type = action.starts_with("alter ")
        && (action.contains(" type ") || action.contains(" set data type "));
    if is_type {
        return Some("a change of a column's type writes the table anew: add a column beside it");
    }
    if action.starts_with("drop ") && !action.starts_with("drop constraint ") {
        return Some("the release before this one uses the column: drop it in the next");
    }
    None
}

#[test]
fn migrations_let_the_release_before_them_serve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if name.split('_').next().unwrap().parse::<u64>().unwrap() <= BEFORE {
            continue;
        }
        let metadata = fs::read_to_string(folder.join("metadata.toml")).unwrap_or_default();
        let in_transaction = !metadata.replace(' ', "").contains("run_in_transaction=false");
        let sql = fs::read_to_string(folder.join("up.sql")).unwrap();
        let faults = faults(&sql, in_transaction);
        assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
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
        ("-- exception: short\nDROP TABLE tenants;", "drop it in the next"),
        (
            "-- exception: of the statement before it alone\nSELECT 1; DROP TABLE tenants;",
            "drop it",
        ),
    ] {
        let found = faults(sql, true).join("\n");
        assert!(found.contains(why), "{sql}: {found}");
    }
}

#[test]
fn what_does_no_harm_passes() {
    for sql in [
        "ALTER TABLE tenants ADD COLUMN a integer CHECK (a BETWEEN 1 AND 9);",
        "ALTER TABLE tenants ADD COLUMN a jsonb NOT NULL DEFAULT '[]', DROP CONSTRAINT c;",
        "CREATE TABLE mine (id text); CREATE INDEX i ON mine (id); ALTER TABLE mine DROP COLUMN a;",
        "CREATE INDEX i ON tools (tenant_id);",
        "CREATE INDEX i ON ONLY decisions (tenant_id);",
        "-- DROP TABLE tenants;\nSELECT 1;",
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DROP TABLE tenants; $$;",
        "-- exception: nobody has used the table yet\nDROP TABLE tenants;",
    ] {
        assert_eq!(faults(sql, true), [""; 0], "{sql}");
    }
    assert_eq!(faults("CREATE INDEX CONCURRENTLY i ON decisions (id);", false), [""; 0]);
}
