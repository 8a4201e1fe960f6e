//! Searches all of the database's data for a text.

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;

use crate::support::TestApp;

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    place: String,
    #[diesel(sql_type = Text)]
    query: String,
}

/// Selects all columns that can contain a text, each with a query for the rows that contain `$1` in
/// any letter case. In columns of bytes, the query searches the printable bytes.
const COLUMNS: &str = "
    SELECT c.table_name || '.' || c.column_name AS place,
           format('SELECT count(*)::text AS found FROM %I WHERE strpos(lower(%s), lower($1)) > 0',
                  c.table_name,
                  CASE WHEN c.udt_name = 'bytea' THEN format('encode(%I, ''escape'')', c.column_name)
                       ELSE format('%I::text', c.column_name) END) AS query
    FROM information_schema.columns c
    JOIN information_schema.tables t USING (table_schema, table_name)
    JOIN pg_class k ON k.relname = c.table_name AND k.relnamespace = 'public'::regnamespace
    WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND NOT k.relispartition
      AND c.udt_name IN ('text', '_text', 'jsonb', '_jsonb', 'bytea', 'varchar')
    ORDER BY place";

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Text)]
    found: String,
}

/// Returns the columns that contain the text, each with the number of rows that do.
pub(super) async fn columns_with(app: &TestApp, text: &str) -> Vec<String> {
    let mut db = app.database.owner().await;
    let columns: Vec<Column> = diesel::sql_query(COLUMNS).load(&mut db).await.unwrap();
    assert!(columns.len() > 300, "{}", columns.len());
    let mut with = Vec::new();
    for Column { place, query } in columns {
        let found: Found =
            diesel::sql_query(query).bind::<Text, _>(text).get_result(&mut db).await.unwrap();
        if found.found != "0" {
            with.push(format!("{place}: {}", found.found));
        }
    }
    with
}
