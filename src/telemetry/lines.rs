//! Adds the request id to the log lines of a request.
//!
//! The id is not taken from a span of the request: creating, entering and closing a span took more
//! time than the decision itself.

use std::fmt::Result;

use http::HeaderValue;
use tokio::task::futures::TaskLocalFuture;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

tokio::task_local! {
    /// The id of the request that is being answered.
    static REQUEST_ID: HeaderValue;
}

/// Runs a request's future; its log lines have this id.
pub fn of_request<F: Future>(id: HeaderValue, answer: F) -> TaskLocalFuture<HeaderValue, F> {
    REQUEST_ID.scope(id, answer)
}

/// Like [`of_request`], for a synchronous call.
pub fn in_request<T>(id: HeaderValue, call: impl FnOnce() -> T) -> T {
    REQUEST_ID.sync_scope(id, call)
}

/// Adds the request id to the lines of another format: as the member `request.id` of JSON, or as
/// `request.id=` at the end of a text line.
pub(super) struct WithRequestId<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for WithRequestId<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> Result {
        let Ok(id) = REQUEST_ID.try_with(HeaderValue::clone) else {
            return self.0.format_event(context, writer, event);
        };
        let id = id.to_str().unwrap_or_default();
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        match line.strip_suffix('}').filter(|_| line.starts_with('{')) {
            Some(members) => {
                let id = serde_json::Value::from(id);
                writeln!(writer, "{members},\"request.id\":{id}}}")
            }
            None => writeln!(writer, "{line} request.id={id}"),
        }
    }
}
