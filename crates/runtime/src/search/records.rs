//! Other records that a search finds: by their id, and tools, purposes, policies and resources by
//! their name.

use authority_api::{
    error::ApiError,
    identity::{is_closed_to, may_call},
};
use authority_ids::IdParts;
use authority_model::proto::runtime::FoundRecord;
use authority_store::{self as store, RunQueryDsl};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Text},
};
use serde_json::Value;

use super::{LIMIT, Search, SearchHandlers};
use crate::view;

/// Records that have a name, and the operations that list them.
const NAMED: [(&str, &str); 4] = [
    ("tools", "/authority.registry.v1.ToolService/ListTools"),
    ("purposes", "/authority.registry.v1.PurposeService/ListPurposes"),
    ("policies", "/authority.registry.v1.PolicyService/ListPolicies"),
    ("resources", "/authority.registry.v1.ResourceService/ListResources"),
];
const LIST_ENTITY_HISTORY: &str = "/authority.runtime.v1.AuthorityService/ListEntityHistory";

/// Finds the records of a tenant with this name, without regard to case.
const BY_NAME: &str = r#"
    SELECT id, name FROM (
        SELECT 'tools' AS kind, id, name FROM tools WHERE tenant_id = $1
        UNION ALL SELECT 'purposes', id, name FROM purposes WHERE tenant_id = $1
        UNION ALL SELECT 'policies', id, name FROM policies WHERE tenant_id = $1
        UNION ALL SELECT 'resources', id, name FROM resources WHERE tenant_id = $1
    ) AS named
    WHERE kind = ANY ($2) AND lower(name COLLATE "und-x-icu") = lower($3 COLLATE "und-x-icu")
    ORDER BY kind, id LIMIT $4"#;

#[derive(QueryableByName)]
struct NamedRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    name: String,
}

impl SearchHandlers {
    pub(super) async fn records(&self, search: &Search) -> Result<Vec<FoundRecord>, ApiError> {
        if let Some(record) = self.record_by_id(search).await? {
            return Ok(vec![record]);
        }
        let listed = NAMED.into_iter().filter(|(_, list)| may_call(list, &search.caller));
        let kinds: Vec<&str> = listed.map(|(table, _)| table).collect();
        let (Some(tenant_id), false) = (search.tenant_id.clone(), kinds.is_empty()) else {
            return Ok(Vec::new());
        };
        let (of, text) = (tenant_id.clone(), search.text.clone());
        let found = self.queries.store.read_tx(&search.caller.scope(), async move |db| {
            let found = diesel::sql_query(BY_NAME)
                .bind::<Text, _>(of)
                .bind::<Array<Text>, _>(kinds)
                .bind::<Text, _>(text)
                .bind::<BigInt, _>(LIMIT);
            Ok::<Vec<NamedRow>, store::Error>(found.load(db).await?)
        });
        let shown = |row: NamedRow| FoundRecord {
            entity_type: kind(&row.id),
            tenant_id: Some(tenant_id.clone()),
            record_id: row.id,
            name: Some(row.name),
        };
        Ok(found.await?.into_iter().map(shown).collect())
    }

    /// Finds the current version of a record that is not a principal.
    async fn record_by_id(&self, search: &Search) -> Result<Option<FoundRecord>, ApiError> {
        if IdParts::of(&search.text).is_none() || !may_call(LIST_ENTITY_HISTORY, &search.caller) {
            return Ok(None);
        }
        let version = self.entities.version(&search.caller, search.text.clone(), None).await?;
        let Some(version) = version else { return Ok(None) };
        let of_other = search.tenant_id.is_some() && version.tenant_id != search.tenant_id;
        let is_other = of_other || version.table_name == "principals";
        let Some(Value::Object(record)) = version.body.filter(|_| !is_other) else {
            return Ok(None);
        };
        let is_deleted = record.get("deleted_at").is_some_and(|at| !at.is_null());
        if is_deleted || is_closed_to(&search.caller, &version.table_name) {
            return Ok(None);
        }
        let visible = view::of(&version.table_name, record, &search.caller).unwrap_or_default();
        Ok(Some(FoundRecord {
            entity_type: kind(&version.entity_id),
            record_id: version.entity_id,
            tenant_id: version.tenant_id,
            name: visible.get("name").and_then(Value::as_str).map(str::to_owned),
        }))
    }
}

/// The kind of record in an id.
fn kind(id: &str) -> String {
    IdParts::of(id).map_or("", |parts| parts.kind).to_owned()
}
