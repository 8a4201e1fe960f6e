//! A new connection.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use authority_webhook::{destination::EndpointUrl, retry::ErrorClass};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;

/// How long a connection lives, in use or not: then the receiver's address is vetted anew.
pub(super) const LIFE: Duration = Duration::from_secs(60);
/// Headers of an answer.
const MOST_HEADERS: usize = 100;
const LONGEST_HEAD: usize = 32 * 1024;

/// Whom a connection leads to, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    https: bool,
    host: String,
    port: u16,
    address: IpAddr,
}

impl Target {
    pub(super) fn of(url: &EndpointUrl, address: IpAddr) -> Self {
        Self { https: url.is_https(), host: url.host().to_owned(), port: url.port(), address }
    }
}

/// A connection without a request on it.
pub(in super::super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) target: Target,
    pub(super) opened: Instant,
    pub(super) reused: bool,
}

impl Connection {
    pub(super) fn address(&self) -> IpAddr {
        self.target.address
    }
}

/// TLS 1.2 and 1.3, for HTTP/1.1.
pub(super) fn tls(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// All addresses of the URL's host.
pub(super) async fn resolve(url: &EndpointUrl) -> io::Result<Vec<IpAddr>> {
    if let Some(address) = url.address() {
        return Ok(vec![address]);
    }
    Ok(lookup_host((url.host(), url.port())).await?.map(|found| found.ip()).collect())
}

/// Connects to one of the addresses, which must have been vetted.
pub(super) async fn open(
    connector: &TlsConnector,
    url: &EndpointUrl,
    vetted: &[IpAddr],
    until: Instant,
) -> Result<Connection, ErrorClass> {
    let (stream, address) = reach(vetted, url.port(), until).await?;
    // Small requests, each of which waits for its answer.
    stream.set_nodelay(true).map_err(|_| ErrorClass::Connect)?;
    let target = Target::of(url, address);
    if !url.is_https() {
        return shake_hands(stream, target).await;
    }
    let host = url.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| ErrorClass::Tls)?;
    let secured = timeout_at(until, connector.connect(name, stream)).await;
    let secured = secured.map_err(|_| ErrorClass::Timeout)?.map_err(|_| ErrorClass::Tls)?;
    shake_hands(secured, target).await
}

/// Tries the addresses in order; each gets its share of the time that is left.
async fn reach(
    vetted: &[IpAddr],
    port: u16,
    until: Instant,
) -> Result<(TcpStream, IpAddr), ErrorClass> {
    let mut class = ErrorClass::Connect;
    for (index, address) in vetted.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(vetted.len() - index).unwrap_or(1);
        match timeout(share, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => return Ok((stream, *address)),
            Ok(Err(_)) => class = ErrorClass::Connect,
            Err(_) => class = ErrorClass::Timeout,
        }
    }
    Err(class)
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    target: Target,
) -> Result<Connection, ErrorClass> {
    let handshake = http1::Builder::new()
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_HEAD)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|_| ErrorClass::Http)?;
    // The task of one connection; it ends with that.
    tokio::spawn(timeout(LIFE, connection));
    Ok(Connection { sender, target, opened: Instant::now(), reused: false })
}
