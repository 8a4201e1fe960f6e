//! The body of an outgoing response, in pieces that are counted until the peer has read them.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use super::{
    activity::Running,
    stall::{self, Progress},
};

/// The maximum number of bytes handed to hyper at a time.
const CHUNK: usize = 16 << 10;
/// The most bytes handed to HTTP/2 together with the end of the stream, or right before it. After
/// its end, a stream cannot be watched: its unread bytes stay in memory until the connection ends.
const LAST: usize = 1 << 10;
/// The memory of an unread response besides its body, in bytes: its head, its stream, and the
/// stream's task.
const OVERHEAD: u64 = 4 << 10;

/// A response body. Hyper polls for a part only when the peer has capacity. The peer is therefore
/// responsible for the time from a part to the next poll, and the service for the time until a part
/// is ready.
pub(super) struct Answer {
    body: Body,
    /// Frames of the body that hyper has not polled for yet.
    next: VecDeque<Result<Frame<Bytes>, axum::Error>>,
    /// Whether the body has ended and must not be polled again.
    ended: bool,
    running: Running,
    /// The progress of the response's stream; `None` over HTTP/1.1.
    progress: Option<Arc<Progress>>,
    unread: bool,
    /// The lengths of the last two pieces handed over.
    ///
    /// Hyper takes a piece while the previous piece still waits for the peer to make room.
    handed: [u64; 2],
    /// The number of the response's bytes that are counted as unread.
    counted: u64,
}

/// The error for a response that is dropped because its connection holds too many unread bytes.
#[derive(Debug, thiserror::Error)]
#[error("the connection's responses are not read")]
struct Unread;

impl Answer {
    /// Creates the response and polls the body once to learn its size. If the connection then holds
    /// too many bytes, the response is dropped and its stream reset.
    pub(super) fn new(body: Body, running: Running, context: &mut Context<'_>) -> Self {
        running.begin_answer();
        let next = VecDeque::new();
        let progress = stall::current();
        let mut answer = Self {
            body,
            next,
            ended: false,
            running,
            progress,
            unread: true,
            handed: [0; 2],
            counted: 0,
        };
        answer.mark(true);
        let is_watched = answer.progress.is_some() && !answer.body.is_end_stream();
        if is_watched {
            let _ = answer.queue_frame(context);
        }
        answer.count();
        if is_watched && !answer.running.has_room_for(answer.counted) {
            metrics::counter!("authority_transport_answers_unread_total").increment(1);
            answer.next.clear();
            answer.body = Body::empty();
            answer.next.push_back(Err(axum::Error::new(Unread)));
            answer.count();
        }
        answer
    }

    /// Queues the next frame of the body, cut into pieces.
    fn queue_frame(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.next.push_back(Err(error));
                return Poll::Ready(());
            }
            None => {
                self.ended = true;
                return Poll::Ready(());
            }
        };
        let mut data = match frame.into_data() {
            Ok(data) => data,
            Err(trailers) => return self.put(trailers),
        };
        while data.len() > CHUNK {
            let _ = self.put(Frame::data(data.split_to(CHUNK)));
        }
        if self.progress.is_some() && data.len() > LAST {
            let _ = self.put(Frame::data(data.split_to(data.len() - LAST)));
        }
        self.put(Frame::data(data))
    }

    fn put(&mut self, frame: Frame<Bytes>) -> Poll<()> {
        self.next.push_back(Ok(frame));
        Poll::Ready(())
    }

    fn waiting(&self) -> u64 {
        let frames = self.next.iter().filter_map(|next| next.as_ref().ok()?.data_ref());
        frames.map(|data| data.len() as u64).sum()
    }

    fn count(&mut self) {
        let bytes =
            self.waiting() + self.body.size_hint().lower() + self.handed.iter().sum::<u64>();
        let now = if self.unread { bytes + OVERHEAD } else { 0 };
        self.running.recount(self.counted, now);
        self.counted = now;
    }

    fn mark(&mut self, unread: bool) {
        if self.unread != unread {
            self.unread = unread;
            self.running.mark_unread(unread);
        }
        let at = self.running.moved();
        if let Some(progress) = &self.progress {
            progress.mark(unread.then_some(at));
        }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.next.is_empty() && !this.ended && this.queue_frame(context).is_pending() {
            this.handed = [0; 2];
            this.mark(false);
            this.count();
            return Poll::Pending;
        }
        let next = this.next.pop_front();
        let piece = next.as_ref().and_then(|next| next.as_ref().ok()?.data_ref());
        this.handed = [this.handed[1], piece.map_or(0, |data| data.len() as u64)];
        this.mark(true);
        this.count();
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_empty() && (self.ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let (waiting, inner) = (self.waiting(), self.body.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + waiting);
        }
        hint.set_lower(inner.lower() + waiting);
        hint
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.mark(false);
        self.running.recount(self.counted, 0);
    }
}
