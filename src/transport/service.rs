//! Converts hyper's request for the services: adds the client's address, bounds the body and counts
//! the request.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::Body,
    http::{
        HeaderValue, Request, Response, Version,
        header::{CONNECTION, EXPECT},
        request::Parts,
    },
};
use futures_util::future::{BoxFuture, Either};
use hyper::{
    body::{Body as _, Incoming},
    service::Service,
};
use pin_project_lite::pin_project;
use tower::Service as _;

use super::{
    activity::{Activity, Running},
    answer::Answer,
    body::{BoundedBody, End},
    client::Peer,
    entry::Answers,
    head,
    holder::Holder,
    settings::Settings,
};

/// The largest body, in bytes, that arrives together with its head.
const SMALL: u64 = 4 << 10;

/// The service of one connection.
pub(super) struct ConnectionService {
    answers: Answers,
    settings: Arc<Settings>,
    address: SocketAddr,
    activity: Arc<Activity>,
    holder: Option<Holder>,
}

impl ConnectionService {
    pub(super) fn new(
        answers: Answers,
        settings: Arc<Settings>,
        address: SocketAddr,
        activity: Arc<Activity>,
        holder: Option<Holder>,
    ) -> Self {
        Self { answers, settings, address, activity, holder }
    }
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture {
        let running = self.activity.start();
        let bounds = &self.settings.bounds;
        let (mut head, body) = request.into_parts();
        head.extensions.insert(Peer::new(
            self.address,
            &head.headers,
            &self.settings.trusted_proxies,
        ));
        head::limit(&mut head, bounds.header_bytes);
        if let Some(holder) = &self.holder {
            head.extensions.insert(holder.clone());
        }
        let end = ends_late(&head, &body).then(End::default);
        let body = BoundedBody::new(body, bounds.body_bytes, bounds.body, end.clone());
        let request = Request::from_parts(head, Body::new(body));
        let mut answers = self.answers.clone();
        let answer = if self.activity.has_room() {
            Either::Left(answers.call(request))
        } else {
            let activity = Arc::clone(&self.activity);
            Either::Right(Box::pin(async move {
                activity.wait_for_room().await;
                answers.call(request).await
            }) as BoxFuture<'static, _>)
        };
        ResponseFuture { answer, running: Some(running), end }
    }
}

/// Whether an early response would leave part of the request body on an HTTP/1 connection. Hyper
/// discards a small body that arrived with its head.
fn ends_late(head: &Parts, body: &Incoming) -> bool {
    let is_small = || {
        let is_here = !head.headers.contains_key(EXPECT);
        is_here && body.size_hint().exact().is_some_and(|bytes| bytes <= SMALL)
    };
    head.version <= Version::HTTP_11 && !body.is_end_stream() && !is_small()
}

/// The response to a request that waits because its connection has too many unread bytes.
type Late = BoxFuture<'static, Result<axum::response::Response, Infallible>>;

pin_project! {
    /// The future of the response.
    pub(super) struct ResponseFuture {
        #[pin]
        answer: Either<<Answers as tower::Service<Request<Body>>>::Future, Late>,
        running: Option<Running>,
        // Set for a body that might stay unread.
        end: Option<End>,
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = match ready!(this.answer.poll(context)) {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        if this.end.take().is_some_and(|end| !end.is_reached()) {
            // Otherwise, the rest of the body would be read as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        match this.running.take() {
            Some(running) => {
                Poll::Ready(Ok(answer.map(|body| Answer::new(body, running, context))))
            }
            None => Poll::Pending, // polled after completion, which callers do not do
        }
    }
}
