//! Erases a person from archives.
//!
//! Objects are never changed. An object with data of the person is rewritten under another name,
//! the new manifest is committed, and then the old objects are deleted. If a node is archiving a
//! month of the person's tenants at this moment, its run is ended. The month is then archived again
//! from the tables, which no longer have data of the person.

mod entries;
mod needles;
mod search;
mod versions;

use authority_decision::moment;
use authority_evidence::archive::{Content, Manifest, Object};
use authority_keys::Keys;
use authority_model::wire::Json;
use authority_process::clock::Clock;
use authority_store::{Db, RunQueryDsl, Scope, Store, row_id};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Jsonb, Text},
};

use crate::{
    Bucket, Error,
    format::{names, part::Made},
    inspect::{Inspector, Target},
    manifest::{self, Archive, Signed},
    tidy::{self, Known},
};
use needles::Needles;
use tokio::time::{Duration, timeout};

/// The time limit for deleting a run's objects. A transaction stays open in the meantime.
const DELETED: Duration = Duration::from_secs(10);

/// The numbers of erased items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    pub contexts: i64,
    pub facts: i64,
    pub reports: i64,
    pub versions: i64,
    /// The manifests of all archives in the person's scope, after the erasure.
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

/// Ends the runs that are archiving months of the person's tenants. These months are archived again
/// from the start.
const END_RUNS: &str = "
    WITH ended AS (
        UPDATE archive_runs SET lease = '', leased_until = '-infinity'
        WHERE person_in_scope($1, tenant_id) RETURNING tenant_id, month, written),
    parts AS (
        DELETE FROM archive_parts p USING ended e WHERE (p.tenant_id, p.month) = (e.tenant_id, e.month))
    SELECT tenant_id, month, written FROM ended";

/// Prevents runs from starting until the transaction ends.
const LOCK_RUNS: &str = "LOCK TABLE archive_runs IN SHARE ROW EXCLUSIVE MODE";

const OTHERS: &str = "
    SELECT NOT EXISTS (SELECT FROM archives WHERE person_in_scope($1, tenant_id) AND manifest <> ALL ($2)) AS holds";

const ARCHIVES: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256 FROM archives
    WHERE person_in_scope($1, tenant_id) ORDER BY tenant_id, month";

/// Prevents a change of the legal hold until the transaction ends.
const LOCK: &str = "SELECT legal_hold IS NULL AS holds FROM tenants WHERE id = $1 FOR SHARE";

/// Records the manifest's name before the manifest is written. If the process dies in between, the
/// manifest is still known to be this database's.
const INTEND: &str = "
    UPDATE archives SET intended = array_append(array_remove(intended, $4), $4), is_tidy = false
    WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

/// Clears `checked_at`: rows that are still in the tables are removed only after the new archive
/// was read back.
const REPLACE: &str = "
    UPDATE archives SET manifest = $4, manifest_sha256 = $5, bytes = $6, is_tidy = false, checked_at = NULL,
        replaced = replaced || array_remove(intended, $4) || $3, intended = '{}'
    WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

const UNTIDY: &str = "
    SELECT tenant_id, month, manifest, manifest_sha256, replaced, intended FROM archives
    WHERE NOT is_tidy AND person_in_scope($1, tenant_id) ORDER BY tenant_id, month";

/// A run that was ended, and the manifests it wrote.
#[derive(QueryableByName)]
struct EndedRun {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    month: String,
    #[diesel(sql_type = Array<Text>)]
    written: Vec<String>,
}

/// An archive with a folder that may still contain objects of replaced archives.
#[derive(QueryableByName)]
struct Untidy {
    #[diesel(embed)]
    archived: Archive,
    #[diesel(embed)]
    known: Known,
}

#[derive(QueryableByName)]
struct Holds {
    #[diesel(sql_type = Bool)]
    holds: bool,
}

/// A person, in the form that the database's functions take.
struct Person<'a> {
    parameter: &'a Json,
    needles: Needles,
}

impl Eraser {
    /// Erases a person from every archive in their scope. Call it after erasing the tables.
    ///
    /// Months that are archived later then have no data of the person. The call can be repeated
    /// after an error.
    ///
    /// # Errors
    /// The archive is unavailable or damaged, or a legal hold was set in the meantime.
    pub async fn erase(&self, scope: &Scope, person: &Json) -> Result<Erased, Error> {
        let parameter = person.clone();
        let ended = self
            .store
            .write_tx(scope, async move |db| Ok::<_, Error>(end_runs(db, &parameter).await?));
        ended.await?;
        let found = self.archives_of(scope, person).await?;
        let person = Person { parameter: person, needles: Needles::of(person) };
        let mut erased = Erased::default();
        for archived in found {
            let bucket = self.bucket_of(&archived)?;
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

    async fn archives_of(&self, scope: &Scope, person: &Json) -> Result<Vec<Archive>, Error> {
        let person = person.clone();
        let found = self.store.read_tx(scope, async move |db| {
            let found = diesel::sql_query(ARCHIVES).bind::<Jsonb, _>(&person).load(db).await?;
            Ok::<_, Error>(found)
        });
        found.await
    }

    fn bucket_of(&self, archived: &Archive) -> Result<&Bucket, Error> {
        self.bucket.as_ref().ok_or_else(|| Error::NoArchive(archived.month.clone()))
    }

    /// Whether `manifests` lists every archive in the person's scope.
    ///
    /// Call it in the transaction that erases the last data of a person. Until that transaction
    /// ends, the tables still have data of the person, and a run could archive it. Runs in progress
    /// are therefore ended, their objects are deleted, and new runs can't start.
    ///
    /// # Errors
    /// The database or the archive is unavailable.
    pub async fn are_all(
        &self,
        db: &mut Db,
        person: &Json,
        manifests: &[String],
    ) -> Result<bool, Error> {
        diesel::sql_query(LOCK_RUNS).execute(db).await?;
        for EndedRun { tenant_id, month, written } in end_runs(db, person).await? {
            let bucket = self.bucket.as_ref().ok_or_else(|| Error::NoArchive(month.clone()))?;
            let folder = names::folder(&row_id(&tenant_id)?, &month);
            let known = Known { replaced: written, intended: Vec::new() };
            let deleted = timeout(DELETED, tidy::delete_run(bucket, &folder, &known)).await;
            let late = |_| Error::Internal("deleting archive objects took too long".to_owned());
            if !deleted.map_err(late)?? {
                return Err(Error::Busy(folder));
            }
        }
        let others = diesel::sql_query(OTHERS).bind::<Jsonb, _>(person);
        let others: Holds = others.bind::<Array<Text>, _>(manifests).get_result(db).await?;
        Ok(others.holds)
    }

    /// Deletes replaced objects, including those left by an interrupted erasure.
    async fn delete_replaced(&self, scope: &Scope, person: &Json) -> Result<(), Error> {
        let person = person.clone();
        let found = self.store.read_tx(scope, async move |db| {
            let found = diesel::sql_query(UNTIDY).bind::<Jsonb, _>(&person).load(db).await?;
            Ok::<Vec<Untidy>, Error>(found)
        });
        for Untidy { archived, known } in found.await? {
            let Some(bucket) = &self.bucket else { return Ok(()) };
            let folder = archived.folder()?;
            let manifest = archived.manifest(bucket, &self.keys).await?;
            let own = (archived.manifest.as_str(), &manifest);
            if !tidy::delete_unnamed(bucket, &folder, own, &known).await? {
                return Err(Error::Busy(folder));
            }
            let tidied = self.store.write_tx(scope, async move |db| {
                let tidied =
                    diesel::sql_query(tidy::NOTE).bind::<Text, _>(archived.tenant_id.as_str());
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
        let old = archived.manifest(bucket, &self.keys).await?;
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

async fn end_runs(db: &mut Db, person: &Json) -> QueryResult<Vec<EndedRun>> {
    diesel::sql_query(END_RUNS).bind::<Jsonb, _>(person).load(db).await
}

/// An archive that is rewritten.
struct Rewriting<'a> {
    eraser: &'a Eraser,
    scope: &'a Scope,
    bucket: &'a Bucket,
    folder: &'a str,
    person: &'a Person<'a>,
}

impl Rewriting<'_> {
    /// Writes an object that replaces `was`. Returns the new object's entry for the manifest.
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

    /// Reads back the written objects and commits the new manifest. Returns its name.
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
        self.intend(archived, &name).await?;
        self.bucket.put(&format!("{}/{name}", self.folder), text.into_bytes()).await?;
        self.commit(archived, name.clone(), sha256, &new).await?;
        Ok(name)
    }

    async fn intend(&self, archived: &Archive, name: &str) -> Result<(), Error> {
        let (of, name) = (archived.clone(), name.to_owned());
        let intended = self.eraser.store.write_tx(self.scope, async move |db: &mut Db| {
            let intend = diesel::sql_query(INTEND)
                .bind::<Text, _>(of.tenant_id.as_str())
                .bind::<Text, _>(of.month)
                .bind::<Text, _>(of.manifest)
                .bind::<Text, _>(name);
            Ok::<_, Error>(intend.execute(db).await?)
        });
        if intended.await? == 1 { Ok(()) } else { Err(Error::Lost) }
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
            let lock = diesel::sql_query(LOCK).bind::<Text, _>(of.tenant_id.as_str());
            let lock: Holds = lock.get_result(db).await?;
            if !lock.holds {
                return Ok(0);
            }
            let replace = diesel::sql_query(REPLACE)
                .bind::<Text, _>(of.tenant_id.as_str())
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
