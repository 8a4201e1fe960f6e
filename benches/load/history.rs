//! Versions of records and changes to authority, for the archive's figures.

use authority_store::Db;
use diesel_async::SimpleAsyncConnection;
use serde_json::json;

use crate::{Fault, owner::Owner, stored::number};

/// The number of records to update, and the number of updates of each record. Each update creates a
/// version and an entry of the change log.
const RECORDS: usize = 100;
const TIMES: usize = 200;

const BYTES: &str = "SELECT sum(pg_total_relation_size(name))::bigint AS n \
     FROM unnest('{record_versions,authority_changes}'::regclass[]) AS name";

/// Creates a tenant's history.
pub(crate) async fn make(slug: &str, owner: &Owner, db: &mut Db) -> Result<(), Fault> {
    for number in 0..RECORDS {
        let purpose = json!({
            "tenant_id": format!("svc:tenant:{slug}"), "slug": format!("bench-{number}"), "name": "Bench",
            "allowed_actions": ["payment.*"],
        });
        owner.post("/api/v1/purposes", &purpose).await?;
    }
    for time in 0..TIMES {
        let change = format!(
            "UPDATE purposes SET name = 'Bench {time}' WHERE tenant_id = 'svc:tenant:{slug}'"
        );
        db.batch_execute(&change).await?;
    }
    Ok(())
}

/// Returns the credential of a new key of the tenant.
pub(crate) async fn key(slug: &str, owner: &Owner) -> Result<String, Fault> {
    let key = json!({
        "tenant_id": format!("svc:tenant:{slug}"), "label": "bench", "scopes": ["runtime:write"],
    });
    let key = owner.post("/api/v1/api-keys", &key).await?;
    Ok(format!("Bearer {}", key["secret"].as_str().unwrap_or_default()))
}

/// Returns the number of the tenant's archived versions and changes.
pub(crate) async fn archived(slug: &str, db: &mut Db) -> Result<f64, Fault> {
    let rows = format!(
        "SELECT sum(versions + changes)::bigint AS n FROM archives WHERE tenant_id = 'svc:tenant:{slug}'"
    );
    number(db, &rows).await
}

/// The size of the tables that store history.
pub(crate) struct Tables {
    /// Bytes with indexes and TOAST.
    pub(crate) bytes: f64,
}

impl Tables {
    pub(crate) async fn look(db: &mut Db) -> Result<Self, Fault> {
        Ok(Self { bytes: number(db, BYTES).await? })
    }

    /// Returns the bytes that vacuum frees for new rows: the size of the tables minus the size of a
    /// copy of their rows. The result is computed and not measured after a vacuum, because autovacuum
    /// may have freed a part before.
    pub(crate) async fn free(&self, db: &mut Db) -> Result<f64, Fault> {
        let copy = "CREATE TEMP TABLE versions_left (LIKE record_versions INCLUDING ALL); \
             INSERT INTO versions_left OVERRIDING SYSTEM VALUE SELECT * FROM record_versions; \
             CREATE TEMP TABLE changes_left (LIKE authority_changes INCLUDING ALL); \
             INSERT INTO changes_left OVERRIDING SYSTEM VALUE SELECT * FROM authority_changes";
        db.batch_execute(copy).await?;
        let left = "SELECT (pg_total_relation_size('versions_left') + pg_total_relation_size('changes_left'))::bigint \
             AS n";
        Ok(self.bytes - number(db, left).await?)
    }
}
