//! The store: the rules that PostgreSQL enforces, and how the service handles faults.

mod changes;
mod embedded;
mod governance;
mod idempotency;
mod language;
mod migrate;
mod pool;
mod roles;
mod session;
mod statements;
mod tls;
mod zero_downtime;

use authority_ids::TenantId;
use authority_store::Scope;
use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::RunQueryDsl;

use crate::support::database::Database;

/// A governed table that authority depends on, and an append-only table.
const TABLES: &str = r#"
    CREATE TABLE things (
        id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL,
        label text NOT NULL DEFAULT '', secret text, used_at timestamptz
    );
    CALL govern('things', authority => true, secret => '{secret}', quiet => '{used_at}');
    CREATE TABLE facts (id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL);
    CALL append_only('facts');
"#;

async fn with_tables() -> Database {
    let database = Database::fresh().await;
    database.run(TABLES).await;
    database
}

fn of(slug: &str) -> Scope {
    let tenant = TenantId::from_slug(slug).unwrap();
    Scope { tenant: Some(tenant), actor: format!("ada of {slug}"), api_key: None }
}

fn owner() -> Scope {
    Scope { tenant: None, actor: "the owner".to_owned(), api_key: None }
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Returns the first column, `n`, of the only row.
async fn number(db: &mut authority_store::Db, sql: &str) -> i64 {
    let row: Number = diesel::sql_query(sql).get_result(db).await.unwrap();
    row.n
}
