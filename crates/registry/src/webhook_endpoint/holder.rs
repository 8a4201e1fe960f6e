//! The holder of an endpoint: the endpoint is paused when its holder loses access.

use authority_api::{
    error::ErrorCode,
    identity::{Caller, CallerKind},
};
use authority_model::{schema::api_keys, state::ApiKeyStatus};
use authority_store::{Db, RunQueryDsl};
use diesel::{
    prelude::*,
    sql_types::{Bool, Nullable, Text},
};

use crate::flow::error::Error;

/// A key or person of the tenant. Both are absent if the holder is the installation's owner.
#[derive(Debug, Default)]
pub(super) struct Holder {
    pub(super) key_id: Option<String>,
    pub(super) person_subject: Option<String>,
    /// In lower case.
    pub(super) person_email: Option<String>,
}

#[derive(QueryableByName)]
struct Excluded {
    #[diesel(sql_type = Bool)]
    excluded: bool,
}

impl Holder {
    /// Returns the caller as holder and locks their row until the transaction ends. A concurrent
    /// transaction that ends their access either commits first and is seen here, or waits and then
    /// pauses the endpoint. Such a transaction locks the holder's row before the endpoint. Call
    /// this before locking the endpoint, to keep the same order.
    pub(super) async fn of(db: &mut Db, caller: &Caller) -> Result<Self, Error> {
        match &caller.kind {
            CallerKind::Anonymous | CallerKind::Owner { .. } => Ok(Self::default()),
            CallerKind::Key { tenant_id, key_id, .. } => {
                let live: Option<String> = api_keys::table
                    .filter(api_keys::tenant_id.eq(tenant_id.as_str()))
                    .filter(api_keys::id.eq(key_id.as_str()))
                    .filter(api_keys::status.eq(ApiKeyStatus::Active))
                    .for_share()
                    .select(api_keys::id)
                    .first(db)
                    .await
                    .optional()?;
                let key_id = live.ok_or(Error::Refused(ErrorCode::Unauthenticated))?;
                Ok(Self { key_id: Some(key_id), ..Self::default() })
            }
            CallerKind::Member { tenant_id, subject, email, .. } => {
                let email = email.as_deref().map(|email| email.trim().to_lowercase());
                let holder = Self {
                    person_subject: Some(subject.clone()),
                    person_email: email,
                    ..Self::default()
                };
                holder.lock_person(db, tenant_id.as_str()).await?;
                Ok(holder)
            }
        }
    }

    async fn lock_person(&self, db: &mut Db, tenant_id: &str) -> Result<(), Error> {
        diesel::sql_query(
            "SELECT FROM principals WHERE tenant_id = $1 AND (external_subject = $2 \
                 OR (principal_class = 'human' AND lower(btrim(email)) = $3)) FOR SHARE",
        )
        .bind::<Text, _>(tenant_id)
        .bind::<Nullable<Text>, _>(&self.person_subject)
        .bind::<Nullable<Text>, _>(&self.person_email)
        .execute(db)
        .await?;
        // A separate statement, because its snapshot must be newer than the locks.
        let Excluded { excluded } =
            diesel::sql_query("SELECT person_excluded($1, $2, $3) AS excluded")
                .bind::<Text, _>(tenant_id)
                .bind::<Nullable<Text>, _>(&self.person_subject)
                .bind::<Nullable<Text>, _>(&self.person_email)
                .get_result(db)
                .await?;
        if excluded { Err(Error::Refused(ErrorCode::Forbidden)) } else { Ok(()) }
    }
}
