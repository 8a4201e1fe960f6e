//! Exports: streams of a whole list. A caller can run one export at a time. An export keeps only
//! one page in memory, stops when its caller's credential becomes invalid, and marks its completion
//! in the last line.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use authority_model::service::Messages;
use futures_util::stream;
use parking_lot::Mutex;
use tonic::Response;

use super::caller::Caller;
use crate::{
    error::ApiError,
    rate_limit::{AppliedLimits, OpenLimit, Remaining},
};

/// The limit for the exports of a caller.
const LIMIT: OpenLimit = OpenLimit { name: "exports_per_caller", limit: 1 };

/// Checks whether a caller's credential is still valid.
pub type Holds = Arc<dyn Fn(&Caller) -> Result<(), ApiError> + Send + Sync>;

/// The source of an export's lines.
pub trait Pages: Send + 'static {
    type Line: Send + 'static;

    /// The next lines; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Self::Line>, ApiError>> + Send;

    /// The last line, after all others.
    fn end(&self) -> Self::Line;
}

/// The running exports, by caller. Cheap to clone.
#[derive(Clone)]
pub struct Exports {
    busy: Arc<Mutex<HashSet<String>>>,
    holds: Holds,
}

impl Exports {
    pub fn new(holds: Holds) -> Self {
        Self { busy: Arc::default(), holds }
    }

    /// Streams `pages` to `caller`. The first page is read before this returns. An invalid request
    /// is therefore an error response instead of a stream.
    ///
    /// # Errors
    /// The caller has a running export, or the first page cannot be read.
    pub async fn stream<P: Pages>(
        &self,
        caller: Caller,
        mut pages: P,
    ) -> Result<Response<Messages<P::Line>>, ApiError> {
        let turn = self.turn(&caller)?;
        let lines = pages.next().await?.into();
        let holds = Arc::clone(&self.holds);
        let state = State { pages, lines, ended: false, caller, holds, _turn: turn };
        let lines: Messages<P::Line> = Box::pin(stream::unfold(Some(state), |state| async {
            let mut state = state?;
            match state.next().await.transpose()? {
                Ok(line) => Some((Ok(line), Some(state))),
                Err(refusal) => Some((Err(refusal.into()), None)),
            }
        }));
        let limits = AppliedLimits::from(Remaining::Open { limit: LIMIT, calls: 0 });
        Ok(limits.shown_in(Response::new(lines)))
    }

    fn turn(&self, caller: &Caller) -> Result<Turn, ApiError> {
        let who = caller.identity();
        if self.busy.lock().insert(who.clone()) {
            return Ok(Turn { busy: Arc::clone(&self.busy), who });
        }
        let text = "an export of this caller is running, and a caller may run 1 at a time: read it to \
                    its end, or cancel it";
        Err(LIMIT.refusal(text, 1))
    }
}

/// Marks a caller's export as running, until this is dropped.
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
