//! Erases contexts and facts of decisions, shared facts, and history, page by page. There may be
//! millions of rows. Each page therefore has its own transaction.

use authority_model::wire::Json;
use diesel::sql_types::{BigInt, Bytea, Jsonb, Nullable, Text};

use super::{hold, person::Person};
use crate::flow::prelude::*;
use authority_store::Store;

/// The number of rows that one transaction scans.
const PAGE: i64 = 2_000;

/// Erases contexts of the principals' decisions. Contexts and facts that name the person are also
/// erased. The decision records keep their digests.
const DECISIONS: &str = "
    WITH page AS MATERIALIZED (
        SELECT id FROM decisions WHERE ($2 IS NULL OR tenant_id = $2) AND id > $3 ORDER BY id LIMIT $4
    ), found AS MATERIALIZED (
        SELECT d.id,
               d.context <> '' AND (($1 -> 'principals') ? d.subject
                   OR person_mentioned($1, convert_from(d.context, 'UTF8'))) AS context,
               person_mentioned($1, convert_from(d.facts, 'UTF8')) AS facts
        FROM decisions d JOIN page ON page.id = d.id WHERE person_in_scope($1, d.tenant_id)
    ), erased AS (
        UPDATE decisions d
        SET context = CASE WHEN f.context THEN '' ELSE d.context END,
            context_salt = CASE WHEN f.context THEN '' ELSE d.context_salt END,
            facts = CASE WHEN f.facts THEN '' ELSE d.facts END,
            facts_salt = CASE WHEN f.facts THEN '' ELSE d.facts_salt END
        FROM found f WHERE d.id = f.id AND (f.context OR f.facts)
        RETURNING f.context, f.facts)
    SELECT (SELECT max(id) FROM page) AS last,
           (SELECT count(*) FROM erased WHERE context) AS one,
           (SELECT count(*) FROM erased WHERE facts) AS other";

/// Shared facts that name the person. A fact is identified by its digest and can only be erased as
/// a whole.
const FACTS: &str = "
    WITH page AS MATERIALIZED (
        SELECT tenant_id, sha256 FROM fact_blobs
        WHERE ($2 IS NULL OR tenant_id = $2) AND (tenant_id, sha256) > ($3, $5)
        ORDER BY tenant_id, sha256 LIMIT $4
    ), erased AS (
        DELETE FROM fact_blobs b USING page
        WHERE (b.tenant_id, b.sha256) = (page.tenant_id, page.sha256) AND person_in_scope($1, b.tenant_id)
          AND (person_mentioned($1, convert_from(b.body, 'UTF8'))
               OR EXISTS (SELECT FROM jsonb_array_elements_text($1 -> 'principals') AS principal
                          WHERE strpos(convert_from(b.body, 'UTF8'),
                                       '\"id\":\"' || principal || '\",\"name\":') > 0))
        RETURNING b.sha256)
    SELECT last.tenant_id AS last, last.sha256 AS last_digest,
           (SELECT count(*) FROM erased) AS one, 0::bigint AS other
    FROM (SELECT tenant_id, sha256 FROM page ORDER BY tenant_id DESC, sha256 DESC LIMIT 1) AS last";

const VERSIONS: &str = "
    SELECT last, changed FROM erase_versions($1, $2, $3)";

const LAST_VERSION: &str = "SELECT max(version) AS last, 0::bigint AS changed FROM record_versions";

/// The number of erased items.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Erased {
    pub(super) contexts: i64,
    /// Facts of single decisions and shared facts.
    pub(super) facts: i64,
    pub(super) versions: i64,
    /// Reports in archives. Reports in the tables are erased in the last transaction.
    pub(super) reports: i64,
}

impl Erased {
    /// Adds the items erased from archives.
    pub(super) fn add(&mut self, archived: &authority_archive::Erased) {
        self.contexts += archived.contexts;
        self.facts += archived.facts;
        self.versions += archived.versions;
        self.reports += archived.reports;
    }
}

#[derive(QueryableByName)]
struct Decisions {
    #[diesel(sql_type = Nullable<Text>)]
    last: Option<String>,
    #[diesel(sql_type = BigInt)]
    one: i64,
    #[diesel(sql_type = BigInt)]
    other: i64,
}

#[derive(QueryableByName)]
struct Facts {
    #[diesel(sql_type = Text)]
    last: String,
    #[diesel(sql_type = Bytea)]
    last_digest: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    one: i64,
}

#[derive(QueryableByName)]
struct Versions {
    #[diesel(sql_type = Nullable<BigInt>)]
    last: Option<i64>,
    #[diesel(sql_type = BigInt)]
    changed: i64,
}

/// An erasure that processes pages.
pub(super) struct Pages<'a> {
    pub(super) store: &'a Store,
    pub(super) caller: &'a Caller,
    pub(super) person: &'a Person,
    /// The person in the form that the statements expect.
    pub(super) parameter: &'a Json,
    pub(super) held: &'a [String],
}

impl Pages<'_> {
    /// Erases all pages. Returns the counts and the last version of the history that was scanned.
    ///
    /// # Errors
    /// A legal hold was set in between, or the database is unavailable. Items erased until then
    /// stay erased.
    pub(super) async fn erase(&self) -> Result<(Erased, i64), Error> {
        let mut erased = Erased::default();
        self.decisions(&mut erased).await?;
        self.facts(&mut erased).await?;
        let last = self.versions(&mut erased).await?;
        Ok((erased, last))
    }

    async fn decisions(&self, erased: &mut Erased) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let (from, person) = (after.clone(), self.parameter.clone());
            let (within, held) = (self.person.within.clone(), self.held.to_vec());
            let page = self.store.write_tx(&self.caller.scope(), async move |db| {
                hold::still_held(db, within.as_deref(), &held).await?;
                let page: Decisions = diesel::sql_query(DECISIONS)
                    .bind::<Jsonb, _>(person)
                    .bind::<Nullable<Text>, _>(within)
                    .bind::<Text, _>(from)
                    .bind::<BigInt, _>(PAGE)
                    .get_result(db)
                    .await?;
                Ok::<_, Error>(page)
            });
            let page = page.await?;
            erased.contexts += page.one;
            erased.facts += page.other;
            let Some(last) = page.last else { return Ok(()) };
            after = last;
        }
    }

    async fn facts(&self, erased: &mut Erased) -> Result<(), Error> {
        let mut after = (String::new(), Vec::new());
        loop {
            let ((tenant, digest), person) = (after, self.parameter.clone());
            let (within, held) = (self.person.within.clone(), self.held.to_vec());
            let page = self.store.write_tx(&self.caller.scope(), async move |db| {
                hold::still_held(db, within.as_deref(), &held).await?;
                let page: Option<Facts> = diesel::sql_query(FACTS)
                    .bind::<Jsonb, _>(person)
                    .bind::<Nullable<Text>, _>(within)
                    .bind::<Text, _>(tenant)
                    .bind::<BigInt, _>(PAGE)
                    .bind::<Bytea, _>(digest)
                    .get_result(db)
                    .await
                    .optional()?;
                Ok::<_, Error>(page)
            });
            let Some(page) = page.await? else { return Ok(()) };
            erased.facts += page.one;
            after = (page.last, page.last_digest);
        }
    }

    /// Processes the versions that exist now. Later versions are left to the last transaction.
    async fn versions(&self, erased: &mut Erased) -> Result<i64, Error> {
        let read = self.store.read_tx(&self.caller.scope(), async |db| {
            let last: Versions = diesel::sql_query(LAST_VERSION).get_result(db).await?;
            Ok::<_, Error>(last.last.unwrap_or_default())
        });
        let until = read.await?;
        let mut after = 0;
        while after < until {
            let person = self.parameter.clone();
            let (within, held) = (self.person.within.clone(), self.held.to_vec());
            let page = self.store.write_tx(&self.caller.scope(), async move |db| {
                hold::still_held(db, within.as_deref(), &held).await?;
                Ok::<_, Error>(versions_after(db, &person, after).await?)
            });
            let (last, changed) = page.await?;
            erased.versions += changed;
            let Some(last) = last else { break };
            after = last;
        }
        Ok(after)
    }
}

/// Erases a page of the history. Returns the last version that was scanned and the number of
/// changes.
pub(super) async fn versions_after(
    db: &mut Db,
    person: &Json,
    after: i64,
) -> QueryResult<(Option<i64>, i64)> {
    let page: Versions = diesel::sql_query(VERSIONS)
        .bind::<Jsonb, _>(person)
        .bind::<BigInt, _>(after)
        .bind::<diesel::sql_types::Integer, _>(i32::try_from(PAGE).unwrap_or(i32::MAX))
        .get_result(db)
        .await?;
    Ok((page.last, page.changed))
}
