//! Reads a person's notifications: those for their role, with the person's read marks.

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind},
};
use authority_ids::TenantId;
use authority_model::{
    proto::events::Notification,
    wire::{Json, Time},
};
use authority_store::{self as store, Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Jsonb, Nullable, Text, Timestamptz},
};

/// The notifications that the person sees. `$1` is the tenant, `$2` the role, `$3` the person.
const VISIBLE: &str = "FROM notifications n \
     LEFT JOIN notification_reads r ON r.id = n.id AND r.person = $3 \
     WHERE n.tenant_id = $1 AND n.roles @> ARRAY[$2] \
       AND n.id >= time_bound('svc:notification:', now() - interval '90 days')";

const COLUMNS: &str = "SELECT n.id, n.kind, n.subject_ref, n.data, n.created_at, r.read_at";

/// How much later than its id a notification may become visible. Its transaction may still be open.
const OVERLAP: &str = "interval '60 seconds'";

/// A person of a tenant.
#[derive(Clone)]
pub(super) struct Reader {
    tenant_id: TenantId,
    role: String,
    /// The issuer and subject.
    person: String,
}

#[derive(QueryableByName)]
pub(super) struct NotificationRow {
    #[diesel(sql_type = Text)]
    pub(super) id: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    subject_ref: String,
    #[diesel(sql_type = Jsonb)]
    data: Json,
    #[diesel(sql_type = Timestamptz)]
    pub(super) created_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    read_at: Option<DateTime<Utc>>,
}

impl From<NotificationRow> for Notification {
    fn from(row: NotificationRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            subject_ref: row.subject_ref,
            data: Some(row.data),
            created_at: Some(row.created_at.into()),
            read_at: row.read_at.map(Time::from),
        }
    }
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct Floor {
    #[diesel(sql_type = Text)]
    floor: String,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
}

impl Reader {
    /// Returns the reader for a caller.
    ///
    /// # Errors
    /// The caller is not a person of a tenant. The access rules already refuse such callers.
    pub(super) fn of(caller: &Caller) -> Result<Self, ApiError> {
        let CallerKind::Member { tenant_id, role, .. } = &caller.kind else {
            return Err(ApiError::plain(ErrorCode::Forbidden));
        };
        let (tenant_id, role) = (tenant_id.clone(), role.to_string());
        Ok(Self { tenant_id, role, person: caller.identity() })
    }

    pub(super) fn tenant_id(&self) -> &TenantId {
        &self.tenant_id
    }

    /// Returns up to `limit` notifications before an id, newest first.
    pub(super) async fn page(
        &self,
        db: &mut Db,
        before: Option<String>,
        unread: bool,
        limit: i64,
    ) -> QueryResult<Vec<NotificationRow>> {
        diesel::sql_query(format!(
            "{COLUMNS} {VISIBLE} AND ($4 IS NULL OR n.id < $4) AND (NOT $5 OR r.id IS NULL) \
             ORDER BY n.id DESC LIMIT $6"
        ))
        .bind::<Text, _>(self.tenant_id.as_str())
        .bind::<Text, _>(&self.role)
        .bind::<Text, _>(&self.person)
        .bind::<Nullable<Text>, _>(before)
        .bind::<Bool, _>(unread)
        .bind::<BigInt, _>(limit)
        .load(db)
        .await
    }

    pub(super) async fn count_unread(&self, db: &mut Db) -> QueryResult<i64> {
        let counted: Count =
            diesel::sql_query(format!("SELECT count(*) AS count {VISIBLE} AND r.id IS NULL"))
                .bind::<Text, _>(self.tenant_id.as_str())
                .bind::<Text, _>(&self.role)
                .bind::<Text, _>(&self.person)
                .get_result(db)
                .await?;
        Ok(counted.count)
    }

    /// Marks one notification as read, or all if `id` is `None`. Returns how many were unread.
    pub(super) async fn mark(&self, db: &mut Db, id: Option<&str>) -> QueryResult<usize> {
        diesel::sql_query(format!(
            "INSERT INTO notification_reads (id, tenant_id, person) SELECT n.id, n.tenant_id, $3 {VISIBLE} \
             AND r.id IS NULL AND ($4 IS NULL OR n.id = $4) ON CONFLICT DO NOTHING"
        ))
        .bind::<Text, _>(self.tenant_id.as_str())
        .bind::<Text, _>(&self.role)
        .bind::<Text, _>(&self.person)
        .bind::<Nullable<Text>, _>(id)
        .execute(db)
        .await
    }

    pub(super) async fn one(&self, db: &mut Db, id: &str) -> QueryResult<Option<NotificationRow>> {
        let rows = diesel::sql_query(format!("{COLUMNS} {VISIBLE} AND n.id = $4"))
            .bind::<Text, _>(self.tenant_id.as_str())
            .bind::<Text, _>(&self.role)
            .bind::<Text, _>(&self.person)
            .bind::<Text, _>(id)
            .load(db)
            .await?;
        Ok(rows.into_iter().next())
    }

    /// Returns up to `limit` notifications from an id on, oldest first. Notifications in `sent` are
    /// left out.
    pub(super) async fn since(
        &self,
        db: &mut Db,
        floor: &str,
        sent: &[&str],
        limit: i64,
    ) -> QueryResult<Vec<NotificationRow>> {
        diesel::sql_query(format!(
            "{COLUMNS} {VISIBLE} AND n.id >= $4 AND n.id <> ALL ($5) ORDER BY n.id LIMIT $6"
        ))
        .bind::<Text, _>(self.tenant_id.as_str())
        .bind::<Text, _>(&self.role)
        .bind::<Text, _>(&self.person)
        .bind::<Text, _>(floor)
        .bind::<Array<Text>, _>(sent)
        .bind::<BigInt, _>(limit)
        .load(db)
        .await
    }
}

/// Returns the least id of a notification that may become visible after `at`.
///
/// If `at` is `None`, uses the current time of the database's clock. Also returns the time used.
pub(super) async fn floor(
    db: &mut Db,
    at: Option<DateTime<Utc>>,
) -> QueryResult<(String, DateTime<Utc>)> {
    let found: Floor = diesel::sql_query(format!(
        "SELECT time_bound('svc:notification:', at - {OVERLAP}) AS floor, at \
         FROM (SELECT coalesce($1, clock_timestamp()) AS at) AS present"
    ))
    .bind::<Nullable<Timestamptz>, _>(at)
    .get_result(db)
    .await?;
    Ok((found.floor, found.at))
}

pub(super) fn failed(error: diesel::result::Error) -> ApiError {
    store::Error::from(error).into()
}
