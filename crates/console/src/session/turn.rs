//! The turn to refresh a session's tokens. Only one request at a time has it, across all nodes.
//! Some providers accept a refresh token only once, and revoke all tokens of the grant if it is
//! sent again.
//!
//! The turn is a time in the session's row, not a lock. The call to the provider therefore needs no
//! database connection.

use std::time::Duration;

use authority_model::schema::console_sessions::dsl;
use authority_store::{self as store, RunQueryDsl, Scope};
use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{Binary, Integer},
};

use super::{
    row::locked,
    store::{Error, Sessions, Stored, Tokens},
};

/// The longest turn: two calls to the provider, and storing the result.
pub(crate) const LONGEST_TURN: Duration = Duration::from_secs(40);

const NOBODYS: Option<DateTime<Utc>> = None;

/// The request that refreshes a session's tokens.
pub(crate) enum Turn {
    /// This request.
    Own,
    Others,
    /// The turn is not needed: these are the new tokens.
    Done(Tokens),
    /// The turn is not available: the session has ended.
    Ended,
}

impl Sessions {
    /// Takes the turn to refresh the session's tokens, if it is free and the tokens were not
    /// refreshed since they were read.
    ///
    /// # Errors
    /// The database is unavailable, or the stored tokens cannot be read.
    pub(crate) async fn take_turn(&self, session: &Stored) -> Result<Turn, Error> {
        let (digest, known) = (session.digest, session.tokens.api.clone());
        let keys = self.keys.clone();
        let taken = self.store.write_tx(&Scope::service(), async move |db| {
            let Some(row) = locked(db, &digest).await? else { return Ok(Turn::Ended) };
            let opened = keys.open_console_session(&digest, &row.sealed_tokens)?;
            let tokens: Tokens = serde_json::from_slice(&opened)?;
            if tokens.api != known {
                return Ok(Turn::Done(tokens));
            }
            if row.is_refreshing {
                return Ok(Turn::Others);
            }
            diesel::sql_query(
                "UPDATE console_sessions SET refreshing_until = clock_timestamp() + $2 * interval '1 second' \
                 WHERE digest = $1",
            )
            .bind::<Binary, _>(digest.to_vec())
            .bind::<Integer, _>(i32::try_from(LONGEST_TURN.as_secs()).unwrap_or(i32::MAX))
            .execute(db)
            .await
            .map_err(store::Error::from)?;
            Ok::<_, Error>(Turn::Own)
        });
        taken.await
    }

    /// Stores the refreshed tokens, which ends the turn.
    ///
    /// # Errors
    /// The database is unavailable.
    pub(crate) async fn renew(&self, digest: [u8; 32], tokens: &Tokens) -> Result<(), Error> {
        let sealed = self.seal(&digest, tokens)?;
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            diesel::update(dsl::console_sessions.find(digest.to_vec()))
                .set((dsl::sealed_tokens.eq(sealed), dsl::refreshing_until.eq(NOBODYS)))
                .execute(db)
                .await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }

    /// Ends the turn without new tokens. The next request tries again.
    ///
    /// # Errors
    /// The database is unavailable. The turn then ends on its own.
    pub(crate) async fn leave_turn(&self, digest: [u8; 32]) -> Result<(), Error> {
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            let row = dsl::console_sessions.find(digest.to_vec());
            diesel::update(row).set(dsl::refreshing_until.eq(NOBODYS)).execute(db).await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }
}
