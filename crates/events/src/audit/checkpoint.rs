//! Checkpoints of the log of decisions, as audit streams send them.

use authority_crypto::sha256;
use authority_ids::{RecordId, TenantId};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, SecondsFormat, Utc};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{Nullable, Text, Timestamptz},
};
use serde::Serialize;

const KIND: &str = "svc.log.checkpoint.v1";

/// Selects the checkpoint of the log's newest epoch. It names the previous epoch's checkpoint.
const NEWEST: &str = "SELECT checkpoint, signed_at FROM log_heads \
     WHERE tenant_id = $1 AND checkpoint <> '' AND ($2 IS NULL OR signed_at > $2) \
     ORDER BY epoch DESC LIMIT 1";

/// A signed checkpoint of a tenant's log of decisions.
#[derive(QueryableByName)]
pub(super) struct Signed {
    /// The signed note (c2sp.org/tlog-checkpoint).
    #[diesel(sql_type = Text)]
    pub(super) checkpoint: String,
    #[diesel(sql_type = Timestamptz)]
    pub(super) signed_at: DateTime<Utc>,
}

/// The fields are in the order of RFC 8785.
#[derive(Serialize)]
struct Message<'a> {
    at: String,
    checkpoint: &'a str,
    /// The checkpoint's id. The field is named as in events, because receivers compare it with the
    /// id in the request's headers.
    event_id: &'a str,
    kind: &'a str,
    tenant_id: &'a str,
}

/// Returns the newest checkpoint, if it was signed after `since`.
pub(super) async fn newest(
    db: &mut Db,
    tenant_id: &TenantId,
    since: Option<DateTime<Utc>>,
) -> QueryResult<Option<Signed>> {
    let newest = diesel::sql_query(NEWEST).bind::<Text, _>(tenant_id.as_str());
    newest.bind::<Nullable<Timestamptz>, _>(since).get_result(db).await.optional()
}

impl Signed {
    /// Returns the checkpoint's id, which is the same for each attempt to send the checkpoint.
    pub(super) fn id(&self) -> String {
        let mut unique = [0; 16];
        unique.copy_from_slice(&sha256(self.checkpoint.as_bytes())[..16]);
        RecordId::new("checkpoint", u128::from_be_bytes(unique).into()).into()
    }

    /// Returns the message (RFC 8785).
    pub(super) fn body(&self, tenant_id: &TenantId) -> Vec<u8> {
        let at = self.signed_at.to_rfc3339_opts(SecondsFormat::Micros, true);
        let (checkpoint, event_id) = (self.checkpoint.as_str(), self.id());
        let tenant_id = tenant_id.as_str();
        let message = Message { at, checkpoint, event_id: &event_id, kind: KIND, tenant_id };
        // Serializing strings cannot fail.
        serde_json::to_vec(&message).unwrap_or_default()
    }
}
