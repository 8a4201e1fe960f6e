//! Accepts connections and limits each of them.
//!
//! A connection ends if its peer is silent, sends too little or too slowly, or stops reading. All
//! connections end when the service stops.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    activity::{Activity, Verdict},
    entry::Answers,
    full::Full,
    holder::{AddressConnections, Holder},
    protocol::{Protocol, detect},
    service::ConnectionService,
    settings::{Bounds, Settings},
    socket::Socket,
    stall::Streams,
    stream::Stream,
    tls::{Accepted, Admission, Client, Handshakes},
};

/// The time after the drain for tasks to notice that they are cut off.
const CUT_OFF: Duration = Duration::from_secs(1);
/// Heads up to this multiple of the limit are answered in the caller's protocol.
const ANSWERED_HEADS: u32 = 4;
/// The wait when the machine is out of a resource (file descriptors).
const RETRY_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
    Closed,
}

/// Serves `answers` until `shutdown` resolves, then drains: at most
/// `settings.bounds.drain` and a second.
pub async fn serve(
    listener: TcpListener,
    answers: impl Into<Answers>,
    shutdown: impl Future<Output = ()> + Send,
    settings: Settings,
) -> io::Result<()> {
    let (phase, phases) = watch::channel(Phase::Serving);
    let places = Arc::new(Semaphore::new(settings.bounds.connections.min(Semaphore::MAX_PERMITS)));
    let all = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
    let drain = settings.bounds.drain;
    let full = Full::new(settings.tls.is_some());
    let server = Arc::new(Server::new(answers.into(), settings));

    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let server = Arc::clone(&server);
                    // Each connection has its own task, which ends with the connection.
                    tokio::spawn(server.connection(stream, address, phases.clone(), place));
                }
                Err(_) => full.refuse(stream),
            },
            Err(error) if left_before_accept(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection; trying again");
                sleep(RETRY_PAUSE).await;
            }
        }
    }
    drop(listener);
    phase.send_replace(Phase::Draining);
    if timeout(drain, places.acquire_many(all)).await.is_err() {
        let left = all as usize - places.available_permits();
        tracing::warn!(connections = left, "cut off connections that did not drain");
        phase.send_replace(Phase::Closed);
        // After this every connection has ended, or is stuck in a handler that never yields.
        let _ = timeout(CUT_OFF, places.acquire_many(all)).await;
    }
    Ok(())
}

fn left_before_accept(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The state shared by all connections of one address.
struct Server {
    answers: Answers,
    settings: Arc<Settings>,
    http1: Builder<Streams>,
    http2: Builder<Streams>,
    held: Arc<AddressConnections>,
    handshakes: Arc<Handshakes>,
}

/// A connection with a known protocol, ready for its first request.
struct Opened {
    stream: Stream,
    protocol: Protocol,
    admission: Admission,
    client: Client,
}

impl Server {
    fn new(answers: Answers, settings: Settings) -> Self {
        let (http1, http2) = (http1(&settings.bounds), http2(&settings.bounds));
        let held = AddressConnections::new(settings.bounds.tenant_connections);
        let handshakes = Handshakes::new(settings.bounds.handshakes);
        Self { answers, settings: Arc::new(settings), http1, http2, held, handshakes }
    }

    /// Returns the holder of a new connection; `None` for a trusted proxy.
    fn holder(&self, address: SocketAddr, activity: &Arc<Activity>) -> Option<Holder> {
        let direct = address.ip().to_canonical();
        let is_proxy =
            self.settings.trusted_proxies.iter().any(|network| network.contains(&direct));
        (!is_proxy).then(|| Holder::new(Arc::clone(&self.held), Arc::clone(activity)))
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        mut phases: watch::Receiver<Phase>,
        place: OwnedSemaphorePermit,
    ) {
        let _place = place;
        let _open = Open::new();
        // Responses are small and complete: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let opened = tokio::select! {
            opened = self.open(stream) => opened,
            _ = phases.changed() => None,
        };
        if let Some(opened) = opened {
            self.serve(opened, address, phases).await;
        }
    }

    /// Completes the handshake, if the address has TLS, and detects the protocol. Returns `None` if
    /// the peer left, failed or was too slow.
    async fn open(&self, stream: TcpStream) -> Option<Opened> {
        let first_byte = self.settings.bounds.first_byte;
        let Some(tls) = &self.settings.tls else {
            let protocol = detect(&stream, first_byte).await?;
            let (stream, admission) = (Stream::Plain(stream), Admission::EVERYTHING);
            return Some(Opened { stream, protocol, admission, client: Client::UNKNOWN });
        };
        // Boxed: the state of a handshake is large, and connections without TLS have none.
        let accepting = Box::pin(tls.accept(stream, &self.handshakes, first_byte));
        let Accepted { stream, protocol, admission, client } = accepting.await?;
        Some(Opened { stream: Stream::Tls(Box::new(stream)), protocol, admission, client })
    }

    async fn serve(&self, opened: Opened, address: SocketAddr, mut phases: watch::Receiver<Phase>) {
        let Opened { stream, protocol, admission, client } = opened;
        let bounds = &self.settings.bounds;
        let (unsent, _member) = self.settings.budget.enter();
        let activity = Activity::new(bounds.unsent_bytes, Arc::clone(&unsent));
        let is_http1 = protocol == Protocol::Http1;
        let header = is_http1.then_some(bounds.header);
        // HTTP/2 limits each stream separately, and detects a silent peer at the socket and by
        // pings.
        let stalled = is_http1.then_some(bounds.stalled);
        let socket = Socket::new(stream, Arc::clone(&activity), header, bounds.stalled);
        let service = ConnectionService::new(
            self.answers.for_peer(admission, &self.settings),
            Arc::clone(&self.settings),
            address,
            Arc::clone(&activity),
            self.holder(address, &activity),
        );
        let builder = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let mut connection = pin!(builder.serve_connection(TokioIo::new(socket), service));
        let mut look = pin!(sleep(bounds.idle.min(bounds.stalled)));
        let mut lapsed = pin!(client.lapsed());
        let mut ending = false;
        if *phases.borrow_and_update() != Phase::Serving {
            connection.as_mut().graceful_shutdown();
        }
        loop {
            tokio::select! {
                biased;
                // An error is caused by the peer (reset, malformed, too late). It cannot be
                // reported to the peer.
                _ = connection.as_mut() => return,
                changed = phases.changed() => {
                    if changed.is_err() || *phases.borrow_and_update() == Phase::Closed {
                        return;
                    }
                    connection.as_mut().graceful_shutdown();
                }
                () = unsent.when_cut() => return,
                () = lapsed.as_mut() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = timeout(bounds.drain, connection.as_mut()).await;
                    return;
                }
                after = activity.curbed() => look.as_mut().reset(Instant::now() + after),
                () = look.as_mut() => match activity.verdict(bounds.idle, stalled) {
                    Verdict::Fine(left) => look.as_mut().reset(Instant::now() + left),
                    Verdict::Idle if !ending => {
                        ending = true;
                        connection.as_mut().graceful_shutdown();
                        look.as_mut().reset(Instant::now() + bounds.pong);
                    }
                    Verdict::Idle | Verdict::Stalled => return,
                },
            }
        }
    }
}

fn streams(bounds: &Bounds) -> Streams {
    Streams { stalled: bounds.stalled }
}

fn http1(bounds: &Bounds) -> Builder<Streams> {
    let mut builder = Builder::new(streams(bounds)).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        // Hyper's timeout includes the wait between two requests. `Socket` limits the time of the
        // head itself.
        .header_read_timeout(bounds.idle)
        .max_headers(100)
        .max_buf_size(bounds.header_bytes.max(8192) as usize);
    builder
}

fn http2(bounds: &Bounds) -> Builder<Streams> {
    let mut builder = Builder::new(streams(bounds)).http2_only();
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(bounds.streams)
        // The limit of calls that their client cancels before the server handles them. By default
        // h2 closes the connection at 20 of them, along with all other streams on it.
        .max_pending_accept_reset_streams(bounds.streams as usize)
        // `head.rs` refuses a head above `header_bytes` in the caller's protocol. A head above this
        // limit gets a 431 from h2, and one above four times this limit ends the connection.
        .max_header_list_size(bounds.header_bytes.saturating_mul(ANSWERED_HEADS))
        .initial_stream_window_size(128 * 1024)
        .initial_connection_window_size(512 * 1024)
        .max_send_buf_size(64 * 1024)
        .keep_alive_interval(bounds.ping)
        .keep_alive_timeout(bounds.pong);
    builder
}

/// Counts an open connection in the metrics.
struct Open;

impl Open {
    fn new() -> Self {
        metrics::counter!("authority_transport_connections_total").increment(1);
        metrics::gauge!("authority_transport_connections").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("authority_transport_connections").decrement(1);
    }
}
