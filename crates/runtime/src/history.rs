//! Past versions of entities, which triggers store for every record.

use authority_model::{
    proto::runtime::{EntityVersion, ListEntityHistoryRequest, ListEntityHistoryResponse},
    schema::record_versions,
    wire::Json,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde_json::{Map, Value};

use super::view;
use authority_api::{
    error::ApiError,
    identity::{Caller, Exports},
    page,
    page_token::PageTokens,
};
use authority_decision::moment;
use authority_keys::Keys;
use authority_store::{self as store, RunQueryDsl, Store};

const PAGE: i32 = 100;

/// A version of an entity, between two changes.
#[derive(Queryable, Selectable)]
#[diesel(table_name = record_versions, check_for_backend(diesel::pg::Pg))]
pub(super) struct Version {
    pub(super) version: i64,
    pub(super) table_name: String,
    pub(super) entity_id: String,
    pub(super) tenant_id: Option<String>,
    pub(super) actor: String,
    pub(super) valid_from: DateTime<Utc>,
    pub(super) valid_to: Option<DateTime<Utc>>,
    pub(super) body: Option<Value>,
}

/// Converts times to RFC 3339. The history stores Postgres' text format.
pub(super) fn normal(mut record: Map<String, Value>) -> Map<String, Value> {
    const MOMENTS: [&str; 6] =
        ["since", "until", "not_before", "effective_from", "effective_until", "valid_until"];
    for (member, value) in &mut record {
        if (member.ends_with("_at") || MOMENTS.contains(&member.as_str()))
            && let Some(at) = value.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok())
        {
            *value = moment::text(at).into();
        }
    }
    record
}

/// Reads entities and their histories. Cheap to clone.
#[derive(Clone)]
pub(super) struct EntityQueries {
    pub(super) store: Store,
    /// Authenticates page tokens.
    pub(super) keys: Keys,
    /// The running exports.
    pub(super) exports: Exports,
}

impl EntityQueries {
    /// Returns the entity's version at a time, by default now.
    pub(super) async fn version(
        &self,
        caller: &Caller,
        id: String,
        at: Option<DateTime<Utc>>,
    ) -> Result<Option<Version>, ApiError> {
        let tenant = caller.tenant().cloned();
        let scope = caller.scope();
        let found = self.store.read_tx(&scope, async move |db| {
            let mut query = record_versions::table
                .filter(record_versions::entity_id.eq(&id))
                .order((record_versions::valid_from.desc(), record_versions::version.desc()))
                .select(Version::as_select())
                .into_boxed();
            if let Some(tenant) = &tenant {
                query = query.filter(record_versions::tenant_id.eq(tenant.as_str()));
            }
            if let Some(at) = at {
                query = query.filter(record_versions::valid_from.le(at));
            }
            Ok::<_, store::Error>(query.first(db).await.optional()?)
        });
        Ok(found.await?)
    }

    /// Returns a page of the entity's versions, newest first.
    pub(super) async fn history(
        &self,
        caller: &Caller,
        asked: ListEntityHistoryRequest,
    ) -> Result<ListEntityHistoryResponse, ApiError> {
        let tokens = PageTokens::of(&self.keys, caller, &asked);
        let before = tokens.read(&asked.page_token)?;
        let version = |place: Vec<u8>| Some(i64::from_be_bytes(place.try_into().ok()?));
        let before = before.map_or(i64::MAX, |place| version(place).unwrap_or_default());
        let size = usize::try_from(asked.limit.unwrap_or(PAGE)).unwrap_or_default();
        let (id, tenant) = (asked.entity_id.clone(), caller.tenant().cloned());
        let scope = caller.scope();
        let found = self.store.read_tx(&scope, async move |db| {
            let mut query = record_versions::table
                .filter(record_versions::entity_id.eq(&id))
                .filter(record_versions::version.lt(before))
                .order(record_versions::version.desc())
                // One more version, with which the page's oldest version is compared.
                .limit(i64::try_from(size).unwrap_or(i64::MAX - 1) + 1)
                .select(Version::as_select())
                .into_boxed();
            if let Some(tenant) = &tenant {
                query = query.filter(record_versions::tenant_id.eq(tenant.as_str()));
            }
            Ok::<Vec<Version>, store::Error>(query.load(db).await?)
        });
        let found = found.await?;
        if found.is_empty() && before == i64::MAX {
            return Err(ApiError::not_found("entity", &asked.entity_id));
        }
        let older = found.iter().skip(1).map(Some).chain([None]);
        let shown = |version: &Version| match &version.body {
            Some(Value::Object(record)) => view::of(&version.table_name, record.clone(), caller),
            _ => None,
        };
        let versions = found.iter().zip(older).map(|(version, older)| {
            let record = shown(version);
            EntityVersion {
                version: version.version.to_string(),
                actor: version.actor.clone(),
                valid_from: Some(version.valid_from.into()),
                valid_to: version.valid_to.map(Into::into),
                changed: changed(older.and_then(shown).as_ref(), record.as_ref()),
                record: record.map(|record| Json(normal(record))),
            }
        });
        let mut versions: Vec<EntityVersion> = versions.collect();
        let goes_on = page::cut(&mut versions, size);
        let last = found.get(versions.len().saturating_sub(1)).filter(|_| goes_on);
        let next_page_token = last.map(|last| tokens.write(&last.version.to_be_bytes()));
        Ok(ListEntityHistoryResponse { versions, next_page_token })
    }
}

/// Returns the fields that differ.
fn changed(before: Option<&Map<String, Value>>, after: Option<&Map<String, Value>>) -> Vec<String> {
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    let mut names: Vec<_> = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value))
        .map(|(name, _)| name)
        .chain(before.keys().filter(|name| !after.contains_key(*name)))
        .cloned()
        .collect();
    names.sort_unstable();
    names
}
