//! Stores channels.

use authority_api::error::{ApiError, ErrorCode};
use authority_model::{
    proto::events::{MessageChannel, MessageSettings},
    wire::Time,
};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{BigInt, Bool, Bytea, Jsonb, Nullable, Text, Timestamptz},
};
use serde_json::Value;

use super::{
    owner::{Owner, failed},
    settings::Settings,
    transport::Receiver,
};

/// The maximum numbers of channels of a person and of a tenant.
const MOST: i64 = 10;
const MOST_OF_TENANT: i64 = 20;

/// The columns of [`ChannelRow`].
pub(super) const COLUMNS: &str = "c.id, c.kind, c.person, c.email, c.role, c.target, c.settings, \
     c.created_at, c.updated_at, c.failing_since, c.last_error";

/// The channels that a person manages: `$1` is the tenant, `$2` the person, `$3` whether the person is
/// an admin.
const MANAGED: &str = "c.tenant_id = $1 AND (c.person = $2 OR (c.person IS NULL AND $3))";

#[derive(Clone, Debug, QueryableByName)]
pub(super) struct ChannelRow {
    #[diesel(sql_type = Text)]
    pub(super) id: String,
    #[diesel(sql_type = Text)]
    pub(super) kind: String,
    /// The issuer and subject; `None` for a channel of the tenant.
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) person: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) email: Option<String>,
    #[diesel(sql_type = Text)]
    pub(super) role: String,
    #[diesel(sql_type = Text)]
    pub(super) target: String,
    #[diesel(sql_type = Jsonb)]
    settings: Value,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    pub(super) updated_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    failing_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
}

impl ChannelRow {
    /// The settings. Settings that cannot be read are the default ones, with which the channel gets
    /// every message.
    pub(super) fn settings(&self) -> Settings {
        serde_json::from_value(self.settings.clone()).unwrap_or_default()
    }

    pub(super) fn receiver(self, sealed_url: Option<Vec<u8>>) -> Receiver {
        Receiver {
            is_own: self.person.is_some(),
            channel_id: self.id,
            kind: self.kind,
            target: self.target,
            sealed_url,
        }
    }
}

impl From<ChannelRow> for MessageChannel {
    fn from(row: ChannelRow) -> Self {
        Self {
            settings: Some(MessageSettings::from(row.settings())),
            id: row.id,
            kind: row.kind,
            for_tenant: row.person.is_none(),
            target: row.target,
            role: row.role,
            failing_since: row.failing_since.map(Time::from),
            last_error: row.last_error,
            created_at: Some(row.created_at.into()),
            updated_at: Some(row.updated_at.into()),
        }
    }
}

/// A new channel.
#[derive(Clone)]
pub(super) struct NewChannel {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) for_tenant: bool,
    pub(super) target: String,
    pub(super) sealed_url: Option<Vec<u8>>,
    pub(super) settings: Value,
}

#[derive(QueryableByName)]
struct TestedRow {
    #[diesel(embed)]
    channel: ChannelRow,
    #[diesel(sql_type = Nullable<Bytea>)]
    sealed_url: Option<Vec<u8>>,
    #[diesel(sql_type = Bool)]
    is_first: bool,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

impl Owner {
    pub(super) async fn channels(&self, db: &mut Db) -> QueryResult<Vec<ChannelRow>> {
        let query =
            format!("SELECT {COLUMNS} FROM message_channels c WHERE {MANAGED} ORDER BY c.id");
        diesel::sql_query(query)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Bool, _>(self.is_admin)
            .load(db)
            .await
    }

    /// # Errors
    /// 403 if the person or the tenant is inactive, 409 if there are too many channels.
    pub(super) async fn add(&self, db: &mut Db, new: &NewChannel) -> Result<ChannelRow, ApiError> {
        self.lock(db).await?;
        let most = if new.for_tenant { MOST_OF_TENANT } else { MOST };
        let Count { count } = diesel::sql_query(
            "SELECT count(*) AS count FROM message_channels \
             WHERE tenant_id = $1 AND person IS NOT DISTINCT FROM $2",
        )
        .bind::<Text, _>(&self.tenant_id)
        .bind::<Nullable<Text>, _>((!new.for_tenant).then_some(&self.person))
        .get_result(db)
        .await
        .map_err(failed)?;
        if count >= most {
            let text = format!("there are {most} channels already; delete one first");
            return Err(ApiError::new(ErrorCode::LimitReached, text));
        }
        self.insert(db, new).await.map_err(failed)
    }

    async fn insert(&self, db: &mut Db, new: &NewChannel) -> QueryResult<ChannelRow> {
        let own = !new.for_tenant;
        let query = format!(
            "INSERT INTO message_channels AS c (id, tenant_id, kind, person, subject, email, role, \
                 target, sealed_url, settings) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING {COLUMNS}"
        );
        diesel::sql_query(query)
            .bind::<Text, _>(&new.id)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&new.kind)
            .bind::<Nullable<Text>, _>(own.then_some(&self.person))
            .bind::<Nullable<Text>, _>(own.then_some(&self.subject))
            .bind::<Nullable<Text>, _>(self.email.as_ref().filter(|_| own))
            .bind::<Text, _>(&self.role)
            .bind::<Text, _>(&new.target)
            .bind::<Nullable<Bytea>, _>(&new.sealed_url)
            .bind::<Jsonb, _>(&new.settings)
            .get_result(db)
            .await
    }

    /// Replaces the settings. A person's channel also gets the person's present role and address.
    pub(super) async fn change(
        &self,
        db: &mut Db,
        id: &str,
        settings: &Value,
    ) -> QueryResult<Option<ChannelRow>> {
        let query = format!(
            "UPDATE message_channels c SET settings = $5, updated_at = clock_timestamp(), role = $6, \
                 email = CASE WHEN c.person IS NULL THEN NULL ELSE $7 END, \
                 target = CASE WHEN c.kind = 'email' THEN coalesce($7, c.target) ELSE c.target END \
             WHERE {MANAGED} AND c.id = $4 RETURNING {COLUMNS}"
        );
        diesel::sql_query(query)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Bool, _>(self.is_admin)
            .bind::<Text, _>(id)
            .bind::<Jsonb, _>(settings)
            .bind::<Text, _>(&self.role)
            .bind::<Nullable<Text>, _>(&self.email)
            .get_result(db)
            .await
            .optional()
    }

    /// Deletes a channel. Returns whether the person managed it.
    pub(super) async fn remove(&self, db: &mut Db, id: &str) -> QueryResult<bool> {
        let query = format!("DELETE FROM message_channels c WHERE {MANAGED} AND c.id = $4");
        let deleted = diesel::sql_query(query)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Bool, _>(self.is_admin)
            .bind::<Text, _>(id)
            .execute(db)
            .await?;
        Ok(deleted > 0)
    }

    /// Begins a test of a channel. Returns the receiver, and whether there was no other test in the last
    /// 10 seconds. `None` if the person does not manage the channel.
    pub(super) async fn begin_test(
        &self,
        db: &mut Db,
        id: &str,
    ) -> QueryResult<Option<(Receiver, bool)>> {
        let query = format!(
            "WITH before AS ( \
                 SELECT c.id, c.tested_at FROM message_channels c WHERE {MANAGED} AND c.id = $4 \
                 FOR UPDATE), \
             first AS ( \
                 UPDATE message_channels c SET tested_at = clock_timestamp() FROM before b \
                 WHERE c.id = b.id AND coalesce(b.tested_at < now() - interval '10 s', true) \
                 RETURNING c.id) \
             SELECT {COLUMNS}, c.sealed_url, EXISTS (SELECT FROM first) AS is_first \
             FROM message_channels c JOIN before b ON b.id = c.id"
        );
        let found: Option<TestedRow> = diesel::sql_query(query)
            .bind::<Text, _>(&self.tenant_id)
            .bind::<Text, _>(&self.person)
            .bind::<Bool, _>(self.is_admin)
            .bind::<Text, _>(id)
            .get_result(db)
            .await
            .optional()?;
        Ok(found.map(|row| (row.channel.receiver(row.sealed_url), row.is_first)))
    }
}
