//! The person who manages channels.

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind, Role},
};
use authority_model::{
    proto::{events::MessageSettings, registry::MessageDefaults},
    schema::tenants,
};
use authority_store::{self as store, Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryDsl, QueryResult, QueryableByName,
    sql_types::{Bool, Nullable, Text},
};

use super::settings::of_defaults;

/// Locks the tenant and the person. A deletion of the tenant or person waits for this transaction and
/// then deletes the new channel as well. If a person adds two channels at once, the second transaction
/// waits and counts the first channel.
const LOCK_TENANT: &str =
    "SELECT id FROM tenants WHERE id = $1 AND state = 'active' FOR NO KEY UPDATE";
const LOCK_PERSON: &str = "SELECT FROM principals WHERE tenant_id = $1 AND (external_subject = $2 \
     OR (principal_class = 'human' AND lower(btrim(email)) = $3)) FOR SHARE";

#[derive(Clone)]
pub(super) struct Owner {
    pub(super) tenant_id: String,
    /// The issuer and subject.
    pub(super) person: String,
    pub(super) subject: String,
    /// In lower case.
    pub(super) email: Option<String>,
    pub(super) role: String,
    pub(super) is_admin: bool,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Excluded {
    #[diesel(sql_type = Bool)]
    excluded: bool,
}

impl Owner {
    /// # Errors
    /// The caller is not a person of a tenant. The access rules already refuse such callers.
    pub(super) fn of(caller: &Caller) -> Result<Self, ApiError> {
        let CallerKind::Member { tenant_id, role, subject, email, .. } = &caller.kind else {
            return Err(ApiError::plain(ErrorCode::Forbidden));
        };
        Ok(Self {
            tenant_id: tenant_id.to_string(),
            person: caller.identity(),
            subject: subject.clone(),
            email: email.as_deref().map(|email| email.trim().to_lowercase()),
            is_admin: *role == Role::Admin,
            role: role.to_string(),
        })
    }

    /// # Errors
    /// 403 if the person or the tenant is inactive.
    pub(super) async fn lock(&self, db: &mut Db) -> Result<(), ApiError> {
        let forbidden = || ApiError::plain(ErrorCode::Forbidden);
        let tenant = diesel::sql_query(LOCK_TENANT).bind::<Text, _>(&self.tenant_id);
        let tenant: Option<Id> = tenant.get_result(db).await.optional().map_err(failed)?;
        tenant.filter(|tenant| tenant.id == self.tenant_id).ok_or_else(forbidden)?;
        diesel::sql_query(LOCK_PERSON)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.subject)
            .bind::<Nullable<Text>, _>(&self.email)
            .execute(db)
            .await
            .map_err(failed)?;
        // A separate statement, because its snapshot must be newer than the locks.
        let Excluded { excluded } =
            diesel::sql_query("SELECT person_excluded($1, $2, $3) AS excluded")
                .bind::<Text, _>(&self.tenant_id)
                .bind::<Text, _>(&self.subject)
                .bind::<Nullable<Text>, _>(&self.email)
                .get_result(db)
                .await
                .map_err(failed)?;
        if excluded { Err(forbidden()) } else { Ok(()) }
    }

    /// The tenant's settings for people's new channels.
    pub(super) async fn default_settings(&self, db: &mut Db) -> QueryResult<MessageSettings> {
        let tenant = tenants::table.find(&self.tenant_id).select(tenants::message_defaults);
        let found: Option<Option<MessageDefaults>> = tenant.first(db).await.optional()?;
        Ok(found.flatten().map(of_defaults).unwrap_or_default())
    }
}

pub(super) fn failed(error: diesel::result::Error) -> ApiError {
    store::Error::from(error).into()
}
