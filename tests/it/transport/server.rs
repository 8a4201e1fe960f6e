//! A small service behind a real listener, with time limits short enough to wait for in a test.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use agent_authority::transport::{self, Holder, Peer, RequestId, Settings};
use authority_ids::TenantId;
use axum::{
    Extension, Router,
    body::{Body, Bytes},
    extract::Path,
    http::header::CACHE_CONTROL,
    routing::{get, post},
};
use futures_util::stream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// A time that no operation of these tests may exceed.
const EVER: Duration = Duration::from_secs(10);

pub(super) struct Served {
    pub(super) address: SocketAddr,
    pub(super) shutdown: CancellationToken,
    pub(super) done: JoinHandle<io::Result<()>>,
}

/// Returns settings with long timeouts, for tests that are not about timeouts.
pub(super) fn settings() -> Settings {
    let mut settings = Settings::default();
    let bounds = &mut settings.bounds;
    bounds.drain = Duration::from_secs(5);
    bounds.pong = Duration::from_millis(300);
    bounds.body_bytes = 1000;
    settings
}

pub(super) async fn serve(settings: Settings) -> Served {
    serve_routes(routes(), settings).await
}

pub(super) async fn serve_routes(routes: Router, settings: Settings) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let router = transport::Answers::layered(routes.into(), &settings);
    let done = tokio::spawn(transport::serve(
        listener,
        router,
        shutdown.clone().cancelled_owned(),
        settings,
    ));
    Served { address, shutdown, done }
}

/// Marks the connection as used by the tenant in the path.
async fn held(Path(slug): Path<String>, Extension(holder): Extension<Holder>) -> &'static str {
    holder.note(&TenantId::from_slug(&slug).unwrap());
    "ok"
}

fn routes() -> Router {
    let chunk = Bytes::from_static(&[b'x'; 16 * 1024]);
    let endless = move || {
        let chunks = stream::repeat_with({
            let chunk = chunk.clone();
            move || Ok::<_, io::Error>(chunk.clone())
        });
        async { Body::from_stream(chunks) }
    };
    Router::new()
        .route("/", get(async || "ok"))
        .route("/holder/{slug}", get(held))
        .route("/echo", post(async |body: Bytes| body))
        .route("/slow", get(async || sleep(Duration::from_millis(500)).await))
        .route("/stuck", get(async || sleep(EVER).await))
        .route("/endless", get(endless))
        .route("/large", get(async || large()))
        .route(
            "/large-late",
            get(async || {
                sleep(Duration::from_millis(300)).await;
                large()
            }),
        )
        .route("/panic", get(async || -> &'static str { panic!("a secret of the inside") }))
        .route("/kept", get(async || ([(CACHE_CONTROL, "max-age=60")], "kept")))
        .route("/health", get(async || "live"))
        .route("/api/v1/tenants", get(async || "tenants"))
        .route("/v1/directory", get(async || "directory"))
        .route(
            "/peer",
            get(async |Extension(peer): Extension<Peer>| {
                peer.client.map_or("unknown".to_owned(), |client| client.to_string())
            }),
        )
        .route("/id", get(async |Extension(id): Extension<RequestId>| id.as_str().to_owned()))
}

fn large() -> Bytes {
    Bytes::from(vec![b'x'; 64 * 1024])
}

impl Served {
    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends one HTTP/1 request on a new connection. Returns the whole response.
    pub(super) async fn ask(&self, head: &str) -> String {
        self.send(&format!("{head}\r\nhost: x\r\nconnection: close\r\n\r\n")).await
    }

    pub(super) async fn send(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    /// Stops the service and returns how long that took.
    pub(super) async fn stop(self) -> Duration {
        let start = Instant::now();
        self.shutdown.cancel();
        timeout(EVER, self.done).await.unwrap().unwrap().unwrap();
        start.elapsed()
    }
}

/// Reads until the service closes the connection. A reset counts as closing it.
pub(super) async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let closed = timeout(EVER, stream.read_to_end(&mut bytes)).await;
    assert!(closed.is_ok(), "not closed in time: {}", String::from_utf8_lossy(&bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns how long the service leaves the connection open.
pub(super) async fn open_for(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    rest(stream).await;
    start.elapsed()
}

/// Returns whether the time differs from `bound` by no more than a scheduling delay.
pub(super) fn about(taken: Duration, bound: Duration) -> bool {
    (bound.mul_f64(0.9)..bound + Duration::from_millis(1500)).contains(&taken)
}
