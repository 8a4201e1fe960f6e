//! The requests for approval that a session has opened. People can answer only requests that their
//! session has shown.

use authority_store::{self as store, RunQueryDsl, Scope};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Binary, Integer, Jsonb};
use serde_json::json;

use super::{
    row::Opened,
    store::{Error, Sessions},
};

/// The maximum number of requests of a session. The earliest opened request is dropped first.
const MOST: i32 = 200;

impl Sessions {
    /// Notes that the request of an approval was shown.
    ///
    /// # Errors
    /// The database is unavailable.
    pub(crate) async fn open(
        &self,
        session: [u8; 32],
        approval_id: &str,
        request_digest: &str,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let shown = Opened { digest: request_digest.to_owned(), at: now.timestamp_micros() };
        let opened = json!({approval_id: shown});
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            diesel::sql_query(
                "UPDATE console_sessions SET opened = ( \
                     SELECT jsonb_object_agg(key, value) FROM ( \
                         SELECT key, value FROM jsonb_each(opened || $2) \
                         ORDER BY (value ->> 'at')::bigint DESC NULLS LAST LIMIT $3) AS kept) \
                 WHERE digest = $1",
            )
            .bind::<Binary, _>(session.to_vec())
            .bind::<Jsonb, _>(opened)
            .bind::<Integer, _>(MOST)
            .execute(db)
            .await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }
}
