//! Removes the rows of archived months, and objects that no archive names.

use std::collections::HashMap;

use authority_store::{RunQueryDsl, Scope};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Bool, Integer, Nullable, Text},
};
use tokio::time::Duration;

use super::{Archiver, StepResult, Subject};
use crate::{
    Error,
    format::names,
    inspect::damaged,
    manifest::Archive,
    tidy::{self, Known},
};

/// The time limit for counting a partition's rows and searching a month's history.
const LONGEST: Duration = Duration::from_secs(600);

const UNTIDY: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256 FROM archives
    WHERE NOT is_tidy ORDER BY month, tenant_id";

const KNOWN: &str = "
    SELECT replaced, intended FROM archives WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

/// Months with rows that may be removed after their archive was read back. Months with a recently
/// checked archive are left out.
const UNCHECKED: &str = "
    SELECT a.tenant_id, a.month, a.manifest, a.manifest_sha256
    FROM archives a JOIN tenants t ON t.id = a.tenant_id
    WHERE may_go(a, t) AND NOT is_checked(a) ORDER BY a.month, a.tenant_id";

const CHECK: &str = "
    UPDATE archives SET checked_at = now() WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

/// Months with rows that may be removed, or are being removed.
const REMOVABLE: &str = "
    SELECT a.tenant_id, a.month, a.manifest, a.manifest_sha256
    FROM archives a JOIN tenants t ON t.id = a.tenant_id
    WHERE may_go(a, t) AND is_checked(a) ORDER BY a.month, a.tenant_id";

const NEWEST: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256 FROM archives ORDER BY archived_at DESC LIMIT 1";

/// Whether the service may remove rows, and whether any rows are due for removal. The service may
/// remove rows if `migrate` ran with `archive.url` set.
const RIGHT: &str = "
    SELECT has_function_privilege('remove_archived(text, text)', 'EXECUTE') AS may_remove,
           EXISTS (SELECT FROM archives a JOIN tenants t ON t.id = a.tenant_id WHERE may_go(a, t)) AS is_due";

const DROP: &str = "SELECT drop_archived_partitions() AS removed";

const REMOVE: &str = "SELECT remove_archived($1, $2) AS removed";

/// The number of parts with rows that are kept. Decisions were added to these parts after the month
/// was archived.
const KEPT: &str =
    "SELECT count(*) AS parts FROM archived_parts WHERE tenant_id = $1 AND month = $2";

/// Deletes the row of the archive. Its objects then belong to an ended run and are deleted later.
const DISCARD: &str = "
    WITH discarded AS (
        DELETE FROM archives WHERE tenant_id = $1 AND month = $2 AND removal_begun IS NULL
        RETURNING tenant_id, month, replaced || intended || manifest AS written)
    INSERT INTO archive_runs (tenant_id, month, begun_at, lease, leased_until, written)
    SELECT tenant_id, month, clock_timestamp(), '', '-infinity', written FROM discarded
    ON CONFLICT (tenant_id, month) DO UPDATE
    SET lease = '', leased_until = '-infinity', written = archive_runs.written || excluded.written";

#[derive(QueryableByName)]
struct Right {
    #[diesel(sql_type = Bool)]
    may_remove: bool,
    #[diesel(sql_type = Bool)]
    is_due: bool,
}

#[derive(QueryableByName)]
struct Removed {
    #[diesel(sql_type = Nullable<Integer>)]
    removed: Option<i32>,
}

#[derive(QueryableByName)]
struct Kept {
    #[diesel(sql_type = BigInt)]
    parts: i64,
}

fn subject(archive: &Archive) -> Result<Subject, Error> {
    let month = archive.month.parse();
    let month = month.map_err(|_| Error::Internal(format!("invalid month `{}`", archive.month)))?;
    Ok(Subject { tenant_id: archive.tenant_id()?, month })
}

impl Archiver {
    /// Checks that the newest archive exists before writing to the store.
    ///
    /// If a folder is not mounted or the setting was changed, the archive looks empty.
    pub(super) async fn newest_is_there(&self) -> Result<(), Error> {
        for newest in self.read(NEWEST).await? {
            match newest.manifest(&self.parts.bucket, &self.parts.keys).await {
                // A damaged manifest doesn't stop the worker. Readers of that month get the error.
                Ok(_) | Err(Error::Damaged(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the database's owner lets the service remove rows. Otherwise all rows are kept.
    ///
    /// Logs a warning if `tells` is set and rows are due but may not be removed.
    pub(super) async fn may_remove(&self, tells: bool) -> Result<bool, Error> {
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            Ok::<_, Error>(diesel::sql_query(RIGHT).get_result::<Right>(db).await?)
        });
        let right = read.await?;
        if tells && right.is_due && !right.may_remove {
            tracing::warn!(
                "kept archived decisions in the tables; run migrate to allow their removal"
            );
        }
        Ok(right.may_remove)
    }

    /// Returns the archives with objects in their folders that the archives may not name.
    pub(super) async fn untidy(&self) -> Result<Vec<Archive>, Error> {
        self.read(UNTIDY).await
    }

    pub(super) async fn tidy(&self, archived: &Archive) -> Result<StepResult, Error> {
        let manifest = archived.manifest(&self.parts.bucket, &self.parts.keys).await?;
        let folder = archived.folder()?;
        let Some(known) = self.known(archived).await? else { return Ok(StepResult::Skipped) };
        let own = (archived.manifest.as_str(), &manifest);
        if !tidy::delete_unnamed(&self.parts.bucket, &folder, own, &known).await? {
            return Ok(StepResult::Skipped);
        }
        self.mark(tidy::NOTE, archived).await?;
        Ok(StepResult::Tidied)
    }

    /// Returns the manifests that this database wrote; `None` if the archive was replaced.
    async fn known(&self, archived: &Archive) -> Result<Option<Known>, Error> {
        let of = archived.clone();
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let known = diesel::sql_query(KNOWN)
                .bind::<Text, _>(of.tenant_id.as_str())
                .bind::<Text, _>(of.month)
                .bind::<Text, _>(of.manifest);
            Ok::<_, Error>(known.get_result(db).await.optional()?)
        });
        read.await
    }

    pub(super) async fn unchecked(&self) -> Result<Vec<Archive>, Error> {
        self.read(UNCHECKED).await
    }

    /// Reads an archive back before its rows are removed.
    pub(super) async fn check(&self, archived: &Archive) -> Result<StepResult, Error> {
        let manifest = archived.manifest(&self.parts.bucket, &self.parts.keys).await?;
        self.read_back(&subject(archived)?, &manifest, false).await?;
        self.mark(CHECK, archived).await?;
        Ok(StepResult::Checked)
    }

    pub(super) async fn removable(&self) -> Result<Vec<Archive>, Error> {
        self.read(REMOVABLE).await
    }

    /// Drops the partitions that contain only archived rows.
    pub(super) async fn drop_partitions(&self) -> Result<StepResult, Error> {
        let scope = Scope::service();
        let dropped = self.parts.store.long_write_tx(LONGEST, &scope, async move |db| {
            let dropped: Removed = diesel::sql_query(DROP).get_result(db).await?;
            Ok::<_, Error>(dropped.removed.unwrap_or_default())
        });
        let dropped = dropped.await?;
        if dropped > 0 {
            tracing::info!(partitions = dropped, "dropped partitions of archived decisions");
        }
        Ok(StepResult::Dropped(dropped))
    }

    /// Whether all objects of the months to remove exist. After the removal they are the only copy.
    pub(super) async fn are_there(&self) -> Result<bool, Error> {
        for archived in self.removable().await? {
            match self.is_there(&archived).await {
                Err(error) if error.is_of_one() => {
                    let Archive { tenant_id: tenant, month, .. } = archived;
                    tracing::error!(
                        %error,
                        tenant.id = tenant.as_str(),
                        archive.month = month,
                        "kept the partitions of an archive that is not complete"
                    );
                    return Ok(false);
                }
                there => there?,
            }
        }
        Ok(true)
    }

    /// Checks that the archive's objects exist. They were read back recently and may have been
    /// deleted since.
    async fn is_there(&self, archived: &Archive) -> Result<(), Error> {
        let manifest = archived.manifest(&self.parts.bucket, &self.parts.keys).await?;
        let folder = archived.folder()?;
        let listed = self.parts.bucket.list(&folder).await?;
        let sizes: HashMap<String, u64> =
            listed.into_iter().map(|object| (object.name, object.bytes)).collect();
        for object in &manifest.objects {
            let path = names::path(&folder, &object.name);
            match sizes.get(&path) {
                None => return Err(Error::Elsewhere(path)),
                Some(bytes) if *bytes != object.bytes => {
                    return Err(damaged(object, &format!("it has {bytes} bytes")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Removes the rows of a part.
    pub(super) async fn remove(&self, archived: &Archive) -> Result<StepResult, Error> {
        self.is_there(archived).await?;
        let (of, scope) = (archived.clone(), Scope::service());
        let removed = self.parts.store.long_write_tx(LONGEST, &scope, async move |db| {
            let removed: Removed = diesel::sql_query(REMOVE)
                .bind::<Text, _>(of.tenant_id.as_str())
                .bind::<Text, _>(&of.month)
                .get_result(db)
                .await?;
            if removed.removed.is_some_and(|removed| removed < 0) {
                let discard = diesel::sql_query(DISCARD).bind::<Text, _>(of.tenant_id.as_str());
                discard.bind::<Text, _>(&of.month).execute(db).await?;
            }
            Ok::<_, Error>(removed.removed)
        });
        let Archive { tenant_id: tenant, month, .. } = archived;
        match removed.await? {
            Some(removed) if removed < 0 => {
                tracing::warn!(
                    tenant.id = tenant.as_str(),
                    archive.month = month,
                    "found rows that differ from the archive; archiving the month again"
                );
                Ok(StepResult::Skipped)
            }
            Some(removed) => {
                if removed == 0 {
                    self.tell_removed(archived).await?;
                }
                Ok(StepResult::Removed(removed))
            }
            None => Ok(StepResult::Skipped),
        }
    }

    async fn tell_removed(&self, archived: &Archive) -> Result<(), Error> {
        let of = archived.clone();
        let kept = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let kept = diesel::sql_query(KEPT).bind::<Text, _>(of.tenant_id.as_str());
            let kept: Kept = kept.bind::<Text, _>(of.month).get_result(db).await?;
            Ok::<_, Error>(kept.parts)
        });
        let Archive { tenant_id: tenant, month, .. } = archived;
        match kept.await? {
            0 => tracing::info!(
                tenant.id = tenant.as_str(),
                archive.month = month,
                "removed the rows of an archived month"
            ),
            parts => tracing::warn!(
                tenant.id = tenant.as_str(),
                archive.month = month,
                parts,
                "kept decisions that were added late to an archived month"
            ),
        }
        Ok(())
    }

    async fn mark(&self, statement: &'static str, archived: &Archive) -> Result<(), Error> {
        let of = archived.clone();
        let marked = self.parts.store.write_tx(&Scope::service(), async move |db| {
            diesel::sql_query(statement)
                .bind::<Text, _>(of.tenant_id.as_str())
                .bind::<Text, _>(of.month)
                .bind::<Text, _>(of.manifest)
                .execute(db)
                .await?;
            Ok::<_, Error>(())
        });
        marked.await
    }

    async fn read(&self, query: &'static str) -> Result<Vec<Archive>, Error> {
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            Ok::<_, Error>(diesel::sql_query(query).load(db).await?)
        });
        read.await
    }
}
