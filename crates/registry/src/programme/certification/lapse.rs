//! Moves certified consultants to `onboarding` when their last certification ends. A certification
//! ends when it is revoked, deleted or expired. A consultant who was set to `certified` without a
//! certification keeps that status.

use std::time::Duration;

use authority_model::{schema::consultants, state::ConsultantStatus};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::{self as store, Scope, Store};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Nullable, Text, Timestamptz};

use crate::flow::prelude::*;

const EVERY: Duration = Duration::from_secs(60);

/// Moves one consultant. `$1` is the status, `$2` the time, `$3` the consultant and `$4` a
/// certification to ignore. A certification that has not begun yet also keeps the status.
const ENDED: &str = "
    UPDATE consultants AS c SET status = $1, updated_at = clock_timestamp()
    WHERE c.id = $3 AND c.status = 'certified'
      AND NOT EXISTS (
          SELECT FROM certifications AS t WHERE t.consultant_id = c.id AND t.id IS DISTINCT FROM $4
            AND certification_holds(t.revoked_at, t.deleted_at, NULL, t.not_after, $2))";

/// Does the same for every consultant when their last certification has expired. If the consultant
/// was changed after the expiry, their status stays, because people set it.
const EXPIRED: &str = "
    UPDATE consultants AS c SET status = $1, updated_at = clock_timestamp()
    FROM (SELECT consultant_id, max(not_after) AS at FROM certifications
          WHERE revoked_at IS NULL AND deleted_at IS NULL AND not_after <= $2
          GROUP BY consultant_id) AS expired
    WHERE c.id = expired.consultant_id AND c.status = 'certified' AND c.deleted_at IS NULL
      AND c.updated_at < expired.at
      AND NOT EXISTS (
          SELECT FROM certifications AS t WHERE t.consultant_id = c.id
            AND certification_holds(t.revoked_at, t.deleted_at, NULL, t.not_after, $2))";

/// Runs after a certification was revoked or shortened, or before a delete. `deleted` is the
/// certification to be deleted.
pub(super) async fn check(
    db: &mut Db,
    consultant_id: &str,
    deleted: Option<&str>,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    // The next statement sees everything committed before the lock was taken, including a new
    // certification.
    let locked = consultants::table.find(consultant_id).for_update().select(consultants::id);
    locked.load::<String>(db).await?;
    let update = diesel::sql_query(ENDED)
        .bind::<Text, _>(ConsultantStatus::Onboarding.as_str())
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(consultant_id)
        .bind::<Nullable<Text>, _>(deleted);
    update.execute(db).await.map(drop)
}

/// Looks for expired certifications each minute. Code that checks a certification also checks its
/// end. This worker updates the status for readers of the consultant.
pub fn expire(store: Store, clock: Clock) -> Worker {
    Worker::periodic("certification_expiry", EVERY, move || expired(store.clone(), clock.now()))
}

async fn expired(store: Store, now: DateTime<Utc>) -> Result<(), store::Error> {
    let ended = store.write_tx(&Scope::service(), async move |db| {
        let update = diesel::sql_query(EXPIRED)
            .bind::<Text, _>(ConsultantStatus::Onboarding.as_str())
            .bind::<Timestamptz, _>(now);
        Ok::<_, store::Error>(update.execute(db).await?)
    });
    ended.await.map(drop)
}
