//! A request body with limits in bytes and in time.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    BoxError,
    body::{Bytes, HttpBody},
};
use http_body::{Frame, SizeHint};
use http_body_util::Limited;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

/// The body did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("the request's body did not arrive in time")]
pub struct BodyTooSlow;

/// Whether a body was read to its end. The sender of the response checks it.
#[derive(Clone, Default)]
pub(super) struct End(Arc<AtomicBool>);

impl End {
    pub(super) fn is_reached(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// A request body with a maximum size and a time limit. Reading it fails with
/// `http_body_util::LengthLimitError` if it is too large, and with [`BodyTooSlow`] if it arrives
/// too late.
pub(super) struct BoundedBody {
    body: Limited<Incoming>,
    ends: Instant,
    /// Created at the first wait for the peer: most bodies are complete at once.
    timer: Option<Pin<Box<Sleep>>>,
    /// Set when the body was read to its end; `None` if this is not needed.
    end: Option<End>,
}

impl BoundedBody {
    pub(super) fn new(body: Incoming, bytes: u64, within: Duration, end: Option<End>) -> Self {
        let body = Limited::new(body, usize::try_from(bytes).unwrap_or(usize::MAX));
        Self { body, ends: Instant::now() + within, timer: None, end }
    }
}

impl HttpBody for BoundedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let is_end = frame.is_none() || self.body.is_end_stream();
            if let Some(end) = self.end.as_ref().filter(|_| is_end) {
                end.0.store(true, Relaxed);
            }
            return Poll::Ready(frame);
        }
        let ends = self.ends;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(ends)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(BodyTooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
