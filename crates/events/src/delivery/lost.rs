//! Events that an endpoint was not sent before retention took them.

use authority_core::store::{Db, RunQueryDsl};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Text},
};

use crate::lost::Lost;

/// The first and the last of all that were lost. A trigger notifies the tenant's admins.
const NOTE: &str = "UPDATE webhook_cursors \
     SET lost_from = least(lost_from, $2), lost_to = greatest(lost_to, $3) WHERE endpoint_id = $1";

/// Adds them to what the endpoint has lost.
pub(crate) async fn note(db: &mut Db, endpoint_id: &str, lost: Lost) -> QueryResult<()> {
    let note = diesel::sql_query(NOTE).bind::<Text, _>(endpoint_id);
    note.bind::<BigInt, _>(lost.from).bind::<BigInt, _>(lost.to).execute(db).await.map(drop)
}

/// Tells operators, once it is committed.
pub(crate) fn report(endpoint_id: &str, Lost { from, to, events }: Lost) {
    metrics::counter!("authority_webhook_events_lost_total").increment(events.unsigned_abs());
    tracing::error!(endpoint_id, from, to, events, "events were gone before they were sent");
}
