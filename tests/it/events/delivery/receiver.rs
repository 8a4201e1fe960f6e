//! A receiver of webhook deliveries.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// The response of the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) after: Duration,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), after: Duration::ZERO }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Received {
    pub(crate) fn event(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

type Behaviour = Box<dyn FnMut(&Received) -> Answer + Send>;

#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) base: String,
    received: Arc<Mutex<Vec<Received>>>,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl Receiver {
    /// Starts a receiver that answers every request with 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let behaviour: Behaviour = Box::new(|_| Answer::status(204));
        let behaviour = Arc::new(Mutex::new(behaviour));
        let receiver = Self { base, received: Arc::default(), behaviour };
        let serving = receiver.clone();
        let router = Router::new().fallback(move |request| serving.clone().answer(request));
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    /// Sets the behaviour for all later requests.
    pub(crate) fn answers(&self, behaviour: impl FnMut(&Received) -> Answer + Send + 'static) {
        *self.behaviour.lock() = Box::new(behaviour);
    }

    pub(crate) fn always(&self, answer: Answer) {
        self.answers(move |_| answer.clone());
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().clone()
    }

    /// Waits until this many requests have arrived.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> impl Future<Output = Vec<Received>> {
        let receiver = self.clone();
        async move {
            for _ in 0..1000 {
                let received = receiver.received();
                if received.len() >= count {
                    return received;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            panic!("{} of {count} deliveries after 20 s", receiver.received().len());
        }
    }

    async fn answer(self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap().to_vec();
        let headers = head.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned())
        });
        let path = head.uri.path_and_query().unwrap().as_str().to_owned();
        let received = Received { path, headers: headers.collect(), body, at: Instant::now() };
        let answer = (self.behaviour.lock())(&received);
        self.received.lock().push(received);
        tokio::time::sleep(answer.after).await;
        let mut response = Response::builder().status(answer.status);
        for (name, value) in &answer.headers {
            response = response.header(*name, value);
        }
        response.body(Body::from(answer.body)).unwrap()
    }
}
