//! Checks that `crates/model/src/schema.rs` matches the migrations. To generate it again:
//! `AUTHORITY_UPDATE=1 cargo test --test it schema`.

use std::{env, fmt::Write, fs, path::Path};

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Text},
};
use diesel_async::RunQueryDsl;

use crate::support::database::Database;

const HEAD: &str = "//! @generated: the tables as the migrations make them. Written by \
                    `AUTHORITY_UPDATE=1 cargo test --test it schema`.\n";

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Array<Text>)]
    keys: Vec<String>,
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Bool)]
    is_nullable: bool,
}

/// Selects the columns of tables that have a primary key. Partitions are omitted.
const TABLES: &str = "
    SELECT t.relname::text AS name, array_agg(a.attname::text ORDER BY k.place) AS keys
    FROM pg_class t
    JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p')
      AND NOT t.relispartition
      AND t.relname NOT IN ('__diesel_schema_migrations', 'migration_digests')
    GROUP BY t.relname ORDER BY t.relname";

const COLUMNS: &str = "
    SELECT table_name::text, column_name::text AS name, udt_name::text AS kind,
           is_nullable = 'YES' AS is_nullable
    FROM information_schema.columns WHERE table_schema = 'public'
    ORDER BY table_name, ordinal_position";

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[tokio::test]
async fn schema_is_what_the_migrations_make() {
    let database = Database::fresh().await;
    let mut db = database.owner().await;
    let tables: Vec<Table> = diesel::sql_query(TABLES).load(&mut db).await.unwrap();
    let columns: Vec<Column> = diesel::sql_query(COLUMNS).load(&mut db).await.unwrap();
    let made = schema(&tables, &columns);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/model/src/schema.rs");
    if env::var_os("AUTHORITY_UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if kept != made {
        let differs = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
        panic!("run AUTHORITY_UPDATE=1 cargo test --test it schema; first difference: {differs:?}");
    }
}

fn schema(tables: &[Table], columns: &[Column]) -> String {
    let mut text = HEAD.to_owned();
    for table in tables {
        let keys = table.keys.join(", ");
        let begin = "diesel::table! {";
        write!(text, "\n{begin}\n    {} ({keys}) {{\n", table.name).unwrap();
        for column in columns.iter().filter(|column| column.table_name == table.name) {
            let name = &column.name;
            // The column has the name of a Rust keyword or of its own table.
            let is_taken = RESERVED.contains(&name.as_str()) || *name == table.name;
            if is_taken {
                writeln!(text, "        #[sql_name = \"{name}\"]").unwrap();
            }
            let mark = if is_taken { "_" } else { "" };
            writeln!(text, "        {name}{mark} -> {},", sql_type(column)).unwrap();
        }
        text.push_str("    }\n}\n");
    }
    text
}

const RESERVED: &[&str] = &[
    "as", "box", "fn", "in", "match", "mod", "move", "override", "ref", "self", "type", "use",
    "where",
];

fn sql_type(column: &Column) -> String {
    let (kind, is_array) = match column.kind.strip_prefix('_') {
        Some(kind) => (kind, true),
        None => (column.kind.as_str(), false),
    };
    let kind = match kind {
        "bytea" if (&*column.table_name, &*column.name) == ("decisions", "record") => {
            "crate::stored_record::StoredRecord"
        }
        "text" => "Text",
        "bool" => "Bool",
        "int2" => "Int2",
        "int4" => "Int4",
        "int8" => "Int8",
        "float8" => "Float8",
        "bytea" => "Bytea",
        "date" => "Date",
        "jsonb" => "Jsonb",
        "timestamptz" => "Timestamptz",
        "uuid" => "Uuid",
        other => panic!("no diesel type is known here for `{other}`: add it"),
    };
    // No array here contains a NULL, although PostgreSQL has no way to forbid it.
    let kind = if is_array { format!("Array<{kind}>") } else { kind.to_owned() };
    if column.is_nullable { format!("Nullable<{kind}>") } else { kind }
}
