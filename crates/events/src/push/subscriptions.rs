//! Stores a person's push subscriptions.

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind},
};
use authority_ids::RecordId;
use authority_model::{proto::events::PushSubscription, wire::Time};
use authority_store::{self as store, Db, RunQueryDsl, new_id};
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{BigInt, Binary, Bool, Nullable, Text, Timestamptz},
};

/// The most subscriptions of a person.
const MOST: i64 = 10;

const SHOWN: &str = "id, origin, role, label, expires_at, created_at, renewed_at";

/// Locks the tenant and the person. A deletion of the tenant or person waits for this transaction
/// and then deletes the new subscription as well. If a person adds two subscriptions at once, the
/// second transaction waits and counts the first subscription.
const LOCK_TENANT: &str =
    "SELECT id FROM tenants WHERE id = $1 AND state = 'active' FOR NO KEY UPDATE";
const LOCK_PERSON: &str = "SELECT FROM principals WHERE tenant_id = $1 AND (external_subject = $2 \
     OR (principal_class = 'human' AND lower(btrim(email)) = $3)) FOR SHARE";

/// A person of a tenant.
#[derive(Clone)]
pub(super) struct Person {
    tenant_id: String,
    /// The issuer and subject.
    person: String,
    subject: String,
    /// In lower case.
    email: Option<String>,
    role: String,
}

/// A new subscription.
pub(super) struct New {
    pub(super) endpoint_code: [u8; 32],
    pub(super) origin: String,
    pub(super) label: Option<String>,
    pub(super) expires_at: Option<DateTime<Utc>>,
}

#[derive(QueryableByName)]
struct SubscriptionRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    origin: String,
    #[diesel(sql_type = Text)]
    role: String,
    #[diesel(sql_type = Nullable<Text>)]
    label: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    renewed_at: DateTime<Utc>,
}

impl From<SubscriptionRow> for PushSubscription {
    fn from(row: SubscriptionRow) -> Self {
        Self {
            id: row.id,
            origin: row.origin,
            role: row.role,
            label: row.label,
            expiration_time: row.expires_at.map(Time::from),
            created_at: Some(row.created_at.into()),
            renewed_at: Some(row.renewed_at.into()),
        }
    }
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

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

impl Person {
    /// Returns the person that calls.
    ///
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
            role: role.to_string(),
        })
    }

    pub(super) async fn list(&self, db: &mut Db) -> QueryResult<Vec<PushSubscription>> {
        let query = format!(
            "SELECT {SHOWN} FROM push_subscriptions WHERE tenant_id = $1 AND person = $2 ORDER BY id"
        );
        let query = diesel::sql_query(query).bind::<Text, _>(&self.tenant_id);
        let rows: Vec<SubscriptionRow> = query.bind::<Text, _>(&self.person).load(db).await?;
        Ok(rows.into_iter().map(PushSubscription::from).collect())
    }

    /// Renews the subscription of this URL, or adds one.
    ///
    /// `seal` encrypts the URL for a new id.
    ///
    /// # Errors
    /// 403 if the person or the tenant is inactive, 409 if the person has too many subscriptions.
    pub(super) async fn subscribe(
        &self,
        db: &mut Db,
        new: &New,
        seal: impl FnOnce(&str) -> Result<Vec<u8>, ApiError>,
    ) -> Result<PushSubscription, ApiError> {
        self.lock(db).await?;
        self.delete_expired(db).await.map_err(failed)?;
        if let Some(renewed) = self.renew(db, new).await.map_err(failed)? {
            return Ok(renewed.into());
        }
        if self.count(db).await.map_err(failed)? >= MOST {
            let text = format!("you have {MOST} push subscriptions; delete one first");
            return Err(ApiError::new(ErrorCode::LimitReached, text));
        }
        let id = String::from(RecordId::new("push_subscription", new_id()));
        let sealed = seal(&id)?;
        Ok(self.insert(db, new, &id, sealed).await.map_err(failed)?.into())
    }

    /// Deletes a subscription. Returns whether the person had it.
    pub(super) async fn unsubscribe(&self, db: &mut Db, id: &str) -> QueryResult<bool> {
        let deleted = diesel::sql_query(
            "DELETE FROM push_subscriptions WHERE tenant_id = $1 AND person = $2 AND id = $3",
        )
        .bind::<Text, _>(&self.tenant_id)
        .bind::<Text, _>(&self.person)
        .bind::<Text, _>(id)
        .execute(db)
        .await?;
        Ok(deleted > 0)
    }

    async fn lock(&self, db: &mut Db) -> Result<(), ApiError> {
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

    async fn renew(&self, db: &mut Db, new: &New) -> QueryResult<Option<SubscriptionRow>> {
        let query = format!(
            "UPDATE push_subscriptions \
             SET subject = $4, email = $5, role = $6, label = $7, expires_at = $8, \
                 renewed_at = clock_timestamp(), failures = 0 \
             WHERE tenant_id = $1 AND person = $2 AND endpoint_code = $3 RETURNING {SHOWN}"
        );
        diesel::sql_query(query)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Binary, _>(new.endpoint_code.as_slice())
            .bind::<Text, _>(&self.subject)
            .bind::<Nullable<Text>, _>(&self.email)
            .bind::<Text, _>(&self.role)
            .bind::<Nullable<Text>, _>(&new.label)
            .bind::<Nullable<Timestamptz>, _>(new.expires_at)
            .get_result(db)
            .await
            .optional()
    }

    /// Deletes the person's expired subscriptions. If they were renewed later, the person could
    /// exceed the limit.
    async fn delete_expired(&self, db: &mut Db) -> QueryResult<()> {
        diesel::sql_query(
            "DELETE FROM push_subscriptions WHERE tenant_id = $1 AND person = $2 \
               AND expires_at <= clock_timestamp()",
        )
        .bind::<Text, _>(&self.tenant_id)
        .bind::<Text, _>(&self.person)
        .execute(db)
        .await
        .map(drop)
    }

    async fn count(&self, db: &mut Db) -> QueryResult<i64> {
        let counted: Count = diesel::sql_query(
            "SELECT count(*) AS count FROM push_subscriptions WHERE tenant_id = $1 AND person = $2",
        )
        .bind::<Text, _>(&self.tenant_id)
        .bind::<Text, _>(&self.person)
        .get_result(db)
        .await?;
        Ok(counted.count)
    }

    async fn insert(
        &self,
        db: &mut Db,
        new: &New,
        id: &str,
        sealed: Vec<u8>,
    ) -> QueryResult<SubscriptionRow> {
        let query = format!(
            "INSERT INTO push_subscriptions (id, tenant_id, person, subject, email, role, \
                 endpoint_code, sealed_endpoint, origin, label, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING {SHOWN}"
        );
        diesel::sql_query(query)
            .bind::<Text, _>(id)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Text, _>(&self.subject)
            .bind::<Nullable<Text>, _>(&self.email)
            .bind::<Text, _>(&self.role)
            .bind::<Binary, _>(new.endpoint_code.as_slice())
            .bind::<Binary, _>(sealed)
            .bind::<Text, _>(&new.origin)
            .bind::<Nullable<Text>, _>(&new.label)
            .bind::<Nullable<Timestamptz>, _>(new.expires_at)
            .get_result(db)
            .await
    }
}

pub(super) fn failed(error: diesel::result::Error) -> ApiError {
    store::Error::from(error).into()
}
