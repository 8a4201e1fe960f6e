//! Earlier answers for a request that would be held. These are approvals that are ready for use,
//! and a decline that is still valid.

use authority_ids::{ApprovalRef, PrincipalRef, TenantId};
use authority_model::{
    proto::approval::Asker, schema::approvals, state::ApprovalState, wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    dsl::sql,
    prelude::*,
    sql_types::{Bool, Bytea, Integer, Nullable, Text, Timestamptz},
};

use super::{
    facts::{FactSource, RecordingSettings},
    fault::fault,
};
use authority_api::error::ApiError;
use authority_decision::{Request, facts::Declined};
use authority_ledger::spending;
use authority_store::{self as store, Db, RunQueryDsl, Scope, prepared};

/// Finds the newest decline of a request, if it is still valid. Older declines don't count.
const DECLINED: &str = "
    SELECT id, at FROM (
        SELECT id, declined_at AS at, reopened_at,
               declined_until(declined_at, created_at, expires_at, declined_for_seconds, $4) AS until
        FROM approvals
        WHERE tenant_id = $1 AND request_digest = $2 AND subject = $3 AND state = 'declined'
        ORDER BY declined_at DESC LIMIT 1
    ) AS newest WHERE reopened_at IS NULL AND until > $5";

/// The earlier answers for a request.
#[derive(Default)]
pub(super) struct AskedBefore {
    /// Approved and unused approvals that the credential requested, the oldest first.
    pub(super) ready: Vec<ApprovalRef>,
    pub(super) declined: Option<Declined>,
}

impl FactSource {
    /// Reads the earlier answers.
    ///
    /// Only approvals requested by `asker` can be ready. Without an asker the list is empty.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn asked_before(
        &self,
        request: &Request,
        asker: Option<Asker>,
        recording: RecordingSettings,
        at: DateTime<Utc>,
    ) -> Result<AskedBefore, ApiError> {
        let declines = recording.declined_for != Some(0);
        if asker.is_none() && !declines {
            return Ok(AskedBefore::default());
        }
        let question = Question {
            tenant_id: request.tenant().clone(),
            digest: spending::question(request).map_err(fault)?,
            subject: request.subject.clone(),
            at,
        };
        let scope = Scope { tenant: Some(request.tenant().clone()), ..Scope::service() };
        let read = self.store.read_tx(&scope, async move |db| {
            let mut before = AskedBefore::default();
            if let Some(asker) = asker {
                before.ready = question.ready(db, asker).await?;
            }
            if declines {
                before.declined = question.declined(db, recording.declined_for).await?;
            }
            Ok::<_, store::Error>(before)
        });
        Ok(read.await?)
    }
}

struct Question {
    tenant_id: TenantId,
    digest: [u8; 32],
    subject: PrincipalRef,
    at: DateTime<Utc>,
}

impl Question {
    /// Returns the ready approvals. There may be several, because older releases could open a
    /// request while an approval was ready.
    async fn ready(&self, db: &mut Db, asker: Asker) -> QueryResult<Vec<ApprovalRef>> {
        let asked = sql::<Bool>(
            "EXISTS (SELECT FROM unnest(requested_by) AS asker WHERE asker ->> 'kind' = ",
        )
        .bind::<Text, _>(asker.kind)
        .sql(" AND asker ->> 'id' = ")
        .bind::<Text, _>(asker.id)
        .sql(")");
        let ready: Vec<String> = approvals::table
            .filter(approvals::tenant_id.eq(self.tenant_id.as_str()))
            .filter(approvals::request_digest.eq(self.digest.to_vec()))
            .filter(approvals::subject.eq(self.subject.as_str()))
            .filter(
                approvals::state.eq(ApprovalState::Approved).and(approvals::expires_at.gt(self.at)),
            )
            .filter(asked)
            .order((approvals::created_at, approvals::id))
            .select(approvals::id)
            .load(db)
            .await?;
        Ok(ready.into_iter().map(Into::into).collect())
    }

    /// Finds the decline that is still valid.
    ///
    /// `setting` is the tenant's setting for how long declines are valid, in seconds, if it is set.
    async fn declined(&self, db: &mut Db, setting: Option<u32>) -> QueryResult<Option<Declined>> {
        let setting = setting.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
        let found: Option<DeclinedRow> = prepared(DECLINED)
            .bind::<Text, _>(self.tenant_id.as_str())
            .bind::<Bytea, _>(self.digest.to_vec())
            .bind::<Text, _>(self.subject.as_str())
            .bind::<Nullable<Integer>, _>(setting)
            .bind::<Timestamptz, _>(self.at)
            .get_result(db)
            .await
            .optional()?;
        Ok(found
            .and_then(|row| Some(Declined { approval_id: row.id.into(), at: row.at.moment()? })))
    }
}

#[derive(QueryableByName)]
struct DeclinedRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Timestamptz)]
    at: Time,
}
