//! The end of a month: reads all objects back, signs the manifest and commits the archive.

use std::{collections::BTreeMap, sync::Arc};

use authority_decision::moment;
use authority_evidence::{
    archive::{Content, Manifest, Object},
    digest_text,
};
use authority_ids::{DecisionId, TenantId};
use authority_model::schema::log_heads;
use authority_store::{Db, RunQueryDsl, Scope};
use chrono::TimeDelta;
use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bool, Bytea, Integer, Text, Timestamptz},
};

use super::{
    Archiver, StepResult, Subject,
    run::{Run, Written, renew},
};
use crate::{
    Error,
    format::{index::IndexRow, month::Month},
    inspect::Inspector,
    manifest::{self, Signed},
};

/// Reports and proofs of the last hour before a run stay in the tables: they may have been committed
/// after the run read the month.
const SETTLED: TimeDelta = TimeDelta::hours(1);

/// Whether the tenant's month may be archived now. Until the transaction ends, the legal hold and
/// the retention can't change.
const LOCK: &str = "
    SELECT t.legal_hold IS NULL AND t.retention ->> 'decisions_days' IS NOT NULL AS holds
    FROM tenants t WHERE t.id = $1 FOR SHARE";

const COMMIT: &str = "
    INSERT INTO archives (tenant_id, month, decisions, versions, changes, bytes, manifest, manifest_sha256,
                          replaced, settled_before, archived_at, checked_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, array_remove(r.written, $7), $9, $10, now()
    FROM archive_runs r WHERE r.tenant_id = $1 AND r.month = $2";

/// Whether the month's rows in the tables are still exactly the archived ones.
const SAME: &str = "
    SELECT is_as_archived(a) AS holds FROM archives a WHERE a.tenant_id = $1 AND a.month = $2";

const TIMES: &str = "
    INSERT INTO archived_times (tenant_id, month, hour, times)
    SELECT $1, $2, t.* FROM UNNEST($3, $4) AS t";

/// The rows to remove, part by part.
const PARTS: &str = "
    INSERT INTO archived_parts (tenant_id, month, part, decisions, first_id, last_id)
    SELECT tenant_id, month, part, decisions, first_id, last_id FROM archive_parts
    WHERE tenant_id = $1 AND month = $2";

const DONE: &str = "DELETE FROM archive_runs WHERE tenant_id = $1 AND month = $2";

const STORED: &str = "
    SELECT count(*) = cardinality($2) AS holds FROM decisions WHERE tenant_id = $1 AND id = ANY ($2)";

/// The run's row is kept, because it lists written objects that no archive names.
const END: &str = "
    WITH parts AS (DELETE FROM archive_parts WHERE tenant_id = $1 AND month = $2)
    UPDATE archive_runs SET lease = '', leased_until = '-infinity' WHERE tenant_id = $1 AND month = $2";

#[derive(QueryableByName)]
struct Holds {
    #[diesel(sql_type = Bool)]
    holds: bool,
}

/// The times of decisions, by hour since 1970: the milliseconds within the hour, four bytes for
/// each decision.
type Times = BTreeMap<i32, Vec<u8>>;

/// An archive to commit.
struct Whole {
    manifest: Manifest,
    name: String,
    sha256: [u8; 32],
    times: Times,
}

impl Archiver {
    pub(super) async fn finish(&self, subject: &Subject, run: Run) -> Result<StepResult, Error> {
        let mut objects: Vec<Object> = run.written.iter().flat_map(objects).collect();
        objects.extend(self.write_history(subject).await?);
        let manifest = self.manifest(subject, objects).await?;
        let read = self.read_back(subject, &manifest, true).await;
        if let Err(Error::Damaged(..) | Error::Elsewhere(_)) = &read {
            // The written objects can't be used. The month is archived again from the start.
            self.end(subject).await?;
        }
        let times = read?;
        let Signed { name, text, sha256 } = manifest::sign(&manifest, &self.parts.keys)?;
        self.name_manifest(subject, &name).await?;
        let path = subject.path(&name);
        self.parts.bucket.put(&path, text.clone().into_bytes()).await?;
        if self.parts.bucket.get(&path, manifest::MOST_BYTES).await? != text.as_bytes() {
            return Err(Error::Damaged(name, "it differs from the written manifest".to_owned()));
        }
        let whole = Whole { manifest, name, sha256, times };
        self.commit(subject, run, whole).await
    }

    async fn manifest(&self, subject: &Subject, objects: Vec<Object>) -> Result<Manifest, Error> {
        let of = subject.tenant_id.clone();
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let newest = log_heads::table
                .filter(log_heads::tenant_id.eq(of.as_str()))
                .order(log_heads::epoch.desc())
                .select(log_heads::checkpoint);
            let checkpoint: Option<String> = newest.first(db).await.optional()?;
            Ok::<_, Error>(checkpoint)
        });
        let checkpoint = read.await?.filter(|note| !note.is_empty());
        let count = |content| {
            let of_content = objects.iter().filter(|object| object.content == content);
            of_content.map(|object| object.entries).sum()
        };
        let mut decisions = objects.iter().filter(|object| object.content == Content::Decisions);
        let first_id = decisions.clone().next().and_then(|first| first.first_id.clone());
        let last_id = decisions.next_back().and_then(|last| last.last_id.clone());
        Ok(Manifest {
            archived_at: moment::text(self.parts.clock.now()),
            changes: count(Content::Changes),
            checkpoint,
            decisions: count(Content::Decisions),
            first_id,
            issuer: self.parts.issuer.clone(),
            last_id,
            month: subject.month.to_string(),
            tenant_id: (&subject.tenant_id).into(),
            versions: count(Content::Versions),
            objects,
        })
    }

    /// Reads all objects back. Returns the times of the decisions.
    ///
    /// If `has_rows` is set, each decision must still be in the table.
    pub(super) async fn read_back(
        &self,
        subject: &Subject,
        manifest: &Manifest,
        has_rows: bool,
    ) -> Result<Times, Error> {
        let folder = subject.folder();
        let inspector = Inspector { bucket: &self.parts.bucket, folder: &folder, manifest };
        let mut times = Times::new();
        for target in inspector.targets()? {
            self.unless_stopping()?;
            let rows = inspector.inspect(&target, Arc::new(|_, _| Ok(()))).await?;
            if has_rows && !self.are_stored(subject, &rows).await? {
                let why = "it has decisions that the database does not have";
                return Err(Error::Damaged(target.name().to_owned(), why.to_owned()));
            }
            for row in rows {
                let id = DecisionId::parse(&row.about.decision_id);
                let place = id.ok().and_then(|id| Month::time(&id));
                let (hour, rest) =
                    place.ok_or_else(|| Error::Internal("an id has no time".to_owned()))?;
                times.entry(hour).or_default().extend(rest);
            }
        }
        Ok(times)
    }

    /// Whether the database has all of these decisions.
    ///
    /// An id contains the digest of its record. Equal ids therefore mean equal decisions.
    async fn are_stored(&self, subject: &Subject, rows: &[IndexRow]) -> Result<bool, Error> {
        let tenant_id = subject.tenant_id.to_string();
        let ids: Vec<String> =
            rows.iter().map(|row| String::from(&row.about.decision_id)).collect();
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let stored = diesel::sql_query(STORED).bind::<Text, _>(tenant_id);
            let stored: Holds = stored.bind::<Array<Text>, _>(ids).get_result(db).await?;
            Ok::<_, Error>(stored.holds)
        });
        read.await
    }

    async fn commit(&self, subject: &Subject, run: Run, whole: Whole) -> Result<StepResult, Error> {
        let (of, name) = (subject.clone(), self.name.clone());
        let (archived_at, decisions) = (self.parts.clock.now(), whole.manifest.decisions);
        let settled_before = run.begun_at - SETTLED;
        let committed = self.parts.store.write_tx(&Scope::service(), async move |db| {
            renew(db, &of, &name).await?;
            let (tenant_id, month) = (of.tenant_id.as_str(), of.month.to_string());
            let lock: Holds =
                diesel::sql_query(LOCK).bind::<Text, _>(tenant_id).get_result(db).await?;
            if !lock.holds {
                return Ok(false);
            }
            let manifest = &whole.manifest;
            diesel::sql_query(COMMIT)
                .bind::<Text, _>(tenant_id)
                .bind::<Text, _>(&month)
                .bind::<BigInt, _>(signed(manifest.decisions))
                .bind::<BigInt, _>(signed(manifest.versions))
                .bind::<BigInt, _>(signed(manifest.changes))
                .bind::<BigInt, _>(signed(manifest.objects.iter().map(|one| one.bytes).sum()))
                .bind::<Text, _>(&whole.name)
                .bind::<Bytea, _>(&whole.sha256[..])
                .bind::<Timestamptz, _>(settled_before)
                .bind::<Timestamptz, _>(archived_at)
                .execute(db)
                .await?;
            keep_times(db, &of.tenant_id, &month, &whole.times).await?;
            let parts = diesel::sql_query(PARTS).bind::<Text, _>(tenant_id);
            parts.bind::<Text, _>(&month).execute(db).await?;
            let same = diesel::sql_query(SAME).bind::<Text, _>(tenant_id);
            let same: Holds = same.bind::<Text, _>(&month).get_result(db).await?;
            if !same.holds {
                let why = "the rows differ from those read: the month is archived again";
                return Err(Error::Damaged(month, why.to_owned()));
            }
            end(db, DONE, &of).await?;
            Ok::<_, Error>(true)
        });
        match committed.await {
            Ok(true) => {
                tracing::info!(
                    tenant.id = %subject.tenant_id,
                    archive.month = %subject.month,
                    archive.folder = subject.folder(),
                    decisions,
                    "archived a month of decisions"
                );
                Ok(StepResult::Archived)
            }
            Ok(false) => Ok(StepResult::Skipped),
            Err(error @ Error::Damaged(..)) => {
                self.end(subject).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a run. Its objects can't be used. They are deleted after the month is archived again.
    async fn end(&self, subject: &Subject) -> Result<(), Error> {
        let of = subject.clone();
        self.parts.store.write_tx(&Scope::service(), async move |db| end(db, END, &of).await).await
    }
}

async fn end(db: &mut Db, statement: &str, subject: &Subject) -> Result<(), Error> {
    let ended = diesel::sql_query(statement).bind::<Text, _>(subject.tenant_id.as_str());
    ended.bind::<Text, _>(subject.month.to_string()).execute(db).await?;
    Ok(())
}

async fn keep_times(
    db: &mut Db,
    tenant_id: &TenantId,
    month: &str,
    times: &Times,
) -> Result<(), Error> {
    let hours: Vec<i32> = times.keys().copied().collect();
    let times: Vec<&[u8]> = times.values().map(Vec::as_slice).collect();
    diesel::sql_query(TIMES)
        .bind::<Text, _>(tenant_id.as_str())
        .bind::<Text, _>(month)
        .bind::<Array<Integer>, _>(hours)
        .bind::<Array<Bytea>, _>(times)
        .execute(db)
        .await?;
    Ok(())
}

/// Returns a part's decisions and index as entries for the manifest.
fn objects(part: &Written) -> [Object; 2] {
    let number = u32::try_from(part.part).unwrap_or_default();
    let made = |content, name: &str, bytes: i64, sha256: &[u8]| Object {
        bytes: unsigned(bytes),
        content,
        entries: unsigned(part.decisions),
        first_id: Some(part.first_id.clone()),
        last_id: Some(part.last_id.clone()),
        name: name.to_owned(),
        part: number,
        sha256: digest_text(&sha256.try_into().unwrap_or_default()),
    };
    [
        made(Content::Decisions, &part.name, part.bytes, &part.sha256),
        made(Content::Index, &part.index_name, part.index_bytes, &part.index_sha256),
    ]
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
