//! Runs an effect and claims its idempotency key in one transaction. Marks repeated responses.

use authority_store::{self as store, Scope, Store, Transact};
use chrono::{DateTime, Utc};
use prost::Message;
use tonic::{Response, metadata::MetadataValue};

use super::{error::Error, key::IdempotencyKey};

/// The name of the header in REST and of the metadata in gRPC.
const REPLAYED: &str = "idempotency-replayed";

/// The response to a call or, if the call is a repetition, the response to the first call.
pub struct Done<M> {
    pub message: M,
    pub replayed: bool,
}

impl<M> Done<M> {
    /// Wraps a response that this call produced.
    pub fn now(message: M) -> Self {
        Self { message, replayed: false }
    }

    /// Returns the tonic response, marked if it repeats the first response.
    pub fn reply(self) -> Response<M> {
        let mut response = Response::new(self.message);
        if self.replayed {
            response.metadata_mut().insert(REPLAYED, MetadataValue::from_static("true"));
        }
        response
    }
}

impl<M: Message + Default> Done<M> {
    /// Decodes the first response.
    ///
    /// # Errors
    /// The bytes do not decode to this message.
    pub fn before(bytes: &[u8]) -> Result<Self, Error> {
        Ok(Self { message: M::decode(bytes)?, replayed: true })
    }
}

/// Runs `work` in one transaction; if the key was used before, returns the first response instead.
///
/// # Errors
/// The errors of `work`, of the key and of the database. The transaction is then rolled back.
pub async fn execute<M, E, F>(
    store: &Store,
    scope: &Scope,
    now: DateTime<Utc>,
    key: Option<IdempotencyKey>,
    work: F,
) -> Result<Done<M>, E>
where
    M: Message + Default + Send + 'static,
    E: From<Error> + From<store::Error> + Send + 'static,
    F: Transact<M, E>,
{
    let done = store.write_tx(scope, async move |db| {
        if let Some(key) = &key
            && let Some(first) = key.claim(db, now).await?
        {
            return Ok::<_, E>(Done::before(&first)?);
        }
        let message = work(db).await?;
        if let Some(key) = &key {
            key.keep(db, &message).await?;
        }
        Ok(Done::now(message))
    });
    done.await
}
