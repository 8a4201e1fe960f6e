//! Takes the status `certified` from consultants whose last certification has ended: revoked, deleted or
//! expired. It moves to `onboarding`. Who was made certified without a certification stays so.

use std::time::Duration;

use authority_core::{
    clock::Clock,
    store::{self, Scope, Store},
    worker::Worker,
};
use authority_model::{schema::consultants, state::ConsultantStatus};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Nullable, Text, Timestamptz};

use super::super::super::prelude::*;

const EVERY: Duration = Duration::from_secs(60);

/// $1 is the status, $2 the time, $3 the consultant, $4 a certification that does not count. One that is yet to
/// begin keeps the status, too.
const ENDED: &str = "
    UPDATE consultants AS c SET status = $1, updated_at = clock_timestamp()
    WHERE c.id = $3 AND c.status = 'certified'
      AND NOT EXISTS (
          SELECT FROM certifications AS t WHERE t.consultant_id = c.id AND t.id IS DISTINCT FROM $4
            AND certification_holds(t.revoked_at, t.deleted_at, NULL, t.not_after, $2))";

/// The same for everyone whose last one expired. A change of the consultant after that time stands: status is
/// people's to move.
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

/// After a certification of theirs was revoked or shortened, or before `deleted` is deleted.
pub(super) async fn check(
    db: &mut Db,
    consultant_id: &str,
    deleted: Option<&str>,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    // The next statement sees what is committed by the time that the lock is held: a new certification, too.
    let locked = consultants::table.find(consultant_id).for_update().select(consultants::id);
    locked.load::<String>(db).await?;
    let update = diesel::sql_query(ENDED)
        .bind::<Text, _>(ConsultantStatus::Onboarding.as_str())
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(consultant_id)
        .bind::<Nullable<Text>, _>(deleted);
    update.execute(db).await.map(drop)
}

/// Looks for expired ones each minute. Whoever reads whether a certification holds judges its time themselves: this
/// is for readers of the status.
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
