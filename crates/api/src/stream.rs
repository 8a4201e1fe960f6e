//! Server streams: a source that is asked for each message, so that no task runs for a stream and nothing is
//! queued. It ends with its connection.

use authority_model::service::Messages;
use futures_util::stream;

use super::error::ApiError;

/// The source of a stream's messages.
pub trait MessageSource: Send + 'static {
    type Message: Send;

    /// The next message; `None` at the end. An error is the last item.
    fn next(&mut self) -> impl Future<Output = Option<Result<Self::Message, ApiError>>> + Send;
}

/// The stream of a source's messages.
pub fn stream_of<T: MessageSource>(source: T) -> Messages<T::Message> {
    let next = |source: Option<T>| async {
        let mut source = source?;
        match source.next().await? {
            Ok(message) => Some((Ok(message), Some(source))),
            Err(refusal) => Some((Err(refusal.into()), None)),
        }
    };
    Box::pin(stream::unfold(Some(source), next))
}
