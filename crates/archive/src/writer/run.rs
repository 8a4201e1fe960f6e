//! Writes the parts of a month, one after the other.
//!
//! A node holds the lease of a month while it writes. A node that lost the lease (it was paused for
//! too long, or an erasure ended the run) can't commit any more. No archive refers to the objects
//! that it writes afterwards.

use authority_ids::DecisionRef;
use authority_store::{Db, RunQueryDsl, Scope};
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Bytea, Integer, Text, Timestamptz},
};

use serde_json::value::RawValue;

use super::{Archiver, StepResult, Subject};
use crate::{
    Error, Evidence, Page,
    format::{
        entry::{ENTRY_KIND, Entry},
        part::{Part, PartWriter},
    },
    writer::addenda::Addenda,
};

/// The maximum number of decisions to read at once.
const PAGE: usize = 512;

/// Takes or renews the lease. The lease lasts longer than it takes to write a part or to read back
/// a month. If the month's last run was ended, a new run begins. If the month is already archived,
/// no row is returned.
const CLAIM: &str = "
    INSERT INTO archive_runs AS r (tenant_id, month, begun_at, lease, leased_until)
    SELECT $1, $2, clock_timestamp(), $3, clock_timestamp() + interval '30 minutes'
    WHERE NOT EXISTS (SELECT FROM archives WHERE tenant_id = $1 AND month = $2)
    ON CONFLICT (tenant_id, month) DO UPDATE
    SET lease = $3, leased_until = excluded.leased_until,
        begun_at = CASE WHEN r.lease = '' THEN excluded.begun_at ELSE r.begun_at END
    WHERE r.lease = $3 OR r.leased_until < clock_timestamp()
    RETURNING begun_at";

const RENEW: &str = "
    UPDATE archive_runs SET leased_until = clock_timestamp() + interval '30 minutes'
    WHERE tenant_id = $1 AND month = $2 AND lease = $3 RETURNING begun_at";

/// Records the manifest's name before the manifest is written. If the process then dies before it
/// commits the archive, this database can still recognize the manifest as its own.
const NAME_MANIFEST: &str = "
    UPDATE archive_runs SET written = array_append(array_remove(written, $4), $4)
    WHERE tenant_id = $1 AND month = $2 AND lease = $3";

/// Ends the lease, but not the run. The next node to claim the month continues after the written
/// parts.
const END_LEASE: &str = "
    UPDATE archive_runs SET leased_until = '-infinity' WHERE tenant_id = $1 AND month = $2 AND lease = $3";

const WRITTEN: &str = "
    SELECT part, decisions, first_id, last_id, name, bytes, sha256, index_name, index_bytes, index_sha256
    FROM archive_parts WHERE tenant_id = $1 AND month = $2 ORDER BY part";

const KEEP: &str = "
    INSERT INTO archive_parts (tenant_id, month, part, decisions, first_id, last_id, name, bytes, sha256,
                               index_name, index_bytes, index_sha256)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

#[derive(QueryableByName)]
struct Claim {
    #[diesel(sql_type = Timestamptz)]
    begun_at: DateTime<Utc>,
}

/// A written part: a row of the table `archive_parts`.
#[derive(Clone, QueryableByName)]
pub(super) struct Written {
    #[diesel(sql_type = Integer)]
    pub(super) part: i32,
    #[diesel(sql_type = BigInt)]
    pub(super) decisions: i64,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) first_id: DecisionRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) last_id: DecisionRef,
    #[diesel(sql_type = Text)]
    pub(super) name: String,
    #[diesel(sql_type = BigInt)]
    pub(super) bytes: i64,
    #[diesel(sql_type = Bytea)]
    pub(super) sha256: Vec<u8>,
    #[diesel(sql_type = Text)]
    pub(super) index_name: String,
    #[diesel(sql_type = BigInt)]
    pub(super) index_bytes: i64,
    #[diesel(sql_type = Bytea)]
    pub(super) index_sha256: Vec<u8>,
}

/// The run of a month for which this node has the lease.
pub(super) struct Run {
    pub(super) begun_at: DateTime<Utc>,
    pub(super) written: Vec<Written>,
}

impl Archiver {
    /// Writes the next part of a month. If all parts are written, finishes the archive.
    pub(super) async fn archive(&self, subject: &Subject) -> Result<StepResult, Error> {
        let run = self.claim(subject).await?;
        let number = u32::try_from(run.written.len()).unwrap_or(u32::MAX).saturating_add(1);
        let after = run.written.last().map(|part| String::from(&part.last_id));
        let part = self.read_part(subject, after.unwrap_or_default()).await?;
        let part = tokio::task::spawn_blocking(move || part.finish(number)).await??;
        let Some(part) = part else { return self.finish(subject, run).await };
        self.keep(subject, number, part).await?;
        Ok(StepResult::Written)
    }

    async fn claim(&self, subject: &Subject) -> Result<Run, Error> {
        let (subject, name) = (subject.clone(), self.name.clone());
        let claimed = self.parts.store.write_tx(&Scope::service(), async move |db| {
            let (tenant_id, month) = (subject.tenant_id.as_str(), subject.month.to_string());
            let claim = diesel::sql_query(CLAIM)
                .bind::<Text, _>(tenant_id)
                .bind::<Text, _>(&month)
                .bind::<Text, _>(name)
                .get_result(db)
                .await;
            let claim: Option<Claim> = claim.optional()?;
            let begun_at = claim.ok_or(Error::Lost)?.begun_at;
            let written = diesel::sql_query(WRITTEN).bind::<Text, _>(tenant_id);
            let written = written.bind::<Text, _>(month).load(db).await?;
            Ok::<_, Error>(Run { begun_at, written })
        });
        claimed.await
    }

    /// Records the name of the manifest.
    ///
    /// # Errors
    /// [`Error::Lost`] if another node holds the lease or the run was ended.
    pub(super) async fn name_manifest(&self, subject: &Subject, name: &str) -> Result<(), Error> {
        let (subject, lease, name) = (subject.clone(), self.name.clone(), name.to_owned());
        let named = self.parts.store.write_tx(&Scope::service(), async move |db| {
            let named = diesel::sql_query(NAME_MANIFEST)
                .bind::<Text, _>(subject.tenant_id.as_str())
                .bind::<Text, _>(subject.month.to_string())
                .bind::<Text, _>(lease)
                .bind::<Text, _>(name);
            Ok::<_, Error>(named.execute(db).await?)
        });
        if named.await? == 1 { Ok(()) } else { Err(Error::Lost) }
    }

    pub(super) async fn end_lease(&self, subject: &Subject) -> Result<(), Error> {
        let (subject, name) = (subject.clone(), self.name.clone());
        let ended = self.parts.store.write_tx(&Scope::service(), async move |db| {
            let ended = diesel::sql_query(END_LEASE).bind::<Text, _>(subject.tenant_id.as_str());
            let ended = ended.bind::<Text, _>(subject.month.to_string()).bind::<Text, _>(name);
            ended.execute(db).await?;
            Ok::<_, Error>(())
        });
        ended.await
    }

    async fn read_part(&self, subject: &Subject, after: String) -> Result<PartWriter, Error> {
        let ids = subject.month.ids();
        let mut after = ids.start.max(after);
        let mut part = PartWriter::new((&subject.tenant_id).into(), self.parts.part)?;
        while part.room() > 0 {
            self.unless_stopping()?;
            let page = Page {
                tenant_id: subject.tenant_id.clone(),
                after: after.clone(),
                before: ids.end.clone(),
                most: part.room().min(PAGE),
            };
            let list = (self.parts.evidence)(page).await.map_err(Error::Source)?;
            let Some(last) = list.last() else { break };
            last.decision_id.as_str().clone_into(&mut after);
            let addenda = Addenda::read(&self.parts.store, subject, &list).await?;
            part = tokio::task::spawn_blocking(move || add(part, &list, addenda)).await??;
        }
        Ok(part)
    }

    /// Writes the objects first, and then the row that records them.
    async fn keep(&self, subject: &Subject, number: u32, part: Part) -> Result<(), Error> {
        let Some((first_id, last_id)) = part.ends() else { return Ok(()) };
        let written = Written {
            part: i32::try_from(number).unwrap_or(i32::MAX),
            decisions: signed(part.rows.len()),
            first_id,
            last_id,
            name: part.decisions.name,
            bytes: signed(part.decisions.bytes.len()),
            sha256: part.decisions.sha256.to_vec(),
            index_name: part.index.name,
            index_bytes: signed(part.index.bytes.len()),
            index_sha256: part.index.sha256.to_vec(),
        };
        let bucket = &self.parts.bucket;
        bucket.put(&subject.path(&written.name), part.decisions.bytes).await?;
        bucket.put(&subject.path(&written.index_name), part.index.bytes).await?;
        let (subject, name) = (subject.clone(), self.name.clone());
        let kept = self.parts.store.write_tx(&Scope::service(), async move |db| {
            renew(db, &subject, &name).await?;
            insert(db, &subject, written).await
        });
        kept.await
    }
}

async fn insert(db: &mut Db, subject: &Subject, part: Written) -> Result<(), Error> {
    diesel::sql_query(KEEP)
        .bind::<Text, _>(subject.tenant_id.as_str())
        .bind::<Text, _>(subject.month.to_string())
        .bind::<Integer, _>(part.part)
        .bind::<BigInt, _>(part.decisions)
        .bind::<Text, _>(part.first_id.as_str())
        .bind::<Text, _>(part.last_id.as_str())
        .bind::<Text, _>(part.name)
        .bind::<BigInt, _>(part.bytes)
        .bind::<Bytea, _>(part.sha256)
        .bind::<Text, _>(part.index_name)
        .bind::<BigInt, _>(part.index_bytes)
        .bind::<Bytea, _>(part.index_sha256)
        .execute(db)
        .await?;
    Ok(())
}

/// Renews the lease.
///
/// # Errors
/// [`Error::Lost`] if another node holds the lease or the run was ended.
pub(super) async fn renew(db: &mut Db, subject: &Subject, lease: &str) -> Result<(), Error> {
    let renewed = diesel::sql_query(RENEW)
        .bind::<Text, _>(subject.tenant_id.as_str())
        .bind::<Text, _>(subject.month.to_string())
        .bind::<Text, _>(lease)
        .get_result(db)
        .await;
    let renewed: Option<Claim> = renewed.optional()?;
    renewed.map(drop).ok_or(Error::Lost)
}

/// Adds a page of decisions to the part.
fn add(mut part: PartWriter, list: &[Evidence], mut addenda: Addenda) -> Result<PartWriter, Error> {
    for evidence in list {
        let id = &evidence.decision_id;
        let (report, replays) = addenda.take(id)?;
        // A bundle contains the pack.
        let pack = Some(evidence.pack.as_str()).filter(|_| evidence.bundle.is_none());
        let entry = Entry {
            approval_id: evidence.approval_id.clone(),
            bundle: raw(evidence.bundle.as_deref())?,
            decision_id: id.clone(),
            kind: ENTRY_KIND.to_owned(),
            pack: raw(pack)?,
            remains: raw(evidence.remains.as_deref())?,
            replays: replays.iter().map(|proof| &**proof).collect(),
            report,
        };
        part.add(&entry.write()?)?;
    }
    Ok(part)
}

/// Returns the JSON text unchanged, for embedding in the entry.
fn raw(text: Option<&str>) -> Result<Option<&RawValue>, Error> {
    let text = text.map(serde_json::from_str).transpose();
    Ok(text.map_err(crate::format::Error::from)?)
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
