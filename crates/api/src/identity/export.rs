//! Exports: streams of all that a list holds. Each caller has one at a time; it keeps a page in memory
//! and no more, ends with its caller's credential, and its last line says that nothing is missing.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use authority_model::service::Messages;
use futures_util::stream;
use parking_lot::Mutex;

use super::Caller;
use crate::error::{ApiError, ErrorCode};

/// Whether a caller's credential still counts.
pub type Holds = Arc<dyn Fn(&Caller) -> Result<(), ApiError> + Send + Sync>;

/// Where the lines of an export come from.
pub trait Pages: Send + 'static {
    type Line: Send + 'static;

    /// The next lines; none: that was all.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Self::Line>, ApiError>> + Send;

    /// The last line, after all others.
    fn end(&self) -> Self::Line;
}

/// The exports under way, by caller. Cheap to clone.
#[derive(Clone)]
pub struct Exports {
    busy: Arc<Mutex<HashSet<String>>>,
    holds: Holds,
}

impl Exports {
    pub fn new(holds: Holds) -> Self {
        Self { busy: Arc::default(), holds }
    }

    /// Streams `pages` to `caller`. The first is read before this answers, so that what is wrong with
    /// the request is a refusal and not a stream.
    ///
    /// # Errors
    /// The caller has an export under way, or the first page cannot be read.
    pub async fn stream<P: Pages>(
        &self,
        caller: Caller,
        mut pages: P,
    ) -> Result<Messages<P::Line>, ApiError> {
        let turn = self.turn(&caller)?;
        let lines = pages.next().await?.into();
        let holds = Arc::clone(&self.holds);
        let state = State { pages, lines, ended: false, caller, holds, _turn: turn };
        Ok(Box::pin(stream::unfold(Some(state), |state| async {
            let mut state = state?;
            match state.next().await.transpose()? {
                Ok(line) => Some((Ok(line), Some(state))),
                Err(refusal) => Some((Err(refusal.into()), None)),
            }
        })))
    }

    fn turn(&self, caller: &Caller) -> Result<Turn, ApiError> {
        let who = caller.identity();
        if self.busy.lock().insert(who.clone()) {
            return Ok(Turn { busy: Arc::clone(&self.busy), who });
        }
        let message = "an export of this caller is running: read it to its end, or cancel it";
        Err(ApiError::new(ErrorCode::RateLimited, message).with("retry_after", "1"))
    }
}

/// A caller's one export, until it is dropped.
struct Turn {
    busy: Arc<Mutex<HashSet<String>>>,
    who: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.busy.lock().remove(&self.who);
    }
}

struct State<P: Pages> {
    pages: P,
    lines: VecDeque<P::Line>,
    ended: bool,
    caller: Caller,
    holds: Holds,
    _turn: Turn,
}

impl<P: Pages> State<P> {
    async fn next(&mut self) -> Result<Option<P::Line>, ApiError> {
        if self.ended {
            return Ok(None);
        }
        (self.holds)(&self.caller)?;
        if self.lines.is_empty() {
            self.lines = self.pages.next().await?.into();
        }
        let next = self.lines.pop_front();
        self.ended = next.is_none();
        Ok(Some(next.unwrap_or_else(|| self.pages.end())))
    }
}
