//! API keys: looked up before the tenant is known, and as fresh as authority itself.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use authority_model::schema::api_keys;
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use ipnet::IpNet;

use super::{Graph, persons::Persons};
use crate::store::{Db, RunQueryDsl};

/// The table of API keys.
pub(super) const API_KEYS: &str = "api_keys";

/// An API key as identity needs it; the key itself is stored nowhere.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: Arc<str>,
    pub tenant_id: Arc<str>,
    pub active: bool,
    /// The code of its secret.
    pub code: [u8; 32],
    /// The code before a rotation, and until when it counts.
    pub previous: Option<([u8; 32], DateTime<Utc>)>,
    pub expires_at: Option<DateTime<Utc>>,
    pub scopes: Arc<[String]>,
    pub principal_ids: Arc<[String]>,
    /// Empty: from anywhere.
    pub allowed_from: Arc<[IpNet]>,
    /// For whom it stands: who made it or gave it a new secret.
    pub people: Arc<Persons>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys, check_for_backend(diesel::pg::Pg))]
pub(super) struct KeyRow {
    id: String,
    tenant_id: String,
    prefix: String,
    status: String,
    secret_code: Vec<u8>,
    previous_code: Option<Vec<u8>>,
    previous_until: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    scopes: Vec<String>,
    principal_ids: Vec<String>,
    ip_allowlist: Vec<String>,
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

    /// The public id that a presented key names, and the key. Rows that cannot be read are inactive.
    fn read(self) -> (String, ApiKey) {
        let public_id = self.prefix.rsplit('_').next().unwrap_or_default().to_owned();
        let code = <[u8; 32]>::try_from(self.secret_code);
        let allowed: Option<Vec<IpNet>> =
            self.ip_allowlist.iter().map(|text| network(text)).collect();
        let previous = self.previous_code.and_then(|code| code.try_into().ok());
        let key = ApiKey {
            active: self.status == "active" && code.is_ok() && allowed.is_some(),
            id: self.id.into(),
            tenant_id: self.tenant_id.into(),
            code: code.unwrap_or_default(),
            previous: previous.zip(self.previous_until),
            expires_at: self.expires_at,
            scopes: self.scopes.into(),
            principal_ids: self.principal_ids.into(),
            allowed_from: allowed.unwrap_or_default().into(),
            people: Persons { identities: self.people, emails: self.people_emails }.into(),
        };
        (public_id, key)
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

impl Graph {
    /// Puts the rows in the places of those that changed; one that has no row is gone.
    pub(super) fn put_keys<'a>(
        &self,
        changed: impl IntoIterator<Item = &'a String>,
        rows: Vec<KeyRow>,
    ) {
        let mut keys = self.keys.write();
        for id in changed {
            keys.remove(id.rsplit(':').next().unwrap_or_default());
        }
        for (public_id, key) in rows.into_iter().map(KeyRow::read) {
            keys.insert(public_id, Arc::new(key));
        }
    }
}
