//! The state of the programme's services.

use std::{sync::Arc, time::Duration};

use authority_api::error::{ApiError, ErrorCode};
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::Store;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{address::AddressCodes, counter::LeadCounter};

/// The programme's services. Cheap to clone.
#[derive(Clone)]
pub struct Programme(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) clock: Clock,
    pub(crate) public_url: String,
    pub(crate) addresses: AddressCodes,
    pub(crate) counter: LeadCounter,
    /// Limits the concurrent queries of callers without a credential.
    pub(crate) turns: Semaphore,
}

/// The maximum number of concurrent database queries by anonymous callers. The limit keeps
/// connections free for others.
pub(crate) const MOST_ANONYMOUS: usize = 2;
/// How long an anonymous caller waits for a permit.
const PATIENCE: Duration = Duration::from_secs(2);

impl Programme {
    /// Waits for an anonymous caller's permit for one query.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let turn = timeout(PATIENCE, self.0.turns.acquire()).await;
        let turn = turn.ok().and_then(Result::ok);
        turn.ok_or_else(|| ApiError::plain(ErrorCode::Unavailable))
    }
}
