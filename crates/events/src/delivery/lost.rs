//! Events that retention deleted before they were sent to an endpoint.

use authority_ids::EndpointRef;
use authority_store::{Db, RunQueryDsl};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Text},
};

use crate::lost::Lost;

/// Extends the range of lost events. A trigger then notifies the tenant's admins.
const NOTE: &str = "UPDATE webhook_cursors \
     SET lost_from = least(lost_from, $2), lost_to = greatest(lost_to, $3) WHERE endpoint_id = $1";

/// Adds lost events to the endpoint's cursor.
pub(crate) async fn note(db: &mut Db, endpoint_id: &EndpointRef, lost: Lost) -> QueryResult<()> {
    let note = diesel::sql_query(NOTE).bind::<Text, _>(endpoint_id.as_str());
    note.bind::<BigInt, _>(lost.from).bind::<BigInt, _>(lost.to).execute(db).await.map(drop)
}

/// Reports lost events to operators. Call it after the loss is committed.
pub(crate) fn report(endpoint_id: &EndpointRef, Lost { from, to, events }: Lost) {
    metrics::counter!("authority_webhook_events_lost_total").increment(events.unsigned_abs());
    tracing::error!(
        endpoint.id = endpoint_id.as_str(),
        from,
        to,
        events,
        "deleted events before a webhook endpoint got them"
    );
}
