//! A stream with timeouts for an incomplete request head and for a peer that does not read.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use super::{activity::Activity, stream::Stream};

pub(super) struct Socket {
    stream: Stream,
    activity: Arc<Activity>,
    /// HTTP/1 only (an HTTP/2 peer is pinged): the longest time from a head's first byte to its
    /// last.
    header: Option<Duration>,
    stalled: Duration,
    head: Option<PartialHead>,
    write_timer: Option<Pin<Box<Sleep>>>,
}

/// A partial head of a request.
struct PartialHead {
    /// The number of requests that had started before this head. When it has increased, the head is
    /// complete.
    before: u64,
    ends: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(
        stream: Stream,
        activity: Arc<Activity>,
        header: Option<Duration>,
        stalled: Duration,
    ) -> Self {
        Self { stream, activity, header, stalled, head: None, write_timer: None }
    }

    /// Records bytes that arrived while no request was in progress: they begin a head.
    fn begin_head(&mut self) {
        let Some(header) = self.header.filter(|_| !self.activity.running()) else { return };
        let before = self.activity.started();
        if self.head.as_ref().is_none_or(|head| head.before != before) {
            self.head = Some(PartialHead { before, ends: Instant::now() + header, timer: None });
        }
    }

    /// Whether a partial head has taken too long; otherwise schedules a wake-up for that time.
    fn head_is_late(&mut self, context: &mut Context<'_>) -> bool {
        if self.head.as_ref().is_some_and(|head| head.before != self.activity.started()) {
            self.head = None;
        }
        let Some(head) = &mut self.head else { return false };
        let timer = head.timer.get_or_insert_with(|| Box::pin(sleep_until(head.ends)));
        timer.as_mut().poll(context).is_ready()
    }

    /// Returns the result of a write, or an error if it has been pending too long.
    fn bound_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timer = None;
            return written;
        }
        let stalled = self.stalled;
        let start = || Box::pin(sleep_until(Instant::now() + stalled));
        ready!(self.write_timer.get_or_insert_with(start).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer reads nothing")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.begin_head();
                }
                Poll::Ready(read)
            }
            Poll::Pending if self.head_is_late(context) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the request's head took too long",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bound_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        match self.stream {
            // Always ready, also while a write is pending, whatever the peer does.
            Stream::Plain(_) => flushed,
            // Ready when the peer has taken all that was encrypted.
            Stream::Tls(_) => self.bound_write(context, flushed),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bound_write(context, shut)
    }
}
