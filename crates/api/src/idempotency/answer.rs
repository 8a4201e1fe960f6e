//! An effect under an idempotency key in one transaction, and how its answer is marked.

use authority_core::store::{self, Scope, Store, Transact};
use chrono::{DateTime, Utc};
use prost::Message;
use tonic::{Response, metadata::MetadataValue};

use super::{Error, IdempotencyKey};

/// The header of REST and the metadata of gRPC.
const REPLAYED: &str = "idempotency-replayed";

/// An answer: to this call or, to a repeated one, the first.
pub struct Done<M> {
    pub message: M,
    pub replayed: bool,
}

impl<M> Done<M> {
    /// The answer to this call.
    pub fn now(message: M) -> Self {
        Self { message, replayed: false }
    }

    /// The response; marked where it repeats the first.
    pub fn reply(self) -> Response<M> {
        let mut response = Response::new(self.message);
        if self.replayed {
            response.metadata_mut().insert(REPLAYED, MetadataValue::from_static("true"));
        }
        response
    }
}

impl<M: Message + Default> Done<M> {
    /// The first answer again.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub(super) fn before(bytes: &[u8]) -> Result<Self, Error> {
        Ok(Self { message: M::decode(bytes)?, replayed: true })
    }
}

/// Does `work` in one transaction; under a key that was there before, answers what was answered then.
///
/// # Errors
/// As `work`, the key and the database have them: nothing is done.
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
    let Some(key) = key else { return store.write_tx(scope, work).await.map(Done::now) };
    let done = store.write_tx(scope, async move |db| {
        if let Some(first) = key.claim(db, now).await? {
            return Ok::<_, E>(first);
        }
        let message = work(db).await?;
        key.keep(db, &message).await?;
        Ok(Done::now(message))
    });
    done.await
}
