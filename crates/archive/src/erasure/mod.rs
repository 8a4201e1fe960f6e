//! Erases a person from archives.
//!
//! Objects are never changed: what has something of the person is written anew under another name, the new manifest is
//! committed, and then the old objects are deleted. Runs that are writing a month are ended, and begin again from the
//! tables, which have nothing of the person any more.

mod entries;
mod needles;
mod versions;

use authority_core::{
    clock::Clock,
    keys::Keys,
    store::{Db, RunQueryDsl, Scope, Store, row_id},
};
use authority_decision::moment;
use authority_evidence::archive::{Content, Manifest, Object};
use authority_model::wire::Json;
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Jsonb, Text},
};

use crate::{
    Bucket, Error,
    format::{names, part::Made},
    inspect::{Inspector, Target},
    manifest::{self, Archive, Signed},
    tidy,
};
use needles::Needles;
use tokio::time::{Duration, timeout};

/// How long the deletion of what a run wrote may take: a transaction waits.
const DELETED: Duration = Duration::from_secs(10);

/// How many were erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    pub contexts: i64,
    pub facts: i64,
    pub reports: i64,
    pub versions: i64,
    /// The manifests of all archives in the person's scope: none has anything of them.
    pub manifests: Vec<String>,
}

/// Erases people from archives. Cheap to clone.
#[derive(Clone)]
pub struct Eraser {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    /// `None` in an installation without an archive.
    pub bucket: Option<Bucket>,
}

/// What is being written of the person's tenants begins again.
const END_RUNS: &str = "
    WITH ended AS (
        UPDATE archive_runs SET lease = '', leased_until = '-infinity'
        WHERE person_in_scope($1, tenant_id) RETURNING tenant_id, month),
    parts AS (
        DELETE FROM archive_parts p USING ended e WHERE (p.tenant_id, p.month) = (e.tenant_id, e.month))
    SELECT tenant_id, month FROM ended";

/// Nothing is begun before the transaction ends.
const LOCK_RUNS: &str = "LOCK TABLE archive_runs IN SHARE ROW EXCLUSIVE MODE";

const OTHERS: &str = "
    SELECT NOT EXISTS (SELECT FROM archives WHERE person_in_scope($1, tenant_id) AND manifest <> ALL ($2)) AS holds";

const ARCHIVES: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256 FROM archives
    WHERE person_in_scope($1, tenant_id) ORDER BY tenant_id, month";

/// No hold is set before the transaction ends.
const LOCK: &str = "SELECT legal_hold IS NULL AS holds FROM tenants WHERE id = $1 FOR SHARE";

/// Rows that are still there are removed only after the new archive was read back.
const REPLACE: &str = "
    UPDATE archives SET manifest = $4, manifest_sha256 = $5, bytes = $6, is_tidy = false, checked_at = NULL
    WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

const UNTIDY: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256 FROM archives
    WHERE NOT is_tidy AND person_in_scope($1, tenant_id) ORDER BY tenant_id, month";

const TIDY: &str =
    "UPDATE archives SET is_tidy = true WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

/// A month that is being written.
#[derive(QueryableByName)]
struct Ended {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    month: String,
}

#[derive(QueryableByName)]
struct Holds {
    #[diesel(sql_type = Bool)]
    holds: bool,
}

/// A person, as the functions of migration 42 take one.
struct Person<'a> {
    parameter: &'a Json,
    needles: Needles,
}

impl Eraser {
    /// Erases a person from every archive in their scope, after the tables: what is archived later has nothing of
    /// them. It can be repeated after an error.
    ///
    /// # Errors
    /// The archive is away or damaged, or a hold was set meanwhile.
    pub async fn erase(&self, scope: &Scope, person: &Json) -> Result<Erased, Error> {
        let parameter = person.clone();
        let found = self.store.write_tx(scope, async move |db| {
            end_runs(db, &parameter).await?;
            let found = diesel::sql_query(ARCHIVES).bind::<Jsonb, _>(&parameter).load(db).await?;
            Ok::<Vec<Archive>, Error>(found)
        });
        let person = Person { parameter: person, needles: Needles::of(person) };
        let mut erased = Erased::default();
        for archived in found.await? {
            let bucket = self.bucket.as_ref();
            let bucket = bucket.ok_or_else(|| Error::NoArchive(archived.month.clone()))?;
            let one = self.erase_from(scope, bucket, &archived, &person).await?;
            erased.contexts += one.contexts;
            erased.facts += one.facts;
            erased.reports += one.reports;
            erased.versions += one.versions;
            erased.manifests.extend(one.manifests);
        }
        self.delete_replaced(scope, person.parameter).await?;
        Ok(erased)
    }

    /// Whether there are no other archives than these. For the transaction that erases the last of a person: until it
    /// ends the tables have something of them. So what is being written is ended and deleted, and nothing is begun.
    ///
    /// # Errors
    /// The database or the archive is away.
    pub async fn are_all(
        &self,
        db: &mut Db,
        person: &Json,
        manifests: &[String],
    ) -> Result<bool, Error> {
        diesel::sql_query(LOCK_RUNS).execute(db).await?;
        for Ended { tenant_id, month } in end_runs(db, person).await? {
            let bucket = self.bucket.as_ref().ok_or_else(|| Error::NoArchive(month.clone()))?;
            let folder = names::folder(&row_id(&tenant_id)?, &month);
            let deleted = timeout(DELETED, tidy::delete_all(bucket, &folder)).await;
            deleted.map_err(|_| Error::Internal("the archive deletes too slowly".to_owned()))??;
        }
        let others = diesel::sql_query(OTHERS).bind::<Jsonb, _>(person);
        let others: Holds = others.bind::<Array<Text>, _>(manifests).get_result(db).await?;
        Ok(others.holds)
    }

    /// Deletes what was replaced, also by an erasure that was cut off.
    async fn delete_replaced(&self, scope: &Scope, person: &Json) -> Result<(), Error> {
        let person = person.clone();
        let found = self.store.read_tx(scope, async move |db| {
            let found = diesel::sql_query(UNTIDY).bind::<Jsonb, _>(&person).load(db).await?;
            Ok::<Vec<Archive>, Error>(found)
        });
        for archived in found.await? {
            let Some(bucket) = &self.bucket else { return Ok(()) };
            let folder = archived.folder()?;
            let manifest = archived.manifest(bucket).await?;
            tidy::delete_unnamed(bucket, &folder, &archived.manifest, &manifest).await?;
            let tidied = self.store.write_tx(scope, async move |db| {
                let tidied = diesel::sql_query(TIDY).bind::<Text, _>(archived.tenant_id);
                let tidied =
                    tidied.bind::<Text, _>(archived.month).bind::<Text, _>(archived.manifest);
                tidied.execute(db).await?;
                Ok::<_, Error>(())
            });
            tidied.await?;
        }
        Ok(())
    }

    async fn erase_from(
        &self,
        scope: &Scope,
        bucket: &Bucket,
        archived: &Archive,
        person: &Person<'_>,
    ) -> Result<Erased, Error> {
        let folder = archived.folder()?;
        let old = archived.manifest(bucket).await?;
        let rewriting = Rewriting { eraser: self, scope, bucket, folder: &folder, person };
        let mut erased = Erased::default();
        let mut new = old.clone();
        for target in (Inspector { bucket, folder: &folder, manifest: &old }).targets()? {
            let replaced = match &target {
                Target::Part { decisions, index } => {
                    rewriting.part(&old, decisions, index, &mut erased).await?
                }
                Target::History(object) if object.content == Content::Versions => {
                    rewriting.versions(object, &mut erased).await?
                }
                Target::History(_) => continue,
            };
            for object in replaced {
                let same =
                    |one: &&mut Object| one.content == object.content && one.part == object.part;
                if let Some(place) = new.objects.iter_mut().find(same) {
                    *place = object;
                }
            }
        }
        erased.manifests.push(if new.objects == old.objects {
            archived.manifest.clone()
        } else {
            rewriting.replace(archived, &old, new).await?
        });
        Ok(erased)
    }
}

async fn end_runs(db: &mut Db, person: &Json) -> QueryResult<Vec<Ended>> {
    diesel::sql_query(END_RUNS).bind::<Jsonb, _>(person).load(db).await
}

/// An archive that is written anew.
struct Rewriting<'a> {
    eraser: &'a Eraser,
    scope: &'a Scope,
    bucket: &'a Bucket,
    folder: &'a str,
    person: &'a Person<'a>,
}

impl Rewriting<'_> {
    /// Writes an object that takes the place of another; how the manifest names it.
    async fn put(&self, made: Made, was: &Object) -> Result<Object, Error> {
        let object = Object {
            bytes: u64::try_from(made.bytes.len()).unwrap_or(u64::MAX),
            name: made.name.clone(),
            sha256: authority_evidence::digest_text(&made.sha256),
            ..was.clone()
        };
        self.bucket.put(&format!("{}/{}", self.folder, made.name), made.bytes).await?;
        Ok(object)
    }

    /// Reads back what was written, and commits the new manifest; its name.
    async fn replace(
        &self,
        archived: &Archive,
        old: &Manifest,
        mut new: Manifest,
    ) -> Result<String, Error> {
        let is_old = |name: &str| old.objects.iter().any(|object| object.name == name);
        let inspector = Inspector { bucket: self.bucket, folder: self.folder, manifest: &new };
        for target in inspector.targets()?.iter().filter(|target| !is_old(target.name())) {
            inspector.inspect(target, std::sync::Arc::new(|_, _| Ok(()))).await?;
        }
        new.archived_at = moment::text(self.eraser.clock.now());
        let Signed { name, text, sha256 } = manifest::sign(&new, &self.eraser.keys)?;
        self.bucket.put(&format!("{}/{name}", self.folder), text.into_bytes()).await?;
        self.commit(archived, name.clone(), sha256, &new).await?;
        Ok(name)
    }

    async fn commit(
        &self,
        archived: &Archive,
        name: String,
        sha256: [u8; 32],
        new: &Manifest,
    ) -> Result<(), Error> {
        let of = archived.clone();
        let bytes: u64 = new.objects.iter().map(|object| object.bytes).sum();
        let replaced = self.eraser.store.write_tx(self.scope, async move |db: &mut Db| {
            let lock = diesel::sql_query(LOCK).bind::<Text, _>(&of.tenant_id);
            let lock: Holds = lock.get_result(db).await?;
            if !lock.holds {
                return Ok(0);
            }
            let replace = diesel::sql_query(REPLACE)
                .bind::<Text, _>(of.tenant_id)
                .bind::<Text, _>(of.month)
                .bind::<Text, _>(of.manifest)
                .bind::<Text, _>(name)
                .bind::<Bytea, _>(&sha256[..])
                .bind::<BigInt, _>(i64::try_from(bytes).unwrap_or(i64::MAX));
            Ok::<_, Error>(replace.execute(db).await?)
        });
        match replaced.await? {
            1 => Ok(()),
            _ => Err(Error::Lost),
        }
    }
}
