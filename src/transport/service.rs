//! From hyper's request to the router's: whose it is, a body that ends, and a count of it.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
    routing::future::RouteFuture,
};
use hyper::{body::Incoming, service::Service};
use pin_project_lite::pin_project;
use tower::Service as _;

use super::{
    activity::{Activity, Answer, Running},
    body::BoundedBody,
    client::Peer,
    settings::Settings,
};

/// The router, as one connection sees it.
pub(super) struct Door {
    router: Router,
    settings: Arc<Settings>,
    address: SocketAddr,
    activity: Arc<Activity>,
}

impl Door {
    pub(super) fn new(
        router: Router,
        settings: Arc<Settings>,
        address: SocketAddr,
        activity: Arc<Activity>,
    ) -> Self {
        Self { router, settings, address, activity }
    }
}

impl Service<Request<Incoming>> for Door {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let running = self.activity.start();
        let bounds = &self.settings.bounds;
        let (mut head, body) = request.into_parts();
        head.extensions.insert(Peer::new(
            self.address,
            &head.headers,
            &self.settings.trusted_proxies,
        ));
        let body = BoundedBody::new(body, bounds.body_bytes, bounds.body);
        let request = Request::from_parts(head, Body::new(body));
        Answering { answer: self.router.clone().call(request), running: Some(running) }
    }
}

pin_project! {
    /// The router's answer, on its way.
    pub(super) struct Answering {
        #[pin]
        answer: RouteFuture<Infallible>,
        running: Option<Running>,
    }
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match ready!(this.answer.poll(context)) {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        match this.running.take() {
            Some(running) => Poll::Ready(Ok(answer.map(|body| Answer::new(body, running)))),
            None => Poll::Pending, // polled again after the end, which no one does
        }
    }
}
