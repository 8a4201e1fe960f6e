//! The HTTP client of deliveries.
//!
//! It connects only to vetted addresses and requests only the receiver's URL. It follows no
//! redirects, uses no proxy from the environment, keeps no cookies and does not decompress.

mod answer;
mod connect;
mod reuse;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc, time::Duration};

use authority_webhook::{
    destination::{AddressRules, EndpointUrl},
    retry::ErrorClass,
};
use bytes::Bytes;
use http::{
    HeaderValue, Request,
    header::{InvalidHeaderValue, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use rustls::RootCertStore;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;

pub(super) use answer::{READ, Received};
pub(super) use connect::Connection;
use reuse::Idle;

/// The time limit for looking up the name, connecting and the TLS handshake.
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit for one attempt: connecting, and receiving the response head.
pub(super) const WHOLE: Duration = Duration::from_secs(15);
/// The time limit for reading the body of a failed response, after its head.
pub(super) const BODY: Duration = Duration::from_secs(1);
/// The time limit for reading the body of a success, after its head. The body is read only to reuse
/// the connection, and the attempt doesn't wait for it.
const REST: Duration = Duration::from_millis(100);
/// The most connections that are read to the end after a success; others are closed at once.
const FINISHING: usize = 256;

/// An HTTP request that is ready to be sent.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// Sends deliveries, and keeps connections for the next ones.
pub(super) struct Client {
    rules: AddressRules,
    tls: TlsConnector,
    idle: Arc<Idle>,
    finishing: Arc<Semaphore>,
}

impl Client {
    /// Creates a client that trusts certificates of receivers if they lead to `roots`.
    pub(super) fn new(rules: AddressRules, roots: RootCertStore) -> Result<Self, rustls::Error> {
        let finishing = Arc::new(Semaphore::new(FINISHING));
        Ok(Self { rules, tls: connect::tls(roots)?, idle: Arc::default(), finishing })
    }

    /// Looks up and vets the addresses of the URL's host. Returns a connection to a vetted address.
    pub(super) async fn connect(&self, url: &EndpointUrl) -> Result<Connection, ErrorClass> {
        let until = Instant::now() + CONNECT;
        let resolved = resolve(url, until).await;
        self.vet(url, &resolved)?;
        if let Some(reused) = self.idle.take(url, &resolved) {
            return Ok(reused);
        }
        connect::open(&self.tls, url, &resolved, until).await
    }

    /// Opens a new connection by a deadline, without reusing one.
    async fn connect_anew(
        &self,
        url: &EndpointUrl,
        until: Instant,
    ) -> Result<Connection, ErrorClass> {
        let until = until.min(Instant::now() + CONNECT);
        let resolved = resolve(url, until).await;
        self.vet(url, &resolved)?;
        connect::open(&self.tls, url, &resolved, until).await
    }

    /// Keeps an unused connection for the next request.
    pub(super) fn keep(&self, connection: Connection) {
        self.idle.put(connection);
    }

    fn vet(&self, url: &EndpointUrl, resolved: &[IpAddr]) -> Result<(), ErrorClass> {
        self.rules.vet(resolved).map_err(|refused| {
            let host = url.host();
            tracing::debug!(
                server.address = host,
                error = %refused,
                "refused a delivery's address"
            );
            ErrorClass::Address
        })
    }

    /// Sends a request. If a reused connection fails, retries once on a new connection.
    pub(super) async fn exchange(
        &self,
        url: &EndpointUrl,
        connection: Connection,
        request: Outgoing,
        until: Instant,
    ) -> Result<Received, ErrorClass> {
        match self.send(connection, request.clone(), until).await {
            Ok(received) => Ok(received),
            // `again` is set only for a reused connection. The retry opens a new one.
            Err(error) if error.again => {
                let connection = self.connect_anew(url, until).await?;
                let sent = self.send(connection, request, until).await;
                sent.map_err(|error| error.class)
            }
            Err(error) => Err(error.class),
        }
    }

    /// Sends a request and waits for the response head by the deadline; the head decides the
    /// outcome. For a failure it also reads the beginning of the body. The error shows whether the
    /// request can be retried at once on a new connection.
    async fn send(
        &self,
        mut connection: Connection,
        request: Outgoing,
        until: Instant,
    ) -> Result<Received, SendError> {
        let reused = connection.reused;
        let sent = timeout_at(until, connection.sender.send_request(request)).await;
        let sent = sent.map_err(|_| SendError { class: ErrorClass::Timeout, again: false })?;
        // The receiver may close a connection at the moment it is reused.
        let answer = sent.map_err(|fault| {
            // In TLS 1.3 a receiver requires a client certificate only after the handshake.
            let class = connect::tls_class(&fault);
            SendError { class: class.unwrap_or(ErrorClass::Http), again: reused }
        })?;
        let answered_at = Instant::now();
        let status = answer.status();
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let address = connection.address();
        let (body, is_whole) = if status.is_success() {
            self.finish(connection, answer.into_body());
            (Vec::new(), true)
        } else {
            let (body, is_whole) = beginning(answer.into_body(), answered_at + BODY).await;
            if is_whole {
                self.idle.put(connection);
            }
            (body, is_whole)
        };
        let status = status.as_u16();
        Ok(Received { status, retry_after, body, is_whole, address, answered_at })
    }

    /// Reads the rest of a successful response to reuse its connection.
    ///
    /// If that takes too long, it closes the connection.
    fn finish(&self, connection: Connection, body: Incoming) {
        if body.is_end_stream() {
            self.idle.put(connection);
            return;
        }
        let Ok(permit) = Arc::clone(&self.finishing).try_acquire_owned() else { return };
        let idle = Arc::clone(&self.idle);
        tokio::spawn(async move {
            let (_, is_whole) = beginning(body, Instant::now() + REST).await;
            if is_whole {
                idle.put(connection);
            }
            drop(permit);
        });
    }
}

/// Returns all addresses of the URL's host, or none if they cannot be looked up in time.
async fn resolve(url: &EndpointUrl, until: Instant) -> Vec<IpAddr> {
    let resolved = timeout_at(until, connect::resolve(url)).await;
    resolved.ok().and_then(Result::ok).unwrap_or_default()
}

/// Why a request has no response.
pub(super) struct SendError {
    pub(super) class: ErrorClass,
    pub(super) again: bool,
}

/// Reads at most [`READ`] bytes of a body. Returns them, and whether the body ended.
///
/// An interrupted body does not change the outcome of the attempt, because the status is already
/// known.
async fn beginning(mut body: Incoming, until: Instant) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    loop {
        match timeout_at(until, body.frame()).await {
            Ok(None) => return (read, true),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = READ - read.len();
                read.extend_from_slice(data.get(..room).unwrap_or(&data));
                if data.len() > room {
                    return (read, false);
                }
            }
            Ok(Some(Err(_))) | Err(_) => return (read, false),
        }
    }
}

/// The value of `Host`, with the port unless it is the scheme's default.
pub(super) fn host_header(url: &EndpointUrl) -> Result<HeaderValue, InvalidHeaderValue> {
    let usual = if url.is_https() { 443 } else { 80 };
    let text = match url.port() {
        port if port == usual => url.host().to_owned(),
        port => format!("{}:{port}", url.host()),
    };
    HeaderValue::from_str(&text)
}
