//! Rows of API keys, which become the keys of the graph.

use std::{collections::BTreeSet, sync::Arc};

use authority_ids::{ApiKeyId, PrincipalRef, TenantId};
use authority_model::{schema::api_keys, state::ApiKeyStatus};
use chrono::{DateTime, Utc};
use diesel::prelude::*;

use super::{
    api_key::{ApiKey, allow_list},
    fields::per_second,
    graph::Graph,
    persons::Persons,
};
use authority_store::{Db, RunQueryDsl};

/// The table of API keys.
pub(super) const API_KEYS: &str = "api_keys";

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys, check_for_backend(diesel::pg::Pg))]
pub(super) struct KeyRow {
    id: String,
    tenant_id: String,
    status: String,
    secret_code: Vec<u8>,
    previous_code: Option<Vec<u8>>,
    previous_until: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    scopes: Vec<String>,
    principal_ids: Vec<String>,
    ip_allowlist: Vec<String>,
    decisions_per_second: Option<i32>,
    people: Vec<String>,
    people_emails: Vec<String>,
}

impl KeyRow {
    pub(super) async fn all(db: &mut Db) -> QueryResult<Vec<Self>> {
        api_keys::table.select(Self::as_select()).load(db).await
    }

    pub(super) async fn some(db: &mut Db, ids: &BTreeSet<String>) -> QueryResult<Vec<Self>> {
        api_keys::table.filter(api_keys::id.eq_any(ids)).select(Self::as_select()).load(db).await
    }

    /// Reads the row. Returns `None` without a valid key id and tenant id: no call can use such a
    /// key.
    ///
    /// A key with any other unreadable field is inactive.
    fn read(self) -> Option<ApiKey> {
        let id = ApiKeyId::parse(&self.id).ok()?;
        let tenant_id = TenantId::parse(&self.tenant_id).ok()?;
        let code = <[u8; 32]>::try_from(self.secret_code);
        let allowed = allow_list(self.ip_allowlist.iter().map(String::as_str)).ok();
        let previous = self.previous_code.and_then(|code| code.try_into().ok());
        Some(ApiKey {
            id,
            active: self.status.parse() == Ok(ApiKeyStatus::Active)
                && code.is_ok()
                && allowed.is_some(),
            tenant_id,
            code: code.unwrap_or_default(),
            previous: previous.zip(self.previous_until),
            expires_at: self.expires_at,
            scopes: self.scopes.into(),
            principal_ids: self.principal_ids.into_iter().map(PrincipalRef::from).collect(),
            allowed_from: allowed.unwrap_or_default(),
            decisions_per_second: self.decisions_per_second.map(per_second),
            people: Persons { identities: self.people, emails: self.people_emails }.into(),
        })
    }
}

impl Graph {
    /// Replaces the changed rows. Removes keys without a row.
    pub(super) fn put_keys<'a>(
        &self,
        changed: impl IntoIterator<Item = &'a String>,
        rows: Vec<KeyRow>,
    ) {
        let mut keys = self.keys.write();
        for id in changed {
            if let Ok(id) = ApiKeyId::parse(id) {
                keys.remove(id.public_id());
            }
        }
        for key in rows.into_iter().filter_map(KeyRow::read) {
            keys.insert(key.id.public_id().to_owned(), Arc::new(key));
        }
    }
}
