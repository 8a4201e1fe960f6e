//! Erases a person. The paged data comes first, then everything else and the erasure record in one
//! transaction.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use authority_ids::RecordId;
use authority_model::{
    proto::{
        programme::{ErasePersonalDataRequest, Erasure},
        registry::Principal,
    },
    wire::Json,
};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, Jsonb, Text};
use serde_json::Value;

use super::{
    erasures,
    handlers::PersonalData,
    hold,
    pages::{Erased, Pages, versions_after},
    person::Person,
    tables::{ACTORS, OWN_RECORDS, STATEMENTS, WITHOUT_TENANT},
};
use crate::flow::prelude::*;
use authority_api::{error::ApiError, idempotency::Done};
use authority_store as store;

/// The longest time for one transaction, which scans whole tables.
const LONGEST: Duration = Duration::from_secs(600);
/// Replaces a name in columns where the name has no effect.
const ERASED: &str = "erased";

const ARCHIVED_MEANWHILE: &str = "a month was archived during the erasure; erase the person again";

/// Erases a person. The work continues in its own task if the call's deadline passes.
pub(super) async fn erase(
    service: &PersonalData,
    call: Request<ErasePersonalDataRequest>,
) -> Reply<Erasure> {
    let key = IdempotencyKey::of(&call)?;
    let (caller, asked) = admitted(call)?;
    let erasing = tokio::spawn(run(service.clone(), caller, key, asked));
    let crashed = |_| Error::Store(store::Error::Internal("the erasure task panicked".to_owned()));
    Ok(erasing.await.map_err(crashed)??.reply())
}

async fn run(
    service: PersonalData,
    caller: Caller,
    key: Option<IdempotencyKey>,
    asked: ErasePersonalDataRequest,
) -> Result<Done<Erasure>, Error> {
    let registry = &service.registry;
    let named = (&asked).into();
    let scope = caller.scope();
    let found = registry
        .store
        .long_write_tx(LONGEST, &scope, async move |db| Person::find(db, named).await);
    let person = found.await?;
    refuse(&person, &caller, &asked)?;
    let held = hold::unless_held(&service, &caller, &person).await?;
    let parameter = person.parameter(&registry.keys.erased_names(), &held);
    let pages = Pages {
        store: &registry.store,
        caller: &caller,
        person: &person,
        parameter: &parameter,
        held: &held,
    };
    service.archives.reach(&scope, &parameter).await.map_err(ApiError::from)?;
    let (mut paged, version) = pages.erase().await?;
    // Runs after the pages, because more rows may have been archived in the meantime.
    let archived = service.archives.erase(&scope, &parameter).await.map_err(ApiError::from)?;
    paged.add(&archived);
    let (now, by) = (registry.clock.now(), caller.clone());
    let (destinations, archives) = (Arc::clone(&registry.destinations), service.archives.clone());
    let erased = registry.store.long_write_tx(LONGEST, &scope, async move |db| {
        if let Some(key) = &key
            && let Some(first) = key.claim(db, now).await?
        {
            return Ok(Done::before(&first)?);
        }
        hold::still_held(db, person.within.as_deref(), &held).await?;
        let whole = archives.are_all(db, &parameter, &archived.manifests).await;
        if !whole.map_err(ApiError::from)? {
            return Err(ApiError::new(ErrorCode::Unavailable, ARCHIVED_MEANWHILE).into());
        }
        let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
        let last = Last { person: &person, parameter: &parameter, held: &held };
        let counts = last.erase(&mut tx, paged, version).await?;
        let made = made(&by, &person, asked.reason, counts, now);
        let made = erasures::keep(db, made).await?;
        if let Some(key) = &key {
            key.keep(db, &made).await?;
        }
        Ok::<_, Error>(Done::now(made))
    });
    let erased = erased.await?;
    (registry.after_commit)().await;
    Ok(erased)
}

/// Refuses an erasure of the caller, because the stored erasure names its requester. Also refuses a
/// reason that names the person.
fn refuse(person: &Person, caller: &Caller, asked: &ErasePersonalDataRequest) -> Result<(), Error> {
    if person.is(caller) {
        let text = "names the caller; another owner of the installation can erase you";
        let named = [("email", &asked.email), ("principal_id", &asked.principal_id)];
        let member = named.iter().find(|(_, given)| given.is_some());
        return Err(Error::field(member.map_or("external_subject", |(member, _)| member), text));
    }
    if person.is_named_in(&asked.reason) {
        return Err(Error::field("reason", "must not name the person: it is kept"));
    }
    Ok(())
}

/// The number of erased items of each kind.
type Counts = BTreeMap<&'static str, i64>;

/// The last transaction of an erasure.
struct Last<'a> {
    person: &'a Person,
    parameter: &'a Json,
    held: &'a [String],
}

impl Last<'_> {
    async fn erase(
        &self,
        tx: &mut WriteTx<'_>,
        paged: Erased,
        version: i64,
    ) -> Result<Counts, Error> {
        let Erased { contexts, facts, versions, reports } = paged;
        let mut counts =
            Counts::from([("contexts", contexts), ("facts", facts), ("reports", reports)]);
        self.end_principals(tx).await?;
        for statement in STATEMENTS {
            let changed = diesel::sql_query(statement.sql)
                .bind::<Jsonb, _>(self.parameter)
                .execute(tx.db)
                .await?;
            add(&mut counts, statement.kind, changed);
        }
        let mut own: Vec<(Vec<String>, &[&str])> = Vec::new();
        for records in OWN_RECORDS {
            let erased: Vec<Id> =
                diesel::sql_query(records.sql).bind::<Jsonb, _>(self.parameter).load(tx.db).await?;
            add(&mut counts, records.kind, erased.len());
            own.push((erased.into_iter().map(|row| row.id).collect(), records.members));
        }
        for (table, columns) in ACTORS {
            for column in *columns {
                let changed = self.erase_actor(tx.db, table, column).await?;
                add(&mut counts, "creators", changed);
            }
        }
        *counts.entry("versions").or_default() += versions + self.versions(tx.db, version).await?;
        for (ids, members) in own {
            forget(tx.db, ids, members).await?;
        }
        counts.retain(|_, count| *count > 0);
        Ok(counts)
    }

    /// Ends the records that depend on the person's principals, like a delete of these principals
    /// does.
    async fn end_principals(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        use authority_model::{schema::principals, state::PrincipalState};
        let ids: Vec<&String> = self.person.principals.iter().collect();
        let within = self.person.within.as_deref();
        let live: Vec<Principal> = principals::table
            .filter(principals::id.eq_any(ids))
            .filter(
                principals::tenant_id
                    .eq(within.unwrap_or_default())
                    .or(within.is_none().into_sql::<Bool>()),
            )
            .filter(principals::tenant_id.ne_all(self.held))
            .filter(principals::deleted_at.is_null())
            .order(principals::id)
            .for_update()
            .select(Principal::as_select())
            .load(tx.db)
            .await?;
        for principal in live {
            principal.before_delete(tx).await?;
            Principal::end(tx.db, &principal, PrincipalState::Revoked).await?;
        }
        Ok(())
    }

    async fn erase_actor(&self, db: &mut Db, table: &str, column: &str) -> QueryResult<usize> {
        let tenant = if WITHOUT_TENANT.contains(&table) { "''" } else { "tenant_id" };
        let sql = format!(
            "UPDATE {table} SET {column} = '{ERASED}' \
             WHERE person_in_scope($1, {tenant}) AND person_code($1, {column}) IS NOT NULL"
        );
        diesel::sql_query(sql).bind::<Jsonb, _>(self.parameter).execute(db).await
    }

    /// Erases the person from versions that were added after the pages were read, such as the
    /// versions of this transaction.
    async fn versions(&self, db: &mut Db, mut after: i64) -> QueryResult<i64> {
        let mut all = 0;
        loop {
            let (last, changed) = versions_after(db, self.parameter, after).await?;
            all += changed;
            match last {
                Some(last) => after = last,
                None => return Ok(all),
            }
        }
    }
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

fn add(counts: &mut Counts, kind: &'static str, changed: usize) {
    *counts.entry(kind).or_default() += i64::try_from(changed).unwrap_or(i64::MAX);
}

/// Removes fields from every version of these records.
pub(super) async fn forget(db: &mut Db, ids: Vec<String>, members: &[&str]) -> QueryResult<()> {
    if ids.is_empty() {
        return Ok(());
    }
    diesel::sql_query("SELECT forget(id, $2) FROM unnest($1) AS id")
        .bind::<Array<Text>, _>(ids)
        .bind::<Array<Text>, _>(members)
        .execute(db)
        .await
        .map(drop)
}

fn made(
    by: &Caller,
    person: &Person,
    reason: String,
    counts: Counts,
    now: DateTime<Utc>,
) -> Erasure {
    let erased = counts.into_iter().map(|(kind, count)| (kind.to_owned(), Value::from(count)));
    Erasure {
        id: RecordId::new("erasure", new_id()).into(),
        at: Some(now.into()),
        by: by.actor.clone(),
        reason,
        tenant_id: person.within.clone(),
        erased: Some(Json(erased.collect())),
    }
}
